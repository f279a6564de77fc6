"""The partitions' event streams: hints that turns came, read by a consumer group."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import unquote

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from prefold.storage.client import redis_failures
from prefold.storage.keys import PARTITIONS, PartitionKeys
from prefold.storage.types import SessionRef, TurnEvent

__all__ = ["GROUP", "TurnEvents", "parse_life"]

GROUP = "dispatchers"


def parse_life(life: str) -> SessionRef:
    """A session's life out of ``tenant:session:incarnation``."""
    tenant, session, incarnation = life.split(":")
    return SessionRef(unquote(tenant), unquote(session), incarnation)


def _event(partition: int, entry_id: bytes, fields: dict[bytes, bytes] | None) -> TurnEvent | None:
    """The event, or None for an entry that no script of this version writes: a hint that cannot be read is no hint."""
    try:
        life, first, last, build = (fields or {})[b"turns"].decode().split(" ")
        ref, first_seq, last_seq = parse_life(life), int(first), int(last)
    except (KeyError, ValueError):
        return None
    return TurnEvent(
        partition=partition,
        entry_id=entry_id.decode(),
        ref=ref,
        first_seq=first_seq,
        last_seq=last_seq,
        build_due=build == "1",
    )


class TurnEvents:
    """Reads and acknowledges the events of some partitions, all by default."""

    def __init__(self, client: Redis, partitions: Sequence[int] = range(PARTITIONS)) -> None:
        self._client = client
        self._partition = {PartitionKeys.of(i).events.encode(): i for i in partitions}
        self._new: dict[Any, Any] = dict.fromkeys(self._partition, ">")
        self._own: dict[Any, Any] = dict.fromkeys(self._partition, "0")

    async def ensure_groups(self) -> None:
        """Makes the consumer group on every stream; again after Redis lost its data."""
        with redis_failures():
            async with self._client.pipeline(transaction=False) as pipe:
                for key in self._partition:
                    pipe.xgroup_create(key, GROUP, id="0", mkstream=True)
                results = await pipe.execute(raise_on_error=False)
        for result in results:
            if isinstance(result, Exception) and "BUSYGROUP" not in str(result):
                with redis_failures():
                    raise result

    async def read(self, consumer: str, count: int, block_ms: int) -> list[TurnEvent]:
        """New events, at most ``count`` a partition; waits up to ``block_ms`` (under the client's timeout), 0: not at all.

        Redis looks at its waiting clients ten times a second, so a wait may last 100 ms longer than asked for.
        """
        return await self._read(self._new, consumer, count, block_ms or None)

    async def pending(self, consumer: str, count: int = 100) -> list[TurnEvent]:
        """Events that this consumer was given and did not acknowledge: first thing at start and after an error."""
        return await self._read(self._own, consumer, count, None)

    async def _read(self, streams: dict[Any, Any], consumer: str, count: int, block_ms: int | None) -> list[TurnEvent]:
        try:
            with redis_failures():
                reply: Any = await self._client.xreadgroup(GROUP, consumer, streams, count=count, block=block_ms)
        except ResponseError as error:
            if "NOGROUP" not in str(error):
                raise
            await self.ensure_groups()
            return []
        return await self._readable(
            (self._partition[key], entry_id, fields) for key, entries in reply or () for entry_id, fields in entries
        )

    async def _readable(self, entries: Iterable[tuple[int, bytes, dict[bytes, bytes] | None]]) -> list[TurnEvent]:
        """The entries as events. Those that cannot be read, or were trimmed, are acknowledged, or they would stay for ever."""
        events, unreadable = [], []
        for partition, entry_id, fields in entries:
            event = _event(partition, entry_id, fields)
            if event is not None:
                events.append(event)
            else:
                unreadable.append((partition, entry_id))
        if unreadable:
            with redis_failures():
                for partition, entry_id in unreadable:
                    await self._client.xack(PartitionKeys.of(partition).events, GROUP, entry_id)
        return events

    async def claim(self, consumer: str, min_idle_ms: int, count: int = 100) -> list[TurnEvent]:
        """Takes over events that some consumer has left lying for ``min_idle_ms``."""
        claimed: list[tuple[int, bytes, dict[bytes, bytes]]] = []
        with redis_failures():
            async with self._client.pipeline(transaction=False) as pipe:
                for key in self._partition:
                    pipe.xautoclaim(key, GROUP, consumer, min_idle_time=min_idle_ms, count=count)
                results = await pipe.execute(raise_on_error=False)
        for partition, result in zip(self._partition.values(), results, strict=True):
            if isinstance(result, Exception):
                continue
            claimed += [(partition, entry_id, fields) for entry_id, fields in result[1] if fields]
        return await self._readable(claimed)

    async def ack(self, events: Iterable[TurnEvent]) -> None:
        """Acknowledges events; twice is harmless."""
        ordered = sorted(events, key=lambda event: event.partition)
        with redis_failures():
            async with self._client.pipeline(transaction=False) as pipe:
                for partition, group in groupby(ordered, key=lambda event: event.partition):
                    pipe.xack(PartitionKeys.of(partition).events, GROUP, *(event.entry_id for event in group))
                await pipe.execute()
