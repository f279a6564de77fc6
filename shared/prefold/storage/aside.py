"""Records of work that was set aside: a hash of each partition, bounded in number and in age."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from redis.asyncio import Redis

from prefold.storage import limits
from prefold.storage.client import redis_failures
from prefold.storage.keys import PARTITIONS, PartitionKeys, SessionKeys
from prefold.storage.scripts import script
from prefold.storage.types import SessionRef

__all__ = [
    "all_records",
    "forget_aside",
    "put_aside",
    "records_of",
    "records_of_session",
    "remove_record",
    "take_out_again",
]


async def put_aside(client: Redis, kind: str, ref: SessionRef, record: bytes) -> bool:
    """Takes the work out of ``due`` and keeps the record; False: that life of the session is over."""
    return await _run(client, kind, ref, record)


async def take_out_again(client: Redis, kind: str, ref: SessionRef) -> bool:
    """Takes work out of ``due`` that is set aside and was asked for all the same; False: it is not set aside."""
    return await _run(client, kind, ref, b"")


async def _run(client: Redis, kind: str, ref: SessionRef, record: bytes) -> bool:
    keys = SessionKeys.of(ref.tenant, ref.session)
    given = (*keys.script_keys(), PartitionKeys.of(keys.partition).dead)
    bounds = (limits.MOST_ASIDE, _ms(limits.ASIDE_KEPT), _ms(limits.EXPIRY_AGAIN))
    with redis_failures():
        done: Any = await script("set_aside").run(
            client, given, ["", keys.label, ref.incarnation, kind, record, *bounds]
        )
    return bool(done)


async def records_of(client: Redis, kind: str, refs: Sequence[SessionRef]) -> list[bytes | None]:
    """The record of each, None where the work is not set aside."""
    with redis_failures():
        async with client.pipeline(transaction=False) as pipe:
            for ref in refs:
                keys = SessionKeys.of(ref.tenant, ref.session)
                pipe.hget(PartitionKeys.of(keys.partition).dead, f"{kind}:{keys.label}:{ref.incarnation}")
            return list(await pipe.execute())


async def records_of_session(client: Redis, tenant: str, session: str) -> list[bytes]:
    """Every record of all lives of the session."""
    keys = SessionKeys.of(tenant, session)
    return list((await _of_session(client, keys)).values())


async def forget_aside(client: Redis, tenant: str, session: str) -> int:
    """Removes the records of all lives of the session; how many they were. Their work stays out of ``due``."""
    keys = SessionKeys.of(tenant, session)
    found = await _of_session(client, keys)
    if not found:
        return 0
    with redis_failures():
        removed: Any = client.hdel(PartitionKeys.of(keys.partition).dead, *found)
        return int(await removed)


async def remove_record(client: Redis, kind: str, ref: SessionRef) -> bool:
    """Removes one record; False: it was gone."""
    keys = SessionKeys.of(ref.tenant, ref.session)
    with redis_failures():
        removed: Any = client.hdel(PartitionKeys.of(keys.partition).dead, f"{kind}:{keys.label}:{ref.incarnation}")
        return bool(await removed)


async def all_records(client: Redis, partitions: Iterable[int] = range(PARTITIONS)) -> list[bytes]:
    """Every record of the partitions."""
    with redis_failures():
        async with client.pipeline(transaction=False) as pipe:
            for partition in partitions:
                pipe.hvals(PartitionKeys.of(partition).dead)
            return [record for records in await pipe.execute() for record in records]


async def _of_session(client: Redis, keys: SessionKeys) -> dict[str, bytes]:
    with redis_failures():
        reply: Any = client.hgetall(PartitionKeys.of(keys.partition).dead)
        found = {field.decode(): record for field, record in (await reply).items()}
    return {field: record for field, record in found.items() if field.split(":", 1)[1].startswith(f"{keys.label}:")}


def _ms(duration: timedelta) -> int:
    return limits.milliseconds(duration)
