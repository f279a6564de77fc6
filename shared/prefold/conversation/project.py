"""The context string read for a provider: Anthropic's messages by joining bytes, or decoded for Python."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from prefold.conversation.shapes import msgspec
from prefold.conversation.turns import Role

_LINE = re.compile(rb'\{"role":"(user|assistant)","seq":(\d+),(?:"part":"([a-z_]+)",)?"tokens":(\d+),"content":\[')
_END = b"]}"
_MESSAGE_HEADS = {role: f'{{"role":"{role}","content":['.encode() for role in ("user", "assistant")}


class Fragment(NamedTuple):
    """One line of the context. A tuple, because a read makes hundreds."""

    role: Role
    seq: int
    """0 for a line that belongs to no turn."""
    part: str
    """Empty for a turn in full."""
    tokens: int
    """Raw."""
    content: bytes
    """Blocks joined by commas, without the brackets around them."""


def parse_lines(body: bytes) -> tuple[dict[str, Any], list[Fragment]]:
    """Header and fragments of a context string; content is not decoded.

    Raises ``ValueError`` on a line that no script of ours writes: better no context than a wrong one.
    """
    header, *lines = body.split(b"\n")
    return msgspec.json.decode(header), [_fragment(line) for line in lines if line]


def _fragment(line: bytes) -> Fragment:
    found = _LINE.match(line)
    if found is None or not line.endswith(_END):
        raise ValueError(f"not a line of a context: {line[:60]!r}")
    role, seq, part, tokens = found.groups()
    known: Role = "user" if role == b"user" else "assistant"
    return Fragment(known, int(seq), part.decode() if part else "", int(tokens), line[found.end() : -len(_END)])


def anthropic_messages_json(fragments: Sequence[Fragment]) -> bytes:
    """``messages`` as Anthropic takes them, spliced: neighbours of one role become one message."""
    return b"[" + b",".join(_MESSAGE_HEADS[role] + content + _END for role, content in _joined(fragments)) + b"]"


def anthropic_messages(fragments: Sequence[Fragment]) -> list[dict[str, Any]]:
    """The same, decoded."""
    # msgspec, because orjson turns integers beyond 64 bits into floats.
    return msgspec.json.decode(anthropic_messages_json(fragments), type=list[dict[str, Any]])


def _joined(fragments: Sequence[Fragment]) -> Iterator[tuple[Role, bytes]]:
    filled = (fragment for fragment in fragments if fragment.content)
    for role, group in groupby(filled, key=lambda fragment: fragment.role):
        yield role, b",".join(fragment.content for fragment in group)
