"""From the storage's view of a session's summaries to what is answered, and from a PUT to what is stored."""

import msgspec

from prefold.gateway import summary_answers as answers
from prefold.gateway.summary_answers import SharedPrefixState
from prefold.storage.moments import iso_time
from prefold.storage.session_options import SharedPrefix
from prefold.storage.types import ModelUsage, SessionView

__all__ = ["active_of", "iso_time", "shared_prefix_of", "standby_of", "threshold_of", "usage_of"]


class _Record(msgspec.Struct, frozen=True):
    """What of a summary's record is shown; a build writes more, and an older one wrote less."""

    engine: str | None = None
    instead_of: str | None = None
    because: str | None = None
    coverage: float | None = None
    coverage_before: float | None = None
    built_at_ms: int | None = None


_NO_RECORD = _Record()


def active_of(view: SessionView) -> answers.ActiveSummary:
    """The summary that stands in the context."""
    record = _record(view.active.record) if view.active else _NO_RECORD
    return answers.ActiveSummary(
        covers_to=view.covers_to,
        engine=record.engine,
        instead_of=record.instead_of,
        because=record.because,
        coverage=record.coverage,
        coverage_before=record.coverage_before,
        built_at=None if record.built_at_ms is None else iso_time(record.built_at_ms),
    )


def standby_of(view: SessionView) -> answers.Standby | None:
    """The one that waits."""
    standby = view.standby
    if standby is None:
        return None
    record = _record(standby.record)
    return answers.Standby(
        covers_to=standby.covers_to,
        built_at=iso_time(standby.built_at_ms),
        coverage=standby.coverage,
        tokens=standby.tokens,
        engine=record.engine,
        instead_of=record.instead_of,
        because=record.because,
        coverage_before=record.coverage_before,
    )


def threshold_of(view: SessionView) -> answers.SoftThreshold:
    """Where the soft threshold is, and why."""
    pace = view.pace
    return answers.SoftThreshold(
        tokens=view.soft_threshold_tokens,
        ratio=pace.ratio if pace else view.soft_ratio or 0.0,
        adaptive=pace.adaptive if pace else False,
        tokens_per_minute=pace.tokens_per_minute if pace else 0.0,
        build_seconds=pace.build_seconds if pace else 0.0,
    )


def usage_of(usage: ModelUsage) -> answers.SummaryUsage:
    """What the summaries took."""
    return answers.SummaryUsage(
        calls=usage.calls,
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=usage.micro_usd / 1_000_000,
    )


def shared_prefix_of(view: SessionView) -> SharedPrefixState | None:
    """The setting as it stands; ``None`` when it is off."""
    if view.shared_prefix in ("", "{}"):
        return None
    given = msgspec.json.decode(view.shared_prefix, type=SharedPrefix)
    return SharedPrefixState(
        enabled=given.enabled is True,
        cache=given.cache,
        thinking=given.thinking,
        tool_choice=given.tool_choice,
        output_config=given.output_config,
        waits_for=None if view.model else "model",
    )


def _record(record: str) -> _Record:
    try:
        return msgspec.json.decode(record, type=_Record)
    except msgspec.DecodeError:  # an empty one, or of another version: the answer is no reason to fail
        return _NO_RECORD
