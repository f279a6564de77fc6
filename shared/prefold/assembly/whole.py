"""A context that is served as it is stored: what nearly every read without a query asks for, by the short way.

Fragments are not taken apart: their heads are checked, and what stands between them is spliced. Where anything has to
be cut, marked or explained there is no short way.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from prefold.assembly.budget import raw_room, served_sections, served_tokens, thousandths
from prefold.assembly.groups import WINDOW, section_of_part
from prefold.assembly.pinned_text import pinned_text
from prefold.assembly.plan import joined_system
from prefold.assembly.served import ServedContext
from prefold.storage.types import StoredContext

__all__ = ["Spliced", "served_whole", "spliced_of", "whole"]

_HEAD = rb'\{"role":"(?:user|assistant)","seq":[0-9]+,'
_TURN = re.compile(_HEAD + rb'"tokens":[0-9]+,"content":\[').match
_PART = re.compile(_HEAD + rb'"part":"([a-z_]+)","tokens":([0-9]+),"content":\[').match
_EXPLAINED = (b"gap", b"short")
"""Parts that the answer has to account for."""
_ROLE_AT = len(b'{"role":"')
_USER = ord("u")
_NEXT = (b']},{"role":"assistant","content":[', b']},{"role":"user","content":[')
"""The end of a message and the beginning of another."""


class Spliced(NamedTuple):
    """The messages of the fragments so far. What comes later within a version only adds to them."""

    messages: bytes = b""
    """The JSON array but for the end of the last message and its own."""
    sections: Mapping[str, int] = MappingProxyType({})
    """Raw tokens by section in the order in which they begin; those of whole turns are not counted here."""
    role: int = 0
    """First letter of the last message's role."""

    def counted(self, tokens: int) -> dict[str, int]:
        """The sections of fragments whose raw tokens are so many."""
        counted = dict(self.sections)
        if WINDOW in counted:
            counted[WINDOW] += tokens - sum(counted.values())
        return counted


def whole(stored: StoredContext) -> ServedContext | None:
    """What ``assemble`` gives in Anthropic's form without budget, profile and recall; None: it is not so simple."""
    spliced = spliced_of(stored)
    return None if spliced is None else served_whole(stored, spliced)


def spliced_of(stored: StoredContext, before: Spliced | None = None) -> Spliced | None:
    """The fragments of the stored context; None: one of them needs a closer look.

    ``before``: those up to an earlier end of the same version, after which ``stored.body`` begins.
    """
    if before is not None:
        return _spliced(stored.body, 0, before) if stored.body else before
    return _spliced(stored.body, stored.body.find(b"\n") + 1, Spliced())


def served_whole(stored: StoredContext, spliced: Spliced) -> ServedContext | None:
    """All of the fragments, with what stands before them; None: there is no room, or something stands beside them."""
    pinned = pinned_text(stored.state)
    if pinned.noted or stored.context_tokens is None:
        return None
    fixed = {
        "system": stored.system_tokens if stored.system.strip() else 0,
        "state": stored.state_tokens if pinned.stated.strip() else 0,
        "tools": stored.tools_tokens,
    }
    sections = spliced.counted(stored.context_tokens)
    raw = {name: tokens for name, tokens in (*fixed.items(), *sections.items()) if tokens}
    total, per_mille = sum(raw.values()), thousandths(stored.calibration)
    if total > raw_room(stored.hard_limit_tokens, per_mille):
        return None
    return ServedContext(
        version=stored.version,
        covers_to=stored.covers_to,
        status=stored.status,
        system=joined_system(stored.system, pinned.stated),
        messages=spliced.messages + b"]}]" if spliced.messages else b"[]",
        total_tokens=served_tokens(total, per_mille),
        sections=served_sections(raw, per_mille),
        recalled=(),
        left_out=(),
        open_calls=stored.open_calls,
    )


def _spliced(lines: bytes, at: int, before: Spliced) -> Spliced | None:
    """``before`` and the lines from ``at``."""
    pieces, sections = [before.messages], dict(before.sections)
    find, add = lines.find, pieces.append
    role_before, end = before.role, len(lines)
    has_turns = WINDOW in sections
    while at < end:
        line_end = find(b"\n", at)
        if lines[line_end - 2 : line_end] != b"]}":
            return None
        head = _TURN(lines, at)
        if head is None:
            head = _PART(lines, at)
            if head is None or head[1] in _EXPLAINED:
                return None
            section = section_of_part(head[1].decode())
            sections[section] = sections.get(section, 0) + int(head[2])
        elif not has_turns:
            sections.setdefault(WINDOW, 0)
            has_turns = True
        start = head.end()
        if start < line_end - 2:
            role = lines[at + _ROLE_AT]
            add(b"," if role == role_before else _NEXT[role == _USER])
            add(lines[start : line_end - 2])
            role_before = role
        at = line_end + 1
    if not before.messages and len(pieces) > 1:
        pieces[1] = b"[" + pieces[1][len(b"]},") :]  # no message ends there
    return Spliced(b"".join(pieces), sections, role_before)
