"""The partitions' due sets: what the sessions' own state says is still to be done."""

from collections.abc import Sequence
from typing import Literal, cast

from redis.asyncio import Redis

from prefold.storage.client import redis_failures
from prefold.storage.events import parse_life
from prefold.storage.keys import PARTITIONS, PartitionKeys
from prefold.storage.types import DueItem

__all__ = ["DueSets"]


def _item(partition: int, member: bytes, score: float) -> DueItem:
    kind, life = member.decode().split(":", 1)
    return DueItem(partition, cast("Literal['embed', 'compact', 'expire']", kind), parse_life(life), int(score))


class DueSets:
    """Reads only: an entry is removed by the script that does the work."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def due(self, now_ms: int, limit: int, partitions: Sequence[int] = range(PARTITIONS)) -> list[DueItem]:
        """Entries whose time has come, oldest first within a partition, at most ``limit`` of each."""
        with redis_failures():
            async with self._client.pipeline(transaction=False) as pipe:
                for partition in partitions:
                    key = PartitionKeys.of(partition).due
                    pipe.zrangebyscore(key, "-inf", now_ms, start=0, num=limit, withscores=True)
                replies = await pipe.execute()
        return [
            _item(partition, member, score)
            for partition, reply in zip(partitions, replies, strict=True)
            for member, score in reply
        ]
