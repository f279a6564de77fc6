"""How a fact reads: the sentence that is shown and embedded, and the profile made of those sentences."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from prefold.facts.categories import TRAITS
from prefold.facts.evidence import FADED_CONFIDENCE
from prefold.facts.names import USER, clean
from prefold.facts.relations import known
from prefold.facts.rows import Fact
from prefold.facts.settling import faded_at_ms, is_live, now_confidence
from prefold.storage.users import Profile
from prefold.tokens import TokenCounter

__all__ = ["PROFILE_CAP_TOKENS", "profile_of", "text_of"]

PROFILE_CAP_TOKENS: Final = 400
"""Raw."""
_LEAST_LINE_TOKENS: Final = 8
_MONTHS: Final = "January February March April May June July August September October November December".split()


def text_of(fact: Fact) -> str:
    """One sentence, one line: ``User lives in Germany (said 3 May 2026)``; the day (UTC) is when it was said last."""
    subject = "User" if fact.subject == USER else fact.subject
    return f"{clean(_sentence(subject, fact))} (said {_day(fact.last_confirmed_ms)})"


def _sentence(subject: str, fact: Fact) -> str:
    relation = known(fact.relation)
    if relation is not None:
        return relation.phrase.format(s=subject, o=fact.object)
    words = fact.relation.replace("_", " ")
    first = words.split(" ", 1)[0]
    is_verb = first.isascii() and len(first) > 2 and first.endswith("s") and not first.endswith("ss")
    return f"{subject} {words} {fact.object}" if is_verb or first in _VERBS else f"{subject}'s {words} is {fact.object}"


_VERBS: Final = frozenset("is was has had can cannot will does did must may no not never".split())


def _day(at_ms: int) -> str:
    day = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def profile_of(facts: Iterable[Fact], counter: TokenCounter, now_ms: int, cap: int = PROFILE_CAP_TOKENS) -> Profile:
    """At most ``cap`` raw tokens, one line a fact, the most useful first; a line that does not fit is left out whole.

    Without expired rows and doubtful ones. Those that have faded come last, where there is room: each line has its day,
    and nothing newer is known. It says until when that is so, and how many facts had no room.
    """
    served = [one for one in facts if is_live(one, now_ms) and one.confidence >= FADED_CONFIDENCE]
    lines: list[str] = []
    shown: list[Fact] = []
    tokens = 0
    for fact in sorted(served, key=lambda one: _usefulness(one, now_ms)):
        if cap - tokens < _LEAST_LINE_TOKENS:
            break
        line = text_of(fact)
        more = counter.count("\n".join([*lines[-1:], line])) if lines else counter.count(line)
        more -= counter.count(lines[-1]) if lines else 0
        if tokens + more <= cap:
            tokens += more
            lines.append(line)
            shown.append(fact)
    return _checked(lines, shown, counter, cap, now_ms, len(served))


def _checked(lines: list[str], shown: list[Fact], counter: TokenCounter, cap: int, now_ms: int, served: int) -> Profile:
    """The count of the whole is the one that holds: pieces may join across a line's end."""
    text = "\n".join(lines)
    tokens = counter.count(text)
    while tokens > cap and lines:
        lines, shown = lines[:-1], shown[:-1]
        text = "\n".join(lines)
        tokens = counter.count(text)
    ends = [end for one in shown for end in (one.expires_at_ms, faded_at_ms(one)) if end is not None and end > now_ms]
    until = min(ends, default=None) if text else None
    return Profile(tokens if text else 0, text, until, served - len(shown))


def _usefulness(fact: Fact, now_ms: int) -> tuple[bool, int, float, int, str]:
    is_faded = now_confidence(fact, now_ms) < FADED_CONFIDENCE
    return (is_faded, TRAITS[fact.category].rank, -fact.confidence, -fact.last_confirmed_ms, fact.id)
