"""From the gateway's JSON of a session to the result. Members that we do not know are ignored, new ones may be absent."""

from collections.abc import Mapping
from typing import Any

from prefold.client.results import (
    BuildState,
    ForkOrigin,
    JsonObject,
    Session,
    SoftThreshold,
    StandbyState,
    SummaryFacts,
    SummaryUsage,
)

_TAKEN = (
    "model",
    "calibration",
    "system",
    "metadata",
    "close_after_seconds",
    "closed_at",
    "remembered_to",
    "state_cap_tokens",
    "proposals",
    "created_at",
    "updated_at",
)


def parse_session(answer: JsonObject) -> Session:
    """Of ``PUT`` and ``GET /v1/sessions/{session}``."""
    build, origin, tools = answer["build"], answer.get("forked_from"), answer.get("tools")
    return Session(
        session=answer["session"],
        user=answer.get("user"),
        hidden="user" not in answer,
        hard_limit_tokens=answer["limits"]["hard_limit_tokens"],
        soft_threshold_tokens=answer["limits"]["soft_threshold_tokens"],
        head_seq=answer["head_seq"],
        version=answer["version"],
        swaps=answer["swaps"],
        status=answer["status"],
        degraded=answer["degraded"],
        tokens=answer["tokens"]["total"],
        log_tokens=answer["tokens"]["log"],
        covers_to=answer["active"]["covers_to"],
        standby=_standby(answer["standby"]),
        build=BuildState(build["covers_to"]) if build else None,
        limit_crossings=answer["limit_crossings"],
        ready_crossings=answer["ready_crossings"],
        embedded_to=answer["embedded_to"],
        forked_from=ForkOrigin(origin["session"], origin["at_seq"]) if origin else None,
        active=_facts(answer["active"]),
        soft_threshold=_threshold(answer.get("soft_threshold")),
        usage=_usage(answer.get("usage")),
        last_build_error=answer.get("last_build_error"),
        resting_until_tokens=answer.get("resting_until_tokens"),
        shared_prefix=answer.get("shared_prefix"),
        keep_recent_turns=answer["limits"].get("keep_recent_turns", 0),
        tools=tuple(tools) if tools is not None else None,
        **{name: answer[name] for name in _TAKEN if name in answer},
    )


def _standby(standby: Mapping[str, Any] | None) -> StandbyState | None:
    if standby is None:
        return None
    return StandbyState(standby["covers_to"], standby["tokens"], standby["coverage"], _facts(standby))


def _facts(summary: Mapping[str, Any]) -> SummaryFacts:
    return SummaryFacts(
        engine=summary.get("engine"),
        instead_of=summary.get("instead_of"),
        because=summary.get("because"),
        coverage=summary.get("coverage"),
        coverage_before=summary.get("coverage_before"),
        built_at=summary.get("built_at"),
    )


def _threshold(threshold: Mapping[str, Any] | None) -> SoftThreshold | None:
    if threshold is None:
        return None
    return SoftThreshold(
        tokens=threshold["tokens"],
        ratio=threshold["ratio"],
        adaptive=threshold["adaptive"],
        tokens_per_minute=threshold["tokens_per_minute"],
        build_seconds=threshold["build_seconds"],
    )


def _usage(usage: Mapping[str, Any] | None) -> SummaryUsage | None:
    if usage is None:
        return None
    return SummaryUsage(
        calls=usage["calls"],
        input_tokens=usage["input_tokens"],
        cache_read_tokens=usage["cache_read_tokens"],
        cache_write_tokens=usage["cache_write_tokens"],
        output_tokens=usage["output_tokens"],
        cost_usd=usage["cost_usd"],
    )
