"""Edits, removals and rewinds: the arguments and replies of ``change_log.lua``."""

import asyncio
import random
import secrets
import struct
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from prefold.conversation.turns import PreparedTurn
from prefold.errors import (
    ConflictError,
    GoneError,
    InvalidInputError,
    NotFoundError,
    PrefoldError,
)
from prefold.storage import limits
from prefold.storage.append import STATUSES, Argument, changing, turn_args
from prefold.storage.types import ChangeResult, SessionRef

__all__ = ["Run", "change", "not_found", "wait_for_turn"]

Run = Callable[[Sequence[Argument]], Awaitable[list[Any]]]
"""Runs the script with what follows its clock and label."""
Operation = Literal["rewind", "edit", "remove"]

_PATIENCE_SECONDS = 5.0
"""So long a change waits for another one's end."""


async def change(
    tenant: str, session: str, operation: Operation, target: int | str, turn: PreparedTurn | None, run: Run
) -> ChangeResult:
    """Asks until the change is published. A caller that dies leaves no trace but a stage that ends by itself."""
    token, incarnation = secrets.token_hex(8), ""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    rest: list[Argument] = turn_args(turn) if turn is not None else []
    while True:
        bounds = (limits.STAGE_ENTRIES, limits.STAGE_BYTES)
        reply = await run([incarnation, operation, target, token, *bounds, *rest])
        verdict = reply[0].decode()
        if verdict == "more":
            incarnation = reply[1].decode()
        elif verdict == "changing":
            await wait_for_turn(reply[1], deadline)
        elif verdict in ("ok", "same"):
            return _result(tenant, session, verdict == "ok", reply)
        else:
            raise _refusal(verdict, session, target, reply)


async def wait_for_turn(held_ms: int, deadline: float) -> None:
    """Waits a little for whoever changes the session now; ``OverloadedError`` after ``deadline``."""
    if time.monotonic() > deadline:
        raise changing()
    await asyncio.sleep(min(held_ms / 1000, random.uniform(0.005, 0.05)))  # noqa: S311 (jitter)


def _result(tenant: str, session: str, changed: bool, reply: list[Any]) -> ChangeResult:
    _, incarnation, turns, first, last, packed = reply
    head, version, tokens, window, hard, swaps, status = struct.unpack(">7q", packed)
    return ChangeResult(
        ref=SessionRef(tenant, session, incarnation.decode()),
        changed=changed,
        turns=turns,
        first_seq=first,
        last_seq=last,
        head_seq=head,
        version=version,
        tokens=tokens,
        window_tokens=window,
        hard_limit_tokens=hard,
        swaps=swaps,
        status=STATUSES[status],
    )


def _refusal(verdict: str, session: str, target: int | str, reply: list[Any]) -> PrefoldError:
    match verdict:
        case "none":
            return not_found(session)
        case "gone":
            return GoneError("the session was erased; PUT it to create it anew")
        case "ahead":
            return InvalidInputError(f"the newest turn has seq {reply[1]}", code="seq_ahead", field="to_seq")
        case "unknown":
            return NotFoundError(f"there is no turn {target!r}", code="turn_not_found")
        case "rewound":
            return ConflictError(f"turn {target!r} was taken back by a rewind", code="turn_rewound")
        case "removed":
            return ConflictError(f"turn {target!r} was removed", code="turn_removed")
        case "no_room":
            detail = f"the system prompt may grow by {reply[1]} tokens at most"
            return InvalidInputError(detail, code="no_room", field="content")
        case "shape":
            detail = f"turn {target!r} keeps its kind, its role and its calls; only what it says can change"
            return ConflictError(detail, code="turn_shape")
    raise AssertionError(f"unknown verdict {verdict}")


def not_found(session: str) -> NotFoundError:
    """No such session of this tenant."""
    return NotFoundError(f"there is no session {session!r}", code="session_not_found")
