"""What an answer of Prefold shows, and whether it is what was expected."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from prefold.evaluation.shapes import Expectation

_ShownT = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Seen:
    """A context, a list of facts or the hits of a search."""

    sections: Mapping[str, str]
    """Text by section of the context, by category of a fact, by kind of a hit."""
    kinds: Sequence[str] = ()
    """Of what was recalled or found."""
    tokens: int | None = None
    """As counted by Prefold; None where nothing counts them."""

    def text(self, section: str | None) -> str:
        """Of one section, empty when there is none; of all without a name."""
        return "\n".join(self.sections.values()) if section is None else self.sections.get(section, "")


def fault_of(expected: Expectation, seen: Seen) -> str | None:
    """Why it is not as expected, for people; None: it is."""
    match expected.check:
        case "most_tokens":
            return _too_many(expected.most_tokens or 0, seen.tokens)
        case "recalled":
            missing = [kind for kind in expected.texts if kind not in seen.kinds]
            return f"no {' and no '.join(missing)} among {_listed(seen.kinds)}" if missing else None
        case "in_order":
            return _out_of_order(expected.texts, _folded(seen.text(expected.section)))
        case check:
            return _TEXT_CHECKS[check](expected, seen)


def _holds(expected: Expectation, seen: Seen) -> str | None:
    missing = _missing(expected, seen, _folded)
    return _not_found(missing, expected, seen) if missing else None


def _verbatim(expected: Expectation, seen: Seen) -> str | None:
    missing = _missing(expected, seen, str)
    return _not_found(missing, expected, seen) if missing else None


def _holds_any(expected: Expectation, seen: Seen) -> str | None:
    missing = _missing(expected, seen, _folded)
    return _not_found(missing, expected, seen) if len(missing) == len(expected.texts) else None


def _lacks(expected: Expectation, seen: Seen) -> str | None:
    text = _folded(seen.text(expected.section))
    found = [wanted for wanted in expected.texts if _folded(wanted) in text]
    if not found:
        return None
    places = [_listed(_sections_with(wanted, seen)) for wanted in found]
    return "; ".join(f"{wanted!r} stands in {place}" for wanted, place in zip(found, places, strict=True))


_TEXT_CHECKS = {"holds": _holds, "holds_any": _holds_any, "verbatim": _verbatim, "lacks": _lacks}


def _missing(expected: Expectation, seen: Seen, fold: _ShownT) -> list[str]:
    text = fold(seen.text(expected.section))
    return [wanted for wanted in expected.texts if fold(wanted) not in text]


def _not_found(missing: Sequence[str], expected: Expectation, seen: Seen) -> str:
    told = [f"{wanted!r} is not there{_elsewhere(wanted, expected, seen)}" for wanted in missing]
    return "; ".join(told)


def _elsewhere(wanted: str, expected: Expectation, seen: Seen) -> str:
    places = _sections_with(wanted, seen)
    if not places:
        return ""
    if expected.check == "verbatim":
        return f" as it was written (but in other letters or spaces in {_listed(places)})"
    return f", but in {_listed(places)}"


def _sections_with(wanted: str, seen: Seen) -> list[str]:
    return [name for name, text in seen.sections.items() if _folded(wanted) in _folded(text)]


def _too_many(most: int, tokens: int | None) -> str | None:
    if tokens is None:
        return "no tokens are counted here"
    return f"{tokens:,} tokens" if tokens > most else None


def _out_of_order(wanted: Sequence[str], text: str) -> str | None:
    places = [text.find(_folded(one)) for one in wanted]
    for one, place in zip(wanted, places, strict=True):
        if place < 0:
            return f"{one!r} is not there"
    for number, (before, after) in enumerate(itertools.pairwise(places)):
        if after < before:
            return f"{wanted[number + 1]!r} comes before {wanted[number]!r}"
    return None


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _listed(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names)) or "nothing"
