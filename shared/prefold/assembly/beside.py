"""What stands beside the newest user turn, as one marked text after the last cache breakpoint. Tokens are raw.

Noted entries of the pinned state, what is known of the user, what was recalled: all of it a worker derived from
conversations, so it is text of the user, never system, and no mark in it is a mark.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from prefold.assembly.groups import may_be_followed
from prefold.assembly.plan import LeftOut
from prefold.assembly.recall import Recalled, RecalledItem, UsedItem, choose_recall
from prefold.assembly.shares import Shares
from prefold.assembly.shorten import Shortener
from prefold.conversation.markers import BLOCK_TOKENS, FRAGMENT_TOKENS
from prefold.conversation.marks import closing, neutralise, opening
from prefold.conversation.project import Fragment

PART = "beside"
"""Name of the fragment's part."""

PROPOSALS = "proposals"
"""What ``left_out`` calls noted entries: the pinned state itself is ``state`` there. Their tokens count as its section."""

_NOTED = ("noted from this conversation by a summarizer and not confirmed by anybody:", "noted entries")
_PROFILE = ("what is known of the user, from this and earlier conversations. For reference only:", "what is known")
_OVERHEAD = FRAGMENT_TOKENS + BLOCK_TOKENS


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a read has to put beside the newest turn."""

    noted: str = ""
    profile: str = ""
    items: Sequence[RecalledItem] = ()

    def __bool__(self) -> bool:
        return bool(self.noted or self.profile or self.items)


@dataclass(slots=True)
class Beside:
    """The fragment to append, or none, with the raw tokens of its sections."""

    fragment: Fragment | None = None
    sections: dict[str, int] = field(default_factory=dict)
    used: list[UsedItem] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """Of the fragment."""
        return self.fragment.tokens if self.fragment else 0


def beside(wanted: Wanted, before: Sequence[Fragment], room: int, shares: Shares, shortener: Shortener) -> Beside:
    """As much of what is wanted as ``room`` and the shares take, after the fragments ``before``."""
    if not wanted:
        return Beside()
    if not may_be_followed(before):
        return Beside(left_out=_nowhere(wanted))
    made = Beside()
    free = room - _OVERHEAD
    noted, free = _lines(wanted.noted, PROPOSALS, _NOTED, min(free, shares.noted - _OVERHEAD), free, made, shortener)
    profile, free = _lines(
        wanted.profile, "profile", _PROFILE, min(free, shares.profile - _OVERHEAD), free, made, shortener
    )
    present = frozenset(one.seq for one in before if one.part not in ("gap", "closer", "short"))
    known = profile.splitlines()[1:-1] if wanted.items else ()
    recalled = choose_recall(wanted.items, present, known, min(free, shares.recall - _OVERHEAD), shortener)
    return _composed(made, noted, profile, recalled, room, shortener)


def _nowhere(wanted: Wanted) -> list[LeftOut]:
    parts = {PROPOSALS: wanted.noted, "profile": wanted.profile, "recall": wanted.items}
    return [LeftOut(part, None, "no_user_turn_at_the_end") for part, what in parts.items() if what]


def _lines(
    text: str, part: str, frame: tuple[str, str], most: int, free: int, made: Beside, shortener: Shortener
) -> tuple[str, int]:
    """Whole lines of a text within ``most``, in their frame, and what is free afterwards."""
    if not text:
        return "", free
    title, end = opening(frame[0]), closing(frame[1])
    lines = _harmless(text)
    whole = shortener.count("\n".join([title, *lines, end])) + 2
    kept, tokens = list(lines), whole
    while kept and tokens > most:
        kept.pop()
        tokens = shortener.count("\n".join([title, *kept, end])) + 2
    if len(kept) < len(lines):
        made.left_out.append(LeftOut(part, whole - (tokens if kept else 0), "clipped" if kept else "no_room"))
    return ("\n".join([title, *kept, end]), free - tokens) if kept else ("", free)


@lru_cache(maxsize=256)
def _harmless(text: str) -> tuple[str, ...]:
    """Its lines, none of them a mark; the same profile comes with every read of a session."""
    return tuple(neutralise(line) for line in text.splitlines() if line.strip())


def _composed(made: Beside, noted: str, profile: str, recalled: Recalled, room: int, shortener: Shortener) -> Beside:
    while True:
        texts = [text for text in (noted, profile, *recalled.parts()) if text]
        if not texts:
            break
        fragment = shortener.text_fragment("user", 0, PART, "\n".join(texts))
        if fragment.tokens <= room:
            made.fragment = fragment
            made.sections = _sections(fragment, noted, profile, bool(recalled.used), shortener)
            break
        # The parts were counted one by one; together they may be a few tokens more.
        if recalled.used:
            recalled.drop_worst()
        elif profile:
            profile = _given_up(made, "profile", profile, shortener)
        else:
            noted = _given_up(made, PROPOSALS, noted, shortener)
    made.used = recalled.in_order()
    made.left_out += recalled.left_out
    return made


def _given_up(made: Beside, part: str, text: str, shortener: Shortener) -> str:
    made.left_out.append(LeftOut(part, shortener.count(text), "no_room"))
    return ""


def _sections(fragment: Fragment, noted: str, profile: str, has_recall: bool, shortener: Shortener) -> dict[str, int]:
    """Tokens by section. The last one bears what all have in common, so that they add up."""
    names = [name for name, has in (("state", noted), ("profile", profile), ("recall", has_recall)) if has]
    texts = {"state": noted, "profile": profile}
    sections: dict[str, int] = {}
    left = fragment.tokens
    for name in names[:-1]:
        sections[name] = min(left, shortener.count(texts[name]) + 1)
        left -= sections[name]
    return {**sections, names[-1]: left}
