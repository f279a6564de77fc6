"""What is left undone: due entries, events that nobody took, work that was set aside."""

from typing import Any

from redis.asyncio import Redis

from prefold.doctor.findings import Finding
from prefold.jobs import DeadLetters
from prefold.storage.client import redis_failures
from prefold.storage.dropped import dropped_events
from prefold.storage.due import DueSets
from prefold.storage.events import GROUP
from prefold.storage.keys import PARTITIONS, PartitionKeys

__all__ = ["look_at_work"]

_PART = "work"
_LATE_SECONDS = 300
"""Work is done in seconds, or tried again within a minute: what is older waits for somebody who is not there."""


async def look_at_work(client: Redis) -> list[Finding]:
    """Findings about what is undone. Raises ``UnavailableError``."""
    with redis_failures():
        seconds, micros = await client.time()
    now_ms = int(seconds) * 1000 + int(micros) // 1000
    return [
        await _due(client, now_ms),
        await _events(client, now_ms),
        await _dropped(client),
        await _set_aside(client),
    ]


async def _due(client: Redis, now_ms: int) -> Finding:
    oldest = [item.due_at_ms for item in await DueSets(client).due(now_ms, 1)]
    age = (now_ms - min(oldest)) // 1000 if oldest else 0
    found = f"in {len(oldest)} of {PARTITIONS} partitions, the oldest for {age} s" if oldest else "nothing"
    return _judged("due", age, found, "see that dispatcher and workers run, and what their logs say")


async def _events(client: Redis, now_ms: int) -> Finding:
    """Events that were read and not acknowledged, and those that nobody has read."""
    keys = [PartitionKeys.of(partition).events for partition in range(PARTITIONS)]
    with redis_failures():
        groups = await _each(client, "xinfo_groups", keys)
        ours = {key: group for key, found in groups.items() for group in found if group["name"] == GROUP.encode()}
        pending = sum(group["pending"] for group in ours.values())
        unread = sum(group["lag"] or 0 for group in ours.values())
        left = [key for key, group in ours.items() if group["pending"] or group["lag"]]
        oldest = await _oldest_left(client, left, ours)
    age = max(0, (now_ms - min(oldest)) // 1000) if oldest else 0
    found = f"{unread} unread, {pending} unacknowledged" + (f", the oldest for {age} s" if oldest else "")
    return _judged("events", age, found, "see that a dispatcher runs, and what its log says")


async def _oldest_left(client: Redis, keys: list[str], groups: dict[str, Any]) -> list[int]:
    """When they were written, ms: the oldest event of each stream that is not done with."""
    if not keys:
        return []
    async with client.pipeline(transaction=False) as pipe:
        for key in keys:
            pipe.xpending(key, GROUP)
            pipe.xrange(key, min=b"(" + groups[key]["last-delivered-id"], count=1)
        replies = await pipe.execute(raise_on_error=False)
    ids = [reply["min"] for reply in replies[::2] if isinstance(reply, dict) and reply["min"]]
    ids += [reply[0][0] for reply in replies[1::2] if isinstance(reply, list) and reply]
    return [int(entry_id.split(b"-")[0]) for entry_id in ids]


async def _each(client: Redis, command: str, keys: list[str]) -> dict[str, Any]:
    """The reply for each key that has one."""
    async with client.pipeline(transaction=False) as pipe:
        for key in keys:
            getattr(pipe, command)(key)
        replies = await pipe.execute(raise_on_error=False)
    return {key: reply for key, reply in zip(keys, replies, strict=True) if not isinstance(reply, Exception)}


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
