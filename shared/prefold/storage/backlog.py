"""How far behind the work is: events that are not done with, and due entries whose time has come.

A read costs the sessions' Redis about a millisecond or two, whatever the number of sessions, and changes nothing.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from redis.asyncio import Redis

from prefold.storage.client import redis_failures
from prefold.storage.events import GROUP
from prefold.storage.keys import PARTITIONS, PartitionKeys
from prefold.storage.routing import check_reach

__all__ = ["DueBacklog", "EventBacklog", "due_backlog", "event_backlog", "now_ms_of"]

_KINDS_FROM: Final = 100
"""Due entries of a partition that are looked at to tell their kinds; of more, the kinds are told in proportion."""


@dataclass(frozen=True, slots=True)
class EventBacklog:
    """Events of all partitions that can be reached."""

    unread: int
    unacknowledged: int
    oldest_ms: int | None
    """When the oldest of them was written; None without any."""
    partitions: int
    """That have any."""

    def age_seconds(self, now_ms: int) -> float:
        """Of the oldest; 0 without any."""
        return 0 if self.oldest_ms is None else max(0, now_ms - self.oldest_ms) / 1000


@dataclass(frozen=True, slots=True)
class DueBacklog:
    """Due entries whose time has come."""

    by_kind: Mapping[str, int]
    oldest_ms: int | None
    """Since when the oldest is due; None without any."""
    partitions: int
    """That have any."""

    def age_seconds(self, now_ms: int) -> float:
        """Of the oldest; 0 without any."""
        return 0 if self.oldest_ms is None else max(0, now_ms - self.oldest_ms) / 1000


async def now_ms_of(client: Redis) -> int:
    """The clock that wrote the entries. Raises ``UnavailableError``, as the others do."""
    with redis_failures():
        seconds, micros = await client.time()
    return int(seconds) * 1000 + int(micros) // 1000


async def event_backlog(client: Redis) -> EventBacklog:
    """Events that were read and not acknowledged, and those that nobody has read."""
    keys = [PartitionKeys.of(partition).events for partition in range(PARTITIONS)]
    with redis_failures():
        groups = await _each(client, "xinfo_groups", keys)
        ours = {key: group for key, found in groups.items() for group in found if group["name"] == GROUP.encode()}
        # A lag of None: the server cannot tell, so one has to look.
        left = [key for key, group in ours.items() if group["pending"] or group["lag"] != 0]
        oldest = await _oldest_left(client, left, ours)
    return EventBacklog(
        unread=sum(group["lag"] or 0 for group in ours.values()),
        unacknowledged=sum(group["pending"] for group in ours.values()),
        oldest_ms=min(oldest, default=None),
        partitions=len(oldest),
    )


async def due_backlog(client: Redis, now_ms: int) -> DueBacklog:
    """What is due at ``now_ms``. The total is exact; so are the kinds while a partition has no more than a hundred."""
    keys = [PartitionKeys.of(partition).due for partition in range(PARTITIONS)]
    with redis_failures():
        async with client.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.zcount(key, "-inf", now_ms)
                pipe.zrangebyscore(key, "-inf", now_ms, start=0, num=_KINDS_FROM, withscores=True)
            replies = await pipe.execute(raise_on_error=False)
        check_reach(replies)
    kinds: Counter[str] = Counter()
    oldest: list[float] = []
    for count, entries in zip(replies[::2], replies[1::2], strict=True):
        if isinstance(count, int) and isinstance(entries, list) and entries:
            seen = Counter(member.split(b":", 1)[0].decode() for member, _ in entries)
            kinds.update({kind: round(number * max(1, count / len(entries))) for kind, number in seen.items()})
            oldest.append(entries[0][1])
    return DueBacklog(dict(kinds), int(min(oldest)) if oldest else None, len(oldest))


async def _oldest_left(client: Redis, keys: list[str], groups: dict[str, Any]) -> list[int]:
    """When it was written, ms: the oldest event that is not done with, of each stream that has any."""
    if not keys:
        return []
    async with client.pipeline(transaction=False) as pipe:
        for key in keys:
            pipe.xpending(key, GROUP)
            pipe.xrange(key, min=b"(" + groups[key]["last-delivered-id"], count=1)
        replies = await pipe.execute(raise_on_error=False)
    oldest = []
    for given, unread in zip(replies[::2], replies[1::2], strict=True):
        ids = [given["min"]] if isinstance(given, dict) and given["min"] else []
        ids += [unread[0][0]] if isinstance(unread, list) and unread else []
        if ids:
            oldest.append(min(int(entry_id.split(b"-")[0]) for entry_id in ids))
    return oldest


async def _each(client: Redis, command: str, keys: list[str]) -> dict[str, Any]:
    """The reply for each key that has one."""
    async with client.pipeline(transaction=False) as pipe:
        for key in keys:
            getattr(pipe, command)(key)
        replies = await pipe.execute(raise_on_error=False)
    check_reach(replies)
    return {key: reply for key, reply in zip(keys, replies, strict=True) if not isinstance(reply, Exception)}
