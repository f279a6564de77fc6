"""What was found for a query: which of it stands in the context, and how it is written there. Tokens are raw."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

from prefold.assembly.plan import LeftOut
from prefold.assembly.shorten import Shortener
from prefold.conversation.marks import closing, neutralise, opening

Kind = Literal["turn", "fact", "summary", "segment"]

_PARTS: tuple[tuple[tuple[Kind, ...], str, str, float], ...] = (
    (("fact",), "facts about the user that may matter now. For reference only:", "recalled facts", 0.25),
    (
        ("summary", "segment"),
        "from earlier conversations with this user, oldest first. For reference only:",
        "earlier conversations",
        0.25,
    ),
    (
        ("turn",),
        "earlier turns of this conversation that may matter now, oldest first. For reference only:",
        "recalled turns",
        1.0,
    ),
)
"""Kinds, titles of both marks, and the share of recall's room that is theirs before others had a look."""

_FRAME_TOKENS = 40
"""Of the two marks of a part, rounded up."""
_WORD = re.compile(r"\w+")
_WORTH_CLIPPING = 64
"""Tokens of room below which a text stands whole or not at all."""
_MARKS_TOKENS = 8
_QUOTED = re.compile(r"^\[(?=\d)([^\]\n]{1,80})\]", re.MULTILINE)
"""Before a quote of a turn: of another conversation it is no turn of this one, and its brackets are round."""
_MOST_OF_ROOM = 2
"""One text gets at most the room divided by this."""


@dataclass(frozen=True, slots=True)
class RecalledItem:
    """Something stored that was found. ``ts`` is shown as it is; empty: not known."""

    seq: int
    """Of a turn; 0 for others."""
    role: str
    ts: str
    text: str
    score: float
    kind: Kind = "turn"
    id: str = ""
    """Of the turn or the fact; ``level:first-last`` of a segment, ``digest`` of a session."""
    session: str = ""
    """Where a summary or a segment is from."""
    copies: int = 0
    """So many others say the same."""
    sources: tuple[tuple[str, str, int], ...] = ()
    """Of a fact: session, turn id and seq of where it was said."""
    asked: str = ""
    """What it was found for: of a text without room the passage is shown that answers this."""

    @property
    def key(self) -> tuple[str, str, int]:
        """What no two items have in common."""
        return (self.session, f"{self.kind}:{self.id}", self.seq)


@dataclass(frozen=True, slots=True)
class UsedItem:
    """An item that stands in the context, and its raw tokens there."""

    item: RecalledItem
    tokens: int
    shown: str


@dataclass(slots=True)
class Recalled:
    """What was chosen and what was not."""

    used: list[UsedItem]
    left_out: list[LeftOut]

    def drop_worst(self) -> None:
        """One item less: what came last to its place."""
        worst = self.used.pop()
        self.left_out.append(_left(worst.item, "no_room"))

    def parts(self) -> list[str]:
        """The marked texts, in the order in which they stand; empty without items."""
        return ["\n".join(_framed(*part, self.of(part[0]))) for part in _PARTS if self.of(part[0])]

    def in_order(self) -> list[UsedItem]:
        """As they stand in the text."""
        return [one for kinds, *_ in _PARTS for one in self.of(kinds)]

    def of(self, kinds: Sequence[str]) -> list[UsedItem]:
        """Those of some kinds: facts by rank, the others in time order."""
        mine = [one for one in self.used if one.item.kind in kinds]
        return (
            mine
            if "fact" in kinds
            else sorted(mine, key=lambda one: (one.item.ts if "turn" not in kinds else "", one.item.seq))
        )


def choose_recall(
    items: Sequence[RecalledItem], present: frozenset[int], known: Sequence[str], room: int, shortener: Shortener
) -> Recalled:
    """The best items that fit into ``room`` with their marks. ``present``: turns that stand in the context anyway.

    ``known``: lines of the profile that stand in the context. Facts come in the order in which they are given, all else by score. Facts and
    earlier sessions have a share each that turns do not take from them; what these do not need is everybody's.
    """
    choice = _Choice(present, known, room, shortener)
    ranked = sorted(items, key=_rank)
    again: list[RecalledItem] = []
    for kinds, _, _, share in _PARTS:
        again += choice.take([one for one in ranked if one.kind in kinds], int(room * share))
    for item in choice.take(sorted(again, key=_rank), room):
        choice.left_out.append(_left(item, "no_room"))
    return Recalled(choice.used, choice.left_out)


def _rank(item: RecalledItem) -> tuple[float, tuple[str, str, int]]:
    """Facts keep their order: sorting is stable."""
    return (-inf, ("", "", 0)) if item.kind == "fact" else (-item.score, item.key)


class _Choice:
    """Takes items until the room is full."""

    def __init__(self, present: frozenset[int], known: Sequence[str], room: int, shortener: Shortener) -> None:
        self._present = present
        self._shortener = shortener
        self._room = room
        self._free = room
        self._framed: set[str] = set()
        self._words = [_words_of(line) for line in known]
        self.used: list[UsedItem] = []
        self.left_out: list[LeftOut] = []

    def _is_said(self, words: frozenset[str]) -> bool:
        from prefold.recall.same import texts_say_the_same  # here: it brings numpy, and most reads recall nothing

        return any(texts_say_the_same(words, other) for other in self._words)

    def take(self, items: Sequence[RecalledItem], most: int) -> list[RecalledItem]:
        """Takes what fits into ``most`` tokens; what had no room is given back."""
        before = self._free
        without_room = []
        for item in items:
            words = _words_of(item.text)
            if item.kind == "turn" and item.seq in self._present:
                self.left_out.append(_left(item, "in_context"))
            elif self._is_said(words):
                self.left_out.append(_left(item, "near_duplicate"))
            elif (fitted := self._fitted(item, min(self._free, most - (before - self._free)))) is None:
                without_room.append(item)
            else:
                self.used.append(fitted)
                self._words.append(words)
        return without_room

    def _fitted(self, item: RecalledItem, free: int) -> UsedItem | None:
        part = next(title for kinds, _, title, _ in _PARTS if item.kind in kinds)
        frame = 0 if part in self._framed else _FRAME_TOKENS
        head = _head(item)
        most = min(free - frame, self._room // _MOST_OF_ROOM) - self._shortener.count(head) - 2
        text = neutralise(_flat(item))
        if self._shortener.count(text) > most:
            if most < _WORTH_CLIPPING:
                return None
            text = neutralise(_passage(item, most)) or text
        shown = head + self._shortener.cut_text(text, most)[0]
        used = UsedItem(item, self._shortener.count(shown) + 1, shown)
        if used.tokens + frame > free:
            return None
        self._framed.add(part)
        self._free -= used.tokens + frame
        return used


def _passage(item: RecalledItem, room: int) -> str:
    """Of a long turn what was asked for, between marks of what is left out; empty: nothing of it stands out."""
    from prefold.recall.excerpts import passage_for  # here: it brings a stemmer, and most reads recall nothing

    passage = passage_for(item.text, item.asked, room - _MARKS_TOKENS) if item.kind == "turn" and item.asked else ""
    return f"[…] {passage} […]" if passage else ""


def _flat(item: RecalledItem) -> str:
    """A fact is one line, whatever was said; quotes of another conversation have round brackets, both of them."""
    if item.kind == "fact":
        return " ".join(item.text.split())
    return item.text.strip() if item.kind == "turn" else _QUOTED.sub(r"(\1)", item.text.strip())


def _head(item: RecalledItem) -> str:
    at = f" {neutralise(item.ts)}" if item.ts else ""  # as it was published: any one line
    if item.kind == "turn":
        return f"[{item.seq} {item.role}{at}] "
    if item.kind == "fact":
        return "- "
    return f"[{item.kind}{at}] "


def _framed(_kinds: Sequence[str], title: str, end: str, _share: float, used: Sequence[UsedItem]) -> list[str]:
    return [opening(title), *(one.shown for one in used), closing(end)]


def _left(item: RecalledItem, reason: str) -> LeftOut:
    if item.kind == "turn":
        return LeftOut("recall", None, reason, item.seq, item.seq)
    return LeftOut("recall", None, reason, kind=item.kind, id=item.id)


def _words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))
