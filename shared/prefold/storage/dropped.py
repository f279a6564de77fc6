"""Events that the cap of a stream dropped before a dispatcher was given them: time is lost, no work."""

from typing import Any

from redis.asyncio import Redis

from prefold.storage import limits
from prefold.storage.client import redis_failures
from prefold.storage.events import GROUP
from prefold.storage.keys import PARTITIONS, PartitionKeys
from prefold.storage.routing import check_reach, is_out_of_reach
from prefold.storage.scripts import script

__all__ = ["count_dropped", "dropped_events"]


async def count_dropped(client: Redis) -> int:
    """Events dropped since anybody last asked, over all partitions. Each is told once, and added to the total.

    Ask before reading on: once the group has read past a gap, the gap can no longer be seen.
    """
    counting = script("count_dropped")
    kept_ms = limits.milliseconds(limits.DROPS_KEPT)
    with redis_failures():
        await client.script_load(counting.source)  # a pipeline cannot do that when it is missing
        async with client.pipeline(transaction=False) as pipe:
            for partition in range(PARTITIONS):
                keys = PartitionKeys.of(partition)
                pipe.evalsha(counting.sha, 2, keys.events, keys.dropped, GROUP, kept_ms)
            found: list[Any] = await pipe.execute(raise_on_error=False)
        check_reach(found)
    refused = next((one for one in found if isinstance(one, Exception) and not is_out_of_reach(one)), None)
    if refused is not None:
        raise refused
    return sum(int(one) for one in found if not isinstance(one, Exception))


async def dropped_events(client: Redis) -> int:
    """The total of all dispatchers, until ``DROPS_KEPT`` have passed without a further one."""
    with redis_failures():
        async with client.pipeline(transaction=False) as pipe:
            for partition in range(PARTITIONS):
                pipe.get(PartitionKeys.of(partition).dropped)
            return sum(int(count or 0) for count in await pipe.execute())
