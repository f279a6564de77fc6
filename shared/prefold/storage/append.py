"""The append script's arguments and reply."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from prefold.conversation.turns import PreparedTurn, TurnKind
from prefold.errors import ConflictError, GoneError, OverloadedError, RefusedError, TooLargeError
from prefold.storage import limits
from prefold.storage.fields import INCARNATION_CHARACTERS
from prefold.storage.types import AppendedTurn, AppendResult, SessionRef, Status

__all__ = ["STATUSES", "Argument", "Defaults", "append_args", "changing", "parse_append", "turn_args"]

Argument = str | bytes | int
STATUSES: tuple[Status, ...] = ("ok", "soft", "swapped", "degraded")


@dataclass(frozen=True)
class Defaults:
    """What a session starts with when nothing was set."""

    hard_limit_tokens: int = limits.DEFAULT_HARD_LIMIT_TOKENS
    soft_ratio: float | None = None
    """None: the threshold adapts."""
    keep_recent_turns: int = limits.DEFAULT_KEEP_RECENT_TURNS
    retention: timedelta = limits.RETENTION
    embed_grace: timedelta = limits.EMBED_GRACE
    close_after: timedelta = limits.CLOSE_AFTER
    lead: timedelta = limits.DEFAULT_LEAD
    """How long a build takes, for tenants of which nothing is known."""

    @cached_property
    def limits(self) -> str:
        """Limits of a new session, and how long a build takes, as one argument of the scripts."""
        return self.limits_with(limits.milliseconds(self.lead))

    def limits_with(self, lead_ms: int) -> str:
        """The same where it is known how long a build takes."""
        ratio = round((self.soft_ratio or 0) * 1000)
        idle_ms = limits.milliseconds(self.close_after)
        return f"{self.hard_limit_tokens} {ratio} {self.keep_recent_turns} {idle_ms} {lead_ms}"

    @cached_property
    def retention_ms(self) -> int:
        return limits.milliseconds(self.retention)

    @cached_property
    def embed_grace_ms(self) -> int:
        return limits.milliseconds(self.embed_grace)


def turn_args(turn: PreparedTurn) -> list[Argument]:
    """One turn as the scripts take it (``take_turn``)."""
    plain = turn.kind is TurnKind.PLAIN
    if not plain and turn.verbatim != "whole":
        raise AssertionError("only a plain turn's content is the same in log and context")
    args: list[Argument] = [
        turn.id,
        turn.digest,
        f"{turn.kind.value} {turn.role[0]} {turn.verbatim[0]}",
        turn.envelope,
        turn.tokens,
        turn.short_tokens,
        turn.content,
        (turn.short or b"") if turn.has_short else b"",
        turn.usage_input_tokens,
    ]
    if plain:
        return args
    short_pieces = turn.short_pieces if turn.has_short else ()
    args += (
        int(turn.has_thinking),
        turn.system_text,
        turn.system_tokens,
        len(turn.call_ids) or len(turn.results),
        len(short_pieces),
    )
    if turn.kind is TurnKind.CALLS:
        args += (*turn.call_ids, *turn.pieces, *short_pieces)
    for part in turn.results:
        args += (part.call_id, part.attributes, int(part.is_text), part.content, part.short or b"")
    return args


def append_args(
    label: str,
    incarnation: str,
    turns: Sequence[PreparedTurn],
    defaults: Defaults,
    now_ms: int | str,
    lead_ms: int | None = None,
) -> list[Argument]:
    """ARGV of ``append.lua``. ``incarnation`` serves when the session does not exist yet."""
    args: list[Argument] = [
        now_ms,
        incarnation,
        label,
        defaults.limits if lead_ms is None else defaults.limits_with(lead_ms),
        defaults.retention_ms,
        defaults.embed_grace_ms,
        len(turns),
    ]
    for turn in turns:
        args += turn_args(turn)
    return args


def parse_append(tenant: str, session: str, turns: Sequence[PreparedTurn], reply: bytes | list[bytes]) -> AppendResult:
    """The typed result, or ``ConflictError`` (turn_conflict, turn_rewound, turn_removed) or ``GoneError``."""
    if not isinstance(reply, bytes):
        raise _refusal(reply)
    numbers = struct.unpack_from(f">{7 + 3 * len(turns)}q", reply, INCARNATION_CHARACTERS)
    version, swaps, tokens, window, hard, status, swapped = numbers[:7]
    placed = tuple(
        AppendedTurn(turn.id, numbers[7 + 3 * i], numbers[8 + 3 * i], numbers[9 + 3 * i] == 1)
        for i, turn in enumerate(turns)
    )
    return AppendResult(
        ref=SessionRef(tenant, session, reply[:INCARNATION_CHARACTERS].decode()),
        turns=placed,
        version=version,
        swaps=swaps,
        tokens=tokens,
        window_tokens=window,
        hard_limit_tokens=hard,
        status=STATUSES[status],
        swapped_now=swapped == 1,
    )


def changing() -> OverloadedError:
    """Another call is changing the session, or has not said yet that it is one."""
    detail = "the session is being changed by another call"
    return OverloadedError(detail, code="changing", retry_after=timedelta(seconds=1))


def _refusal(reply: list[bytes]) -> RefusedError | OverloadedError:
    if reply[0] == b"too_large":
        most = limits.MOST_CONTEXT_BYTES // 2**20
        return TooLargeError(
            f"the context would grow over {most} MiB: send media by URL or lower the session's limit",
            code="context_too_large",
        )
    if reply[0] == b"changing":
        return changing()
    if reply[0] == b"gone":
        return GoneError("the session was erased; PUT it to create it anew")
    turn_id = reply[1].decode()
    if reply[0] == b"rewound":
        return ConflictError(f"turn {turn_id!r} was taken back by a rewind", code="turn_rewound")
    if reply[0] == b"removed":
        return ConflictError(f"turn {turn_id!r} was removed", code="turn_removed")
    return ConflictError(f"turn {turn_id!r} was published before with other content", code="turn_conflict")
