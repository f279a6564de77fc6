"""Which limit crossings left the background enough time, so that their standby can be judged."""

from collections.abc import Sequence
from dataclasses import dataclass, field

REFERENCE_TURNS_PER_SECOND = 20.0
LARGEST_TURN_SHARE = 0.1
SHORTEST_WAY_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Crossing:
    """One passing of the hard limit."""

    way_turns: int
    """Turns since the context came over the soft threshold; 0 when one turn passed both."""
    is_ready: bool
    """A standby was there to swap in."""

    @property
    def way_seconds(self) -> float:
        """The way from soft to hard at the reference pace, whatever the pace of the run."""
        return self.way_turns / REFERENCE_TURNS_PER_SECOND


@dataclass(slots=True)
class CrossingLog:
    """Follows a session from turn to turn and keeps its crossings."""

    crossings: list[Crossing] = field(default_factory=list)
    _soft_since: int | None = None
    _crossed: int = 0
    _ready: int = 0

    def take(self, turn: int, tokens: int, soft_tokens: int) -> None:
        """A turn after which the context has ``tokens``, in the version that it had before."""
        if tokens < soft_tokens:
            self._soft_since = None
        elif self._soft_since is None:
            self._soft_since = turn

    def take_new_version(self, turn: int, tokens: int, soft_tokens: int, crossed: int, ready: int) -> None:
        """A turn after which the version is another; ``crossed`` and ``ready`` are the session's counts now."""
        if crossed > self._crossed:
            way = turn - self._soft_since if self._soft_since is not None else 0
            self.crossings.append(Crossing(way, ready > self._ready))
        self._crossed, self._ready = crossed, ready
        self._soft_since = None
        self.take(turn, tokens, soft_tokens)


def judged(crossings: Sequence[Crossing], turn_tokens: Sequence[int], hard_tokens: int) -> list[Crossing]:
    """Those where a standby is expected: no turn is over a tenth of the limit, and the way took two seconds."""
    if max(turn_tokens, default=0) > LARGEST_TURN_SHARE * hard_tokens:
        return []
    return [crossing for crossing in crossings if crossing.way_seconds >= SHORTEST_WAY_SECONDS]
