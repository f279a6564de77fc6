"""A session's packed state, and the views made of it."""

import math
from collections import namedtuple
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from prefold.conversation.encoding import orjson
from prefold.storage import limits
from prefold.storage.fields import INCARNATION_CHARACTERS, STATE_FIELDS, STATE_STRUCT
from prefold.storage.types import (
    BuildView,
    ForkOrigin,
    ModelUsage,
    Pace,
    Proposals,
    SessionRef,
    SessionView,
    StandbyView,
    Status,
    StoredContext,
)

__all__ = [
    "CONTEXT_FIELDS",
    "META_FIELDS",
    "STANDBY_FIELDS",
    "VIEW_FIELDS",
    "SessionState",
    "context_of",
    "join_system",
    "origin_of",
    "proposals_of",
    "record_of",
    "view_of",
]

META_FIELDS = (
    "state",
    "user",
    "model",
    "system",
    "lead_system",
    "tools",
    "metadata",
    "embedded",
    "build_error",
    "build_epoch",
    "pinned",
)
CONTEXT_FIELDS = ("state", "user", "model", "system", "lead_system", "pinned")
"""Those that a context read needs."""
VIEW_FIELDS = (
    *META_FIELDS,
    "forked_from",
    "forks",
    "shared_prefix",
    "usage",
    "remembered",
    "closed",
    "state_cap",
    "proposals",
)
STANDBY_FIELDS = ("built_at", "coverage", "record")


_Fields = namedtuple("_Fields", (*STATE_FIELDS, "incarnation", "open_calls"))  # type: ignore[misc]  # noqa: PYI024  # named in one place


class SessionState(_Fields):
    """The packed state by name; see ``fields``. Token counts are raw. A tuple, because every read of a context makes one."""

    __slots__ = ()
    incarnation: str
    open_calls: tuple[str, ...]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> int: ...

    @classmethod
    def unpack(cls, packed: bytes) -> "SessionState":
        size = STATE_STRUCT.size
        incarnation = packed[size : size + INCARNATION_CHARACTERS].decode()
        open_calls = tuple(packed[size + INCARNATION_CHARACTERS :].decode().split())
        return cls._make((*STATE_STRUCT.unpack_from(packed), incarnation, open_calls))

    @property
    def numbers(self) -> dict[str, int]:
        """All numbers by name."""
        return dict(zip(STATE_FIELDS, self, strict=False))

    def served(self, raw: int) -> int:
        """Served tokens of raw ones."""
        return math.ceil(raw * self.cal / 1000)

    @property
    def room(self) -> int:
        """Raw tokens that the context may hold beside system and tools."""
        return self.hard * 1000 // self.cal - self.fix

    @property
    def soft_threshold(self) -> int:
        """Served tokens at which a standby is wanted."""
        return self.served(self.fix + self.room * self.ratio // 1000)

    @property
    def status(self) -> Status:
        if self.deg:
            return "degraded"
        if self.fresh:
            return "swapped"
        return "soft" if self.tok >= self.room * self.ratio // 1000 else "ok"


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode()


def _unescape(value: bytes | None) -> str:
    return "" if not value else cast("str", orjson.loads(b'"' + value + b'"'))


def join_system(registered: bytes | None, leading: bytes | None) -> str:
    """The system prompt: what the backend registered, then the turns that led."""
    return "\n\n".join(part for part in (_unescape(registered), _unescape(leading)) if part)


def context_of(tenant: str, session: str, body: bytes, meta: list[bytes | None], begin: int = 0) -> StoredContext:
    """The snapshot of a read, from the context string (or what follows its first ``begin`` bytes) and ``CONTEXT_FIELDS``."""
    packed, user, model, system, lead_system, pinned = meta
    state = SessionState.unpack(cast("bytes", packed))
    return StoredContext(
        ref=SessionRef(tenant, session, state.incarnation),
        body=body,
        version=state.ver,
        covers_to=state.cov,
        head_seq=state.head,
        status=state.status,
        system=join_system(system, lead_system),
        system_tokens=state.systok + state.leadtok,
        tools_tokens=state.tooltok,
        calibration=state.cal / 1000,
        hard_limit_tokens=state.hard,
        model=_text(model),
        open_calls=() if state.lost else state.open_calls,
        degraded=bool(state.deg),
        user=_text(user),
        asked_version=state.luver,
        state=pinned or b"",
        state_tokens=state.pintok,
        context_tokens=state.tok,
        begin=begin,
        length=state.bytes,
    )


def _embedded_to(value: bytes | None) -> int:
    return int(value.split(b" ", 1)[0]) if value else 0


def _standby(state: SessionState, standby: list[Any]) -> StandbyView | None:
    if not state.nx or standby[0] is None:
        return None
    coverage = standby[1]
    return StandbyView(
        covers_to=state.nx,
        built_at_ms=int(standby[0]),
        coverage=float(coverage) if coverage else None,
        tokens=state.served(state.ntok + state.fix),
        record=_text(standby[2]),
    )


def record_of(body: bytes) -> str:
    """The record that stands with a stored summary: "covers_to tokens carries record", a line feed, the head."""
    return body.split(b"\n", 1)[0].split(b" ", 3)[3].decode()


def _closed_at(value: bytes | None, head: int) -> int:
    """Out of "head ms": a turn that came since has opened the session again."""
    seq, ms = map(int, value.split()) if value else (0, 0)
    return ms if seq == head else 0


def proposals_of(value: bytes | None) -> Proposals:
    """What becomes of proposed entries of the pinned state."""
    return "apply" if value == b"apply" else "hold"


def _pace(state: SessionState) -> Pace:
    """As the last append had it (``note_pace`` in the scripts)."""
    memory_ms = limits.milliseconds(limits.PACE_MEMORY)
    age_ms = max(limits.milliseconds(limits.PACE_LEAST), state.updated - state.created)
    span_ms = memory_ms * (1 - math.exp(-age_ms / memory_ms))
    per_minute = state.flow / 100 / span_ms * 60_000
    return Pace(bool(state.adapt), round(per_minute, 1), state.lead / 1000, state.ratio / 1000)


def _usage(value: bytes | None) -> ModelUsage:
    """Out of "calls input cache_read cache_write output micro_usd"."""
    return ModelUsage(*map(int, value.split())) if value else ModelUsage()


def _origin(value: bytes | None) -> ForkOrigin | None:
    """Out of ``tenant:session:incarnation last_seq``."""
    if not value:
        return None
    return ForkOrigin(origin_of(value)[0], int(value.split(b" ")[1]))


def origin_of(value: bytes) -> tuple[str, str]:
    """Session and incarnation that a fork was made of, out of ``tenant:session:incarnation last_seq``."""
    _, session, incarnation = value.decode().split(" ")[0].split(":")
    return unquote(session), incarnation


def view_of(
    tenant: str, session: str, meta: list[bytes | None], standby: list[Any], now_ms: int | None = None
) -> SessionView:
    """Everything that there is to say about a session, without its text."""
    fields = dict(zip(VIEW_FIELDS, meta, strict=True))
    state = SessionState.unpack(cast("bytes", fields["state"]))
    building = state.bcov > 0 and (now_ms is None or state.blease > now_ms)
    return SessionView(
        ref=SessionRef(tenant, session, state.incarnation),
        user=_text(fields["user"]),
        model=_text(fields["model"]),
        hard_limit_tokens=state.hard,
        soft_threshold_tokens=state.soft_threshold,
        keep_recent_turns=state.keep,
        head_seq=state.head,
        version=state.ver,
        swaps=state.swaps,
        status=state.status,
        degraded=bool(state.deg),
        tokens=state.served(state.tok + state.fix),
        window_tokens=state.served(state.tok - state.htok),
        fixed_tokens=state.served(state.fix),
        undegraded_tokens=state.served(state.full + state.fix),
        log_tokens=state.log,
        covers_to=state.cov,
        embedded_to=_embedded_to(fields["embedded"]),
        standby=_standby(state, standby),
        build=BuildView(state.bcov, int(fields["build_epoch"] or 0), state.blease) if building else None,
        last_build_error=_text(fields["build_error"]),
        limit_crossings=state.cross,
        ready_crossings=state.ready,
        created_at_ms=state.created,
        updated_at_ms=state.updated,
        calibration=state.cal / 1000,
        system=join_system(fields["system"], fields["lead_system"]),
        tools=_text(fields["tools"]),
        metadata=_text(fields["metadata"]),
        soft_ratio=state.ratio / 1000,
        changes=state.chg,
        forked_from=_origin(fields["forked_from"]),
        forks=tuple(_text(fields["forks"]).split("\n")) if fields["forks"] else (),
        pace=_pace(state),
        usage=_usage(fields["usage"]),
        shared_prefix=_text(fields["shared_prefix"]),
        resting_until_tokens=state.rest if state.rest > state.log else 0,
        remembered_to=int(fields["remembered"] or 0),
        closed_at_ms=_closed_at(fields["closed"], state.head),
        close_after_seconds=state.idle // 1000,
        state_cap_tokens=int(fields["state_cap"] or limits.STATE_CAP_TOKENS),
        proposals=proposals_of(fields["proposals"]),
    )
