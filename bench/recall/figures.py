"""How much of the evidence is found: in the first places, and within a budget of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bench.recall.sets import Asked

PLACES: Final = (1, 3, 5, 10, 20)
BUDGETS: Final = (1000, 2000)


@dataclass(slots=True)
class Found:
    """Sums over questions; each counts as one, whatever the number of its evidence turns."""

    questions: int = 0
    in_top_3: int = 0
    """Questions of which some evidence is among the first three."""
    at: dict[int, float] = field(default_factory=lambda: dict.fromkeys(PLACES, 0.0))
    within: dict[int, float] = field(default_factory=lambda: dict.fromkeys(BUDGETS, 0.0))
    by_category: dict[str, list[float]] = field(default_factory=dict)
    """Of each category, the shares in the first ten."""

    def add(self, asked: Asked, ranked: Sequence[int], tokens: Sequence[int]) -> None:
        """``ranked``: places of turns, best first; ``tokens`` of every turn as it is shown."""
        self.questions += 1
        self.in_top_3 += bool(asked.evidence.intersection(ranked[:3]))
        for most in PLACES:
            self.at[most] += _share(asked, ranked[:most])
        for budget in BUDGETS:
            self.within[budget] += _share(asked, _taken(ranked, tokens, budget))
        self.by_category.setdefault(asked.category, []).append(_share(asked, ranked[:10]))

    def percent(self) -> dict[str, float]:
        """By name: ``R@10``, ``B1000`` …"""
        shares = {f"R@{most}": value for most, value in self.at.items()}
        shares |= {f"B{budget}": value for budget, value in self.within.items()}
        shares["top 3"] = self.in_top_3
        return {name: 100 * value / max(1, self.questions) for name, value in shares.items()}


def _share(asked: Asked, places: Sequence[int]) -> float:
    return len(asked.evidence.intersection(places)) / len(asked.evidence)


def _taken(ranked: Sequence[int], tokens: Sequence[int], budget: int) -> list[int]:
    """In rank order; what does not fit is passed over."""
    taken = []
    for place in ranked:
        if tokens[place] <= budget:
            taken.append(place)
            budget -= tokens[place]
    return taken
