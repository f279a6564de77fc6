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

__all__ = [
    "PACKED_PARTS",
    "STATUSES",
    "Argument",
    "Defaults",
    "append_args",
    "changing",
    "packed_append",
    "parse_append",
    "turn_args",
]

Argument = str | bytes | int
PACKED_PARTS = 30
"""``EVALSHA``, the digest, the number of keys, 11 keys, 7 arguments and 9 of a plain turn."""
_PLAIN_TAGS = {
    (role, verbatim): b"\r\n$5\r\n%b\r\n$" % f"p {role[0]} {verbatim[0]}".encode()
    for role in ("user", "assistant")
    for verbatim in ("text", "blocks", "whole")
}
_MOST_PACKED = 1024
_ONE_TURN = struct.Struct(">10q")
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

    def packed_with(self, lead_ms: int | None) -> bytes:
        """Limits, retention, grace and a count of 1 as bulk strings of Redis's protocol."""
        packed = self._packed.get(lead_ms)
        if packed is None:
            if len(self._packed) > _MOST_PACKED:
                self._packed.clear()
            limited = self.limits if lead_ms is None else self.limits_with(lead_ms)
            parts = (limited, str(self.retention_ms), str(self.embed_grace_ms), "1")
            packed = b"".join(b"$%d\r\n%b\r\n" % (len(part), part.encode()) for part in parts)
            self._packed[lead_ms] = packed
        return packed

    @cached_property
    def _packed(self) -> dict[int | None, bytes]:
        return {}

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


def packed_append(
    head: bytes,
    label: bytes,
    incarnation: str,
    turn: PreparedTurn,
    defaults: Defaults,
    now_ms: int,
    lead_ms: int | None,
) -> bytes:
    """The call of ``append.lua`` for one plain turn as it goes over the wire: what packing ``append_args`` gives.

    ``head``: the command up to the last key, for an array of ``PACKED_PARTS``.
    """
    now, turn_id, usage = b"%d" % now_ms, turn.id.encode(), b"%d" % turn.usage_input_tokens
    tokens, short_tokens = b"%d" % turn.tokens, b"%d" % turn.short_tokens
    short = (turn.short or b"") if turn.has_short else b""
    return b"".join(
        (
            head,
            b"$%d\r\n%b\r\n$%d\r\n" % (len(now), now, len(incarnation)),
            b"%b\r\n$%d\r\n%b\r\n" % (incarnation.encode(), len(label), label),
            defaults.packed_with(lead_ms),
            b"$%d\r\n%b\r\n$%d\r\n" % (len(turn_id), turn_id, len(turn.digest)),
            turn.digest.encode(),
            _PLAIN_TAGS[turn.role, turn.verbatim],
            b"%d\r\n%b\r\n$%d\r\n%b\r\n" % (len(turn.envelope), turn.envelope, len(tokens), tokens),
            b"$%d\r\n%b\r\n$%d\r\n" % (len(short_tokens), short_tokens, len(turn.content)),
            turn.content,
            b"\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" % (len(short), short, len(usage), usage),
        )
    )


def parse_append(tenant: str, session: str, turns: Sequence[PreparedTurn], reply: bytes | list[bytes]) -> AppendResult:
    """The typed result, or ``ConflictError`` (turn_conflict, turn_rewound, turn_removed) or ``GoneError``."""
    if not isinstance(reply, bytes):
        raise _refusal(reply)
    if len(turns) == 1:
        version, swaps, tokens, window, hard, status, flags, seq, cost, duplicate = _ONE_TURN.unpack_from(
            reply, INCARNATION_CHARACTERS
        )
        placed: tuple[AppendedTurn, ...] = (AppendedTurn(turns[0].id, seq, cost, duplicate == 1),)
    else:
        numbers = struct.unpack_from(f">{7 + 3 * len(turns)}q", reply, INCARNATION_CHARACTERS)
        version, swaps, tokens, window, hard, status, flags = numbers[:7]
        placed = tuple(
            AppendedTurn(turn.id, numbers[7 + 3 * i], numbers[8 + 3 * i], numbers[9 + 3 * i] == 1)
            for i, turn in enumerate(turns)
        )
    return AppendResult(
        SessionRef(tenant, session, reply[:INCARNATION_CHARACTERS].decode()),
        placed,
        version,
        swaps,
        tokens,
        window,
        hard,
        STATUSES[status],
        flags & 1 == 1,
        flags & 2 == 2,
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
