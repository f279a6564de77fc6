"""From what the storage gives to the results that HTTP's answers are read into."""

from typing import Any

from prefold.assembly import Format, ServedContext
from prefold.assembly.served import shown_left_out, shown_recall
from prefold.client.answers import parse_context
from prefold.client.memory_answers import parse_state
from prefold.client.memory_results import State
from prefold.client.results import (
    Appended,
    AppendedTurn,
    BuildState,
    Context,
    ContextState,
    ForkOrigin,
    JsonObject,
    Session,
    SoftThreshold,
    StandbyState,
    SummaryFacts,
    SummaryUsage,
)
from prefold.conversation.shapes import msgspec
from prefold.pinned import Pinned
from prefold.storage.memory_types import StoredState
from prefold.storage.moments import iso_time
from prefold.storage.types import AppendResult, SessionView

__all__ = ["appended_of", "context_of", "session_of", "state_of"]

_RECORDED = ("engine", "instead_of", "because", "coverage", "coverage_before")


def appended_of(result: AppendResult, durability: str) -> Appended:
    """Of an append."""
    return Appended(
        turns=tuple(AppendedTurn(one.id, one.seq, one.tokens, one.duplicate) for one in result.turns),
        context=ContextState(
            result.version, result.swaps, result.tokens, result.window_tokens, result.hard_limit_tokens, result.status
        ),
        durability=durability,
    )


def context_of(served: ServedContext, form: Format) -> Context:
    """Of a context, as a gateway would answer it."""
    answer = {
        **served.head(),
        "messages": msgspec.json.decode(served.messages),
        "tokens": {"total": served.total_tokens, "sections": dict(served.sections)},
        "recalled": [shown_recall(one) for one in served.recalled],
        "left_out": [shown_left_out(one) for one in served.left_out],
        "open_calls": served.open_calls,
    }
    return parse_context(answer, form)


def state_of(stored: StoredState, pinned: Pinned) -> State:
    """Of a pinned state."""
    shown: JsonObject = {
        "version": stored.version,
        "tokens": pinned.tokens,
        "cap_tokens": stored.cap_tokens,
        "state": msgspec.json.decode(msgspec.json.encode(pinned.state)),
        "proposals": msgspec.json.decode(msgspec.json.encode(pinned.proposals)),
    }
    return parse_state(shown)


def session_of(view: SessionView) -> Session:
    """Of a session as it stands."""
    build, origin, pace, used = view.build, view.forked_from, view.pace, view.usage
    return Session(
        session=view.ref.session,
        user=view.user or None,
        hard_limit_tokens=view.hard_limit_tokens,
        soft_threshold_tokens=view.soft_threshold_tokens,
        head_seq=view.head_seq,
        version=view.version,
        swaps=view.swaps,
        status=view.status,
        degraded=view.degraded,
        tokens=view.tokens,
        log_tokens=view.log_tokens,
        covers_to=view.covers_to,
        standby=_standby(view),
        build=BuildState(build.covers_to) if build else None,
        limit_crossings=view.limit_crossings,
        ready_crossings=view.ready_crossings,
        embedded_to=view.embedded_to,
        forked_from=ForkOrigin(origin.session, origin.at_seq) if origin else None,
        active=_facts(view.active.record) if view.active else SummaryFacts(),
        soft_threshold=SoftThreshold(
            tokens=view.soft_threshold_tokens,
            ratio=pace.ratio if pace else view.soft_ratio or 0.0,
            adaptive=pace.adaptive if pace else False,
            tokens_per_minute=pace.tokens_per_minute if pace else 0.0,
            build_seconds=pace.build_seconds if pace else 0.0,
        ),
        usage=SummaryUsage(
            used.calls,
            used.input_tokens,
            used.cache_read_tokens,
            used.cache_write_tokens,
            used.output_tokens,
            used.micro_usd / 1_000_000,
        ),
        last_build_error=view.last_build_error or None,
        resting_until_tokens=view.resting_until_tokens or None,
        shared_prefix=_shared_prefix(view),
        model=view.model or None,
        keep_recent_turns=view.keep_recent_turns,
        calibration=view.calibration,
        system=view.system or None,
        tools=tuple(_json(view.tools)) if view.tools else None,
        metadata=_json(view.metadata) if view.metadata else None,
        close_after_seconds=view.close_after_seconds,
        closed_at=iso_time(view.closed_at_ms) if view.closed_at_ms else None,
        remembered_to=view.remembered_to,
        state_cap_tokens=view.state_cap_tokens,
        proposals=view.proposals,
        created_at=iso_time(view.created_at_ms),
        updated_at=iso_time(view.updated_at_ms),
    )


def _standby(view: SessionView) -> StandbyState | None:
    standby = view.standby
    if standby is None:
        return None
    facts = _facts(standby.record, built_at_ms=standby.built_at_ms, coverage=standby.coverage)
    return StandbyState(standby.covers_to, standby.tokens, standby.coverage, facts)


def _facts(record: str, **known: Any) -> SummaryFacts:
    """Of the record that a build stored with its summary; an empty one, or of another version, tells less."""
    try:
        told = {**_json(record), **known}
    except (ValueError, TypeError):
        told = known
    at_ms = told.get("built_at_ms")
    built_at = None if at_ms is None else iso_time(at_ms)
    return SummaryFacts(**{name: told.get(name) for name in _RECORDED}, built_at=built_at)


def _shared_prefix(view: SessionView) -> JsonObject | None:
    if view.shared_prefix in ("", "{}"):
        return None
    given = _json(view.shared_prefix)
    shown = {name: given.get(name) for name in ("thinking", "tool_choice", "output_config")}
    waits_for = None if view.model else "model"
    return {"enabled": given.get("enabled") is True, "cache": given.get("cache", "5m"), **shown, "waits_for": waits_for}


def _json(text: str) -> Any:
    return msgspec.json.decode(text)
