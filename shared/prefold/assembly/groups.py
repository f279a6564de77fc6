"""Fragments of a context in the units that may yield. Content stays bytes; only tool rounds are looked into."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prefold.conversation.markers import GAP_HEAD
from prefold.conversation.project import Fragment
from prefold.conversation.shapes import msgspec

HEAD_PARTS = ("task", "first_message", "ledger", "summary")
"""Parts of the head, the one that stays longest first."""

WINDOW = "window"
"""The section of the turns."""
_MARKERS = ("opener", "gap")
_RANGE = re.compile(rb"(\d+)-(\d+)")


@dataclass(frozen=True, slots=True)
class Group:
    """Fragments that stand or fall together: a plain turn, or a tool round with all that closes it."""

    fragments: tuple[Fragment, ...]
    tokens: int
    """Raw."""

    @classmethod
    def of(cls, fragments: Sequence[Fragment]) -> "Group":
        """A group of these."""
        return cls(tuple(fragments), sum(fragment.tokens for fragment in fragments))

    @property
    def first_seq(self) -> int:
        """Its first turn."""
        return self._seqs()[0]

    @property
    def last_seq(self) -> int:
        """Its last turn."""
        return self._seqs()[-1]

    @property
    def is_plain_user(self) -> bool:
        """True for text of the user, without any tool block."""
        return all(fragment.role == "user" and not has_tools(fragment) for fragment in self.fragments)

    def _seqs(self) -> list[int]:
        # An opener has no turn, and a closer bears the number of the turn after the round.
        own = [fragment.seq for fragment in self.fragments if fragment.part not in ("opener", "closer")]
        return own or [fragment.seq for fragment in self.fragments]


def section_of(fragment: Fragment) -> str:
    """Name under which the fragment's tokens are reported."""
    return section_of_part(fragment.part)


def section_of_part(part: str) -> str:
    """The same of a fragment's part."""
    if part in HEAD_PARTS:
        return part
    return "markers" if part in _MARKERS else WINDOW


def blocks_of(fragment: Fragment) -> list[dict[str, Any]]:
    """Decoded content."""
    blocks: list[dict[str, Any]] = msgspec.json.decode(b"[" + fragment.content + b"]")
    return blocks


def has_tools(fragment: Fragment) -> bool:
    """True for a fragment with a tool call or a tool result."""
    calls, results = _tool_ids(fragment)
    return bool(calls or results)


def may_be_followed(fragments: Sequence[Fragment]) -> bool:
    """True when text of the user may be added at the end: after the user's own, or after results of every call."""
    answered: set[str] = set()
    called: set[str] = set()
    for fragment in reversed(fragments):
        calls, results = _tool_ids(fragment)
        if fragment.role == "user" and called:
            break
        answered |= results
        called |= calls
        if fragment.role == "assistant" and not calls:
            break
    return bool(fragments) and fragments[-1].role == "user" and called <= answered


def gap_range(fragment: Fragment) -> tuple[int, int]:
    """First and last turn that a gap names."""
    found = _RANGE.match(fragment.content, len(GAP_HEAD))
    return (int(found[1]), int(found[2])) if found else (fragment.seq, fragment.seq)


def group_fragments(fragments: Sequence[Fragment]) -> list[Group]:
    """Those of the window as whole groups, oldest first. A tool round is never split."""
    groups: list[Group] = []
    pending: list[Fragment] = []
    waiting: set[str] = set()
    for fragment in fragments:
        calls, results = _tool_ids(fragment)
        if pending and not waiting and not results:
            groups.append(Group.of(pending))
            pending = []
        pending.append(fragment)
        waiting = (waiting | calls) - results
    if pending:
        groups.append(Group.of(pending))
    return groups


def _tool_ids(fragment: Fragment) -> tuple[set[str], set[str]]:
    """Ids of the calls that the fragment makes and of those that it answers."""
    if b'"tool_' not in fragment.content:  # the cheap test spares the decoding of nearly every fragment
        return set(), set()
    blocks = blocks_of(fragment)
    calls = {block["id"] for block in blocks if block["type"] == "tool_use"}
    return calls, {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
