"""Sessions on a real server, driven with turns as a producer writes them."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import orjson

from prefold.conversation import prepare_turn
from prefold.conversation.project import Fragment, parse_lines
from prefold.conversation.turns import PreparedTurn
from prefold.storage import Sessions
from prefold.storage.types import AppendResult, BuildTicket, BuiltSummary, HeadFragment, SessionRef
from prefold.tokens import load_counter

TENANT = "acme"
SESSION = "s1"
LEASE_MS = 20_000
_ids: Iterator[int] = count(1)


def turn(role: str, content: Any, **members: Any) -> PreparedTurn:
    """One turn as ``POST …/turns`` takes it, prepared."""
    raw = {"role": role, "content": content, **members}
    return prepare_turn(raw, 0, load_counter(), lambda: f"auto-{next(_ids)}")


def call(*ids: str, text: str = "Let me look.", **arguments: Any) -> PreparedTurn:
    """An assistant turn with a call for each id."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
    blocks += [{"type": "tool_use", "id": one, "name": "lookup", "input": arguments or {"q": one}} for one in ids]
    return turn("assistant", blocks)


def results(*ids: str, text: str = "", body: str = "found") -> PreparedTurn:
    """A user turn with a result for each id, perhaps with words beside them."""
    blocks: list[dict[str, Any]] = [{"type": "tool_result", "tool_use_id": one, "content": body} for one in ids]
    return turn("user", [*blocks, {"type": "text", "text": text}] if text else blocks)


async def append(sessions: Sessions, *turns: PreparedTurn, session: str = SESSION) -> AppendResult:
    return await sessions.append(TENANT, session, turns)


async def fragments(sessions: Sessions, session: str = SESSION) -> list[Fragment]:
    """The context's lines."""
    return parse_lines((await sessions.read_context(TENANT, session)).body)[1]


async def blocks_of(sessions: Sessions, session: str = SESSION) -> list[tuple[str, dict[str, Any]]]:
    """(role, block) of the whole context in order."""
    return [
        (line.role, block)
        for line in await fragments(sessions, session)
        for block in orjson.loads(b"[" + line.content + b"]")
    ]


async def texts_of(sessions: Sessions, session: str = SESSION) -> list[str]:
    """The text blocks of the context."""
    return [block["text"] for _, block in await blocks_of(sessions, session) if block["type"] == "text"]


def summary(text: str = "SUMMARY", tokens: int = 20, *, task: bool = False) -> BuiltSummary:
    """A small head."""
    parts = [HeadFragment("first_message", b'{"type":"text","text":"FIRST"}', 8)]
    if task:
        parts.append(HeadFragment("task", b'{"type":"text","text":"TASK"}', 8))
    parts.append(HeadFragment("summary", orjson.dumps({"type": "text", "text": text}), tokens))
    return BuiltSummary(tuple(parts), '{"engine":"test"}', 1.0)


async def begin(sessions: Sessions, ref: SessionRef) -> BuildTicket:
    """A ticket; a refusal is an error."""
    ticket = await sessions.begin_build(ref.tenant, ref.session, ref.incarnation, LEASE_MS)
    assert isinstance(ticket, BuildTicket), ticket
    return ticket
