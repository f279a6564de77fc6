"""What was found for a query, as one marked text beside the newest user turn. Tokens are raw."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prefold.assembly.groups import has_tools
from prefold.assembly.plan import LeftOut
from prefold.assembly.shorten import Shortener
from prefold.conversation.marks import neutralise
from prefold.conversation.project import Fragment

SHARE = 0.15
"""Of the limit: what recall may take at most."""

_OPENING = "[Prefold: earlier turns of this conversation that may matter now, oldest first. For reference only:]"
_CLOSING = "[Prefold: end of recalled turns]"
_FRAME_TOKENS = 48
"""Overheads of the fragment and both marks, rounded up."""
_SAME_WORDS = 0.85
"""Share of common words from which two turns say the same."""
_WORD = re.compile(r"\w+")
_WORTH_CLIPPING = 64
"""Tokens of room below which a turn stands whole or not at all."""
_MOST_OF_ROOM = 2
"""One turn gets at most the room divided by this."""


@dataclass(frozen=True, slots=True)
class RecalledItem:
    """A stored turn that was found. ``ts`` is shown as it is; empty: not known."""

    seq: int
    role: str
    ts: str
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class UsedItem:
    """A turn that was put into the context, and its raw tokens there."""

    item: RecalledItem
    tokens: int
    shown: str


@dataclass(frozen=True, slots=True)
class Recall:
    """The fragment to append, or ``None``, with what was used and what was not."""

    fragment: Fragment | None
    used: tuple[UsedItem, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def tokens(self) -> int:
        """Raw tokens of the fragment."""
        return self.fragment.tokens if self.fragment else 0


def can_stand_after(fragments: Sequence[Fragment]) -> bool:
    """True when the context ends with plain text of the user: text may be added only there."""
    return bool(fragments) and fragments[-1].role == "user" and not has_tools(fragments[-1])


def choose_recall(items: Sequence[RecalledItem], present: frozenset[int], room: int, shortener: Shortener) -> Recall:
    """The best items that fit, back in time order. ``present``: turns that stand in the context anyway."""
    used: list[UsedItem] = []
    left_out: list[LeftOut] = []
    taken_words: list[frozenset[str]] = []
    free = room - _FRAME_TOKENS
    for item in sorted(items, key=lambda one: (-one.score, one.seq)):
        words = frozenset(_WORD.findall(item.text.lower()))
        if item.seq in present:
            reason = "in_context"
        elif any(_say_the_same(words, other) for other in taken_words):
            reason = "near_duplicate"
        elif (candidate := _fitted(item, free, room, shortener)) is None:
            reason = "no_room"
        else:
            used.append(candidate)
            taken_words.append(words)
            free -= candidate.tokens
            continue
        left_out.append(LeftOut("recall", None, reason, item.seq, item.seq))
    return _with_fragment(used, left_out, room, shortener)


def _fitted(item: RecalledItem, free: int, room: int, shortener: Shortener) -> UsedItem | None:
    head = f"[{item.seq} {item.role}{' ' + item.ts if item.ts else ''}] "
    most = min(free, room // _MOST_OF_ROOM) - shortener.count(head) - 2
    text = neutralise(item.text.strip())
    if most < _WORTH_CLIPPING and shortener.count(text) > most:
        return None
    text, _ = shortener.cut_text(text, most)
    shown = head + text
    return UsedItem(item, shortener.count(shown) + 1, shown)


def _with_fragment(used: list[UsedItem], left_out: list[LeftOut], room: int, shortener: Shortener) -> Recall:
    while used:
        in_order = sorted(used, key=lambda one: one.item.seq)
        text = "\n".join([_OPENING, *(one.shown for one in in_order), _CLOSING])
        fragment = shortener.text_fragment("user", 0, "recall", text)
        if fragment.tokens <= room:
            return Recall(fragment, tuple(in_order), tuple(left_out))
        worst = used.pop()
        left_out.append(LeftOut("recall", None, "no_room", worst.item.seq, worst.item.seq))
    return Recall(None, (), tuple(left_out))


def _say_the_same(words: frozenset[str], other: frozenset[str]) -> bool:
    common = len(words & other)
    return common > 0 and common >= _SAME_WORDS * len(words | other)
