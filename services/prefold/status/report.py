"""A look as lines for a person, or as one JSON object."""

from collections.abc import Iterator
from typing import Any

import orjson

from prefold.status.look import Look
from prefold.status.troubles import troubles_of

__all__ = ["as_json", "as_text", "plain", "ratio_of"]

_FULLEST = 5


def as_json(look: Look) -> str:
    """One object; a part that does not answer is ``null``."""
    seen, store = look.seen, look.store
    troubles = troubles_of(look)
    document: dict[str, Any] = {
        "ok": not troubles,
        "troubles": troubles,
        "at": round(look.at, 3),
        "events": None,
        "due": None,
        "dead_letters": None,
        "ingest": None,
        "queues": None,
        "sessions": {
            "looked_at": seen.sessions,
            "all": seen.is_whole,
            "near_limit": seen.near,
            "near_limit_without_standby": seen.near_without_standby,
            "degraded": seen.degraded,
            "limit_crossings": seen.limit_crossings,
            "ready_crossings": seen.ready_crossings,
            "standby_ready_ratio": _rounded(seen.standby_ready_ratio),
            "fullest": [
                {
                    "tenant": one.tenant,
                    "session": one.session,
                    "tokens": one.tokens,
                    "hard_limit_tokens": one.hard_limit_tokens,
                    "standby": one.has_standby,
                    "degraded": one.is_degraded,
                }
                for one in seen.fullest[:_FULLEST]
            ],
        },
        "gateways": _gateways(look),
    }
    if store is not None:
        document["events"] = {
            "unread": store.events.unread,
            "unacknowledged": store.events.unacknowledged,
            "oldest_seconds": round(store.event_age_seconds, 3),
            "partitions_behind": store.events.partitions,
            "partitions": look.partitions,
        }
        document["due"] = {"by_kind": dict(store.due.by_kind), "oldest_seconds": round(store.due_age_seconds, 3)}
        document["dead_letters"] = dict(store.letters)
        document["ingest"] = {
            "entries": sum(one.entries for one in store.ingest),
            "oldest_seconds": round(store.ingest_age_seconds, 3),
        }
    if look.queues is not None:
        document["queues"] = {queue.name: {"jobs": queue.jobs, "workers": queue.workers} for queue in look.queues}
    return orjson.dumps(document).decode()


def _gateways(look: Look) -> dict[str, Any]:
    counts = look.gateways
    return {
        "asked": counts.asked,
        "answered": counts.answered,
        "requests": counts.requests,
        "failures": counts.failures,
        "turns": counts.turns,
        "limit_crossings": counts.limit_crossings,
        "ready_crossings": counts.ready_crossings,
        "standby_ready_ratio": _rounded(counts.standby_ready_ratio),
        "swaps": counts.swaps,
        "degraded_contexts": counts.degraded_contexts,
        "over_limit_reads": counts.over_limit_reads,
    }


def as_text(look: Look) -> str:
    """A line for each thing; at the end what is wrong."""
    troubles = troubles_of(look)
    lines = [*rows_of(look), *(f"WRONG       {plain(one)}" for one in troubles)]
    return "\n".join([*lines, "all is well" if not troubles else f"{len(troubles)} not as it should be"])


def rows_of(look: Look) -> Iterator[str]:
    """The lines above the end."""
    counts, seen, store = look.gateways, look.seen, look.store
    yield (
        f"gateways    {counts.answered} of {counts.asked} answer; {counts.turns:,} turns, {counts.requests:,} requests, "
        f"{counts.failures:,} failed"
    )
    yield (
        f"contexts    {counts.over_limit_reads} over their limit, {counts.degraded_contexts:,} degraded; "
        f"{counts.swaps:,} swaps"
    )
    if store is not None:
        yield (
            f"events      {store.events.unread:,} unread, {store.events.unacknowledged:,} unacknowledged, in "
            f"{store.events.partitions} of {look.partitions} partitions; the oldest {store.event_age_seconds:.1f} s"
        )
        due = ", ".join(f"{count:,} {kind}" for kind, count in sorted(store.due.by_kind.items())) or "nothing"
        yield f"due         {due}; the oldest {store.due_age_seconds:.1f} s"
        letters = ", ".join(f"{count:,} {kind}" for kind, count in sorted(store.letters.items())) or "none"
        yield f"set aside   {letters}"
        if waiting := [one.entries for one in store.ingest if one.entries]:
            yield (
                f"ingest      {sum(waiting):,} entries wait, of {len(waiting)} tenants; "
                f"the oldest {store.ingest_age_seconds:.1f} s"
            )
    for queue in look.queues or ():
        yield f"queue       {queue.name:<8}{queue.jobs:>7,} jobs wait {queue.workers:>5,} workers"
    yield (
        f"standby     {ratio_of(counts.standby_ready_ratio)} of {counts.limit_crossings:,} crossings since the gateways "
        f"started; {ratio_of(seen.standby_ready_ratio)} of {seen.limit_crossings:,} in the sessions seen"
    )
    yield (
        f"sessions    {seen.sessions:,} looked at{'' if seen.is_whole else ' (not all)'}: {seen.near:,} near their limit, "
        f"{seen.near_without_standby:,} of them without a standby; {seen.degraded:,} degraded"
    )
    for one in seen.fullest[:_FULLEST]:
        mark = "degraded" if one.is_degraded else "standby" if one.has_standby else "-"
        yield f"  {one.share:>5.0%} of {one.hard_limit_tokens:>9,}  {mark:<9} {plain(one.tenant)}/{plain(one.session)}"


def ratio_of(ratio: float | None) -> str:
    """A share for people; a dash without one."""
    return "-" if ratio is None else f"{ratio:.1%}"


def plain(text: str) -> str:
    """Without what a terminal would follow."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 4)
