"""The partitions' due sets: what the sessions' own state says is still to be done."""

import random
from collections.abc import Iterable, Sequence
from typing import Any, Literal, cast

from redis.asyncio import Redis

from prefold.storage.client import redis_failures
from prefold.storage.events import parse_life
from prefold.storage.keys import PARTITIONS, PartitionKeys, SessionKeys
from prefold.storage.routing import check_reach, is_out_of_reach
from prefold.storage.types import DueItem, SessionRef

__all__ = ["DueSets"]


def _item(partition: int, member: bytes, score: float) -> DueItem | None:
    """The entry, or None for one that cannot be read."""
    try:
        kind, life = member.decode().split(":", 1)
        ref = parse_life(life)
    except ValueError:
        return None
    return DueItem(partition, cast("Literal['embed', 'compact', 'remember', 'expire']", kind), ref, int(score))


class DueSets:
    """Reads: an entry is removed by the script that does the work."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._depths: dict[int, int] = {}
        """Overdue entries of deep sets, as they were found last."""

    async def due(self, now_ms: int, limit: int, partitions: Sequence[int] = range(PARTITIONS)) -> list[DueItem]:
        """Entries whose time has come, oldest first within a partition, at most ``limit`` of each.

        Without those on servers of a cluster that are away, unless all of them are: ``UnavailableError``.
        """
        with redis_failures():
            async with self._client.pipeline(transaction=False) as pipe:
                for partition in partitions:
                    key = PartitionKeys.of(partition).due
                    pipe.zrangebyscore(key, "-inf", now_ms, start=0, num=limit, withscores=True)
                replies = await pipe.execute(raise_on_error=False)
            check_reach(replies)
        return await self._items(zip(partitions, replies, strict=True))

    async def beyond(self, now_ms: int, limit: int, partitions: Sequence[int]) -> list[DueItem]:
        """Of partitions of which ``due`` gave all that it was asked for: what stands behind those.

        The ``limit`` newest entries whose time has come, and as many from a place in between that changes from call to
        call: many old entries of one tenant must not hide those of another.
        """
        with redis_failures():
            async with self._client.pipeline(transaction=False) as pipe:
                for partition in partitions:
                    key = PartitionKeys.of(partition).due
                    start = random.randint(limit, max(limit, self._depths.get(partition, 0) - 2 * limit))  # noqa: S311
                    pipe.zcount(key, "-inf", now_ms)
                    pipe.zrevrangebyscore(key, now_ms, "-inf", start=0, num=limit, withscores=True)
                    pipe.zrange(key, start, start + limit - 1, withscores=True)
                replies: list[Any] = await pipe.execute(raise_on_error=False)
            check_reach(replies)
        self._depths = {
            partition: depth
            for partition, depth in zip(partitions, replies[::3], strict=True)
            if isinstance(depth, int)
        }
        both = [*zip(partitions, replies[1::3], strict=True), *zip(partitions, replies[2::3], strict=True)]
        return [item for item in dict.fromkeys(await self._items(both)) if item.due_at_ms <= now_ms]

    async def _items(self, replies: Iterable[tuple[int, Any]]) -> list[DueItem]:
        items: list[DueItem] = []
        for partition, reply in replies:
            if is_out_of_reach(reply):
                continue
            if isinstance(reply, Exception):
                raise reply
            for member, score in reply:
                item = _item(partition, member, score)
                if item is not None:
                    items.append(item)
                else:
                    await self._drop(partition, member)
        return items

    async def end_expiry(self, ref: SessionRef) -> None:
        """Takes out the entry ``expire`` of a life of which nothing is left."""
        keys = SessionKeys.of(ref.tenant, ref.session)
        with redis_failures():
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.zrem(keys.due, f"expire:{keys.label}:{ref.incarnation}")
                pipe.hdel(keys.tomb, *(f"{name}:{ref.incarnation}" for name in ("end", "user", "aged")))
                await pipe.execute()

    async def _drop(self, partition: int, member: bytes) -> None:
        """Takes out an entry that nobody can read: a few of them would hide all others from ``limit``."""
        with redis_failures():
            await self._client.zrem(PartitionKeys.of(partition).due, member)
