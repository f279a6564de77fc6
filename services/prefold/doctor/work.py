"""What is left undone: due entries, events that nobody took, work that was set aside."""

from redis.asyncio import Redis

from prefold.doctor.findings import Finding
from prefold.jobs import DeadLetters
from prefold.storage.backlog import due_backlog, event_backlog, now_ms_of
from prefold.storage.dropped import dropped_events
from prefold.storage.keys import PARTITIONS

__all__ = ["look_at_work"]

_PART = "work"
_LATE_SECONDS = 300
"""Work is done in seconds, or tried again within a minute: what is older waits for somebody who is not there."""


async def look_at_work(client: Redis) -> list[Finding]:
    """Findings about what is undone. Raises ``UnavailableError``."""
    now_ms = await now_ms_of(client)
    return [
        await _due(client, now_ms),
        await _events(client, now_ms),
        await _dropped(client),
        await _set_aside(client),
    ]


async def _due(client: Redis, now_ms: int) -> Finding:
    due = await due_backlog(client, now_ms)
    age = int(due.age_seconds(now_ms))
    found = f"in {due.partitions} of {PARTITIONS} partitions, the oldest for {age} s" if due.partitions else "nothing"
    return _judged("due", age, found, "see that dispatcher and workers run, and what their logs say")


async def _events(client: Redis, now_ms: int) -> Finding:
    """Events that were read and not acknowledged, and those that nobody has read."""
    events = await event_backlog(client)
    age = int(events.age_seconds(now_ms))
    since = "" if events.oldest_ms is None else f", the oldest for {age} s"
    found = f"{events.unread} unread, {events.unacknowledged} unacknowledged{since}"
    return _judged("events", age, found, "see that a dispatcher runs, and what its log says")


async def _dropped(client: Redis) -> Finding:
    count = await dropped_events(client)
    return Finding(_PART, "dropped events", "note" if count else "ok", f"{count} (each cost time, none cost work)")


async def _set_aside(client: Redis) -> Finding:
    count = len(await DeadLetters(client).letters())
    mend = (
        "prefold dead-letters lists them with their reasons; prefold dead-letters replay tries again" if count else ""
    )
    return Finding(_PART, "set aside", "wrong" if count else "ok", str(count), mend)


def _judged(name: str, age_seconds: int, found: str, mend: str) -> Finding:
    is_late = age_seconds > _LATE_SECONDS
    return Finding(_PART, name, "wrong" if is_late else "ok", found, mend if is_late else "")
