"""The partitions' event streams: hints that turns came, read by a consumer group."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import unquote

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from prefold.storage.client import redis_failures
from prefold.storage.cluster import ClusterClient
from prefold.storage.keys import PARTITIONS, PartitionKeys, slot_of_key
from prefold.storage.routing import check_reach, is_out_of_reach
from prefold.storage.types import SessionRef, TurnEvent

__all__ = ["GROUP", "TurnEvents", "parse_life"]

GROUP = "dispatchers"
_POLL_SECONDS = 0.1


def parse_life(life: str) -> SessionRef:
    """A session's life out of ``tenant:session:incarnation``."""
    tenant, session, incarnation = life.split(":")
    if "%" in life:
        tenant, session = unquote(tenant), unquote(session)
    return SessionRef(tenant, session, incarnation)


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


def _only(reply: Any) -> Any:
    """The entries of a reply about one stream: a mapping, or pairs, by the protocol that the connection speaks."""
    return next(iter(reply.values())) if isinstance(reply, dict) else reply[0][1]


def _mapping(pairs: Sequence[bytes] | None) -> dict[bytes, bytes] | None:
    return None if pairs is None else dict(zip(pairs[::2], pairs[1::2], strict=True))


class TurnEvents:
    """Reads and acknowledges the events of some partitions, all by default.

    On a cluster a call serves the partitions that can be reached, and fails only when none can; the events of the
    others come later.
    """

    def __init__(self, client: Redis, partitions: Sequence[int] = range(PARTITIONS)) -> None:
        self._client = client
        self._partition = {PartitionKeys.of(i).events.encode(): i for i in partitions}
        self._new: dict[Any, Any] = dict.fromkeys(self._partition, ">")
        self._own: dict[Any, Any] = dict.fromkeys(self._partition, "0")
        self._slots = {key: slot_of_key(key) for key in self._partition}
        self._unsure: set[bytes] = set()
        """Streams whose last reply was lost on the way: what was in it is assigned to us."""

    async def ensure_groups(self) -> None:
        """Makes the consumer group on every stream; again after Redis lost its data."""
        await self._make_groups(self._partition)

    async def _make_groups(self, keys: Iterable[bytes]) -> None:
        with redis_failures():
            async with self._client.pipeline(transaction=False) as pipe:
                for key in keys:
                    pipe.xgroup_create(key, GROUP, id="0", mkstream=True)
                results = await pipe.execute(raise_on_error=False)
            check_reach(results)
        for result in results:
            if isinstance(result, Exception) and not is_out_of_reach(result) and "BUSYGROUP" not in str(result):
                with redis_failures():
                    raise result

    async def read(self, consumer: str, count: int, block_ms: int) -> list[TurnEvent]:
        """New events, at most ``count`` a partition; waits up to ``block_ms`` (under the client's timeout), 0: not at all.

        Redis looks at its waiting clients ten times a second, so a wait may last 100 ms longer than asked for; on a
        cluster, where no command reads streams of several slots, we ask as often.
        """
        if not isinstance(self._client, ClusterClient):
            return await self._read(self._new, consumer, count, block_ms or None)
        deadline = time.monotonic() + block_ms / 1000
        while True:
            streams = self._new | dict.fromkeys(self._unsure, "0")
            events = await self._read_each(self._client, streams, consumer, count)
            if events or time.monotonic() + _POLL_SECONDS > deadline:
                return events
            await asyncio.sleep(_POLL_SECONDS)

    async def read_more(self, consumer: str, count: int, partitions: Sequence[int]) -> list[TurnEvent]:
        """New events of some partitions only, at most ``count`` of each; does not wait. For streams that are long."""
        streams: dict[Any, Any] = {PartitionKeys.of(one).events.encode(): ">" for one in partitions}
        if isinstance(self._client, ClusterClient):
            return await self._read_each(self._client, streams, consumer, count)
        return await self._read(streams, consumer, count, None)

    async def pending(self, consumer: str, count: int = 100) -> list[TurnEvent]:
        """Events that this consumer was given and did not acknowledge: first thing at start and after an error."""
        if isinstance(self._client, ClusterClient):
            return await self._read_each(self._client, self._own, consumer, count)
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
        return await self._readable(self._entries(reply))

    async def _read_each(
        self, client: ClusterClient, streams: dict[Any, Any], consumer: str, count: int
    ) -> list[TurnEvent]:
        """The same by one command a stream."""
        command = ("XREADGROUP", "GROUP", GROUP, consumer, "COUNT", count, "STREAMS")
        with redis_failures():
            replies = await client.each([(self._slots[key], (*command, key, after)) for key, after in streams.items()])
            check_reach(replies)
        found, without_group = [], []
        for key, reply in zip(streams, replies, strict=True):
            self._unsure.discard(key)
            if is_out_of_reach(reply):
                self._unsure.add(key)
            elif isinstance(reply, Exception):
                if "NOGROUP" not in str(reply):
                    raise reply
                without_group.append(key)
            elif reply:
                found += self._entries([(key, [(entry_id, _mapping(pairs)) for entry_id, pairs in _only(reply)])])
        if without_group:
            await self._make_groups(without_group)
        return await self._readable(found)

    def _entries(self, reply: Any) -> list[tuple[int, bytes, dict[bytes, bytes] | None]]:
        return [
            (self._partition[key], entry_id, fields) for key, entries in reply or () for entry_id, fields in entries
        ]

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
            check_reach(results)
        for partition, result in zip(self._partition.values(), results, strict=True):
            if isinstance(result, Exception):
                continue
            claimed += [(partition, entry_id, fields) for entry_id, fields in result[1] if fields]
        return await self._readable(claimed)

    async def newest(self, partitions: Sequence[int], count: int) -> list[TurnEvent]:
        """The last ``count`` events of each partition, whether anybody was given them or not. Nothing is assigned."""
        with redis_failures():
            async with self._client.pipeline(transaction=False) as pipe:
                for partition in partitions:
                    pipe.xrevrange(PartitionKeys.of(partition).events, count=count)
                replies: list[Any] = await pipe.execute(raise_on_error=False)
            check_reach(replies)
        found = []
        for partition, reply in zip(partitions, replies, strict=True):
            for entry_id, fields in reply if isinstance(reply, list) else ():
                event = _event(partition, entry_id, fields)
                if event is not None:
                    found.append(event)
        return found

    async def ack(self, events: Iterable[TurnEvent]) -> None:
        """Acknowledges events; twice is harmless. Those on a server that is away come again."""
        ordered = sorted(events, key=lambda event: event.partition)
        with redis_failures():
            async with self._client.pipeline(transaction=False) as pipe:
                for partition, group in groupby(ordered, key=lambda event: event.partition):
                    pipe.xack(PartitionKeys.of(partition).events, GROUP, *(event.entry_id for event in group))
                results = await pipe.execute(raise_on_error=False)
            check_reach(results)
            for result in results:
                if isinstance(result, Exception) and not is_out_of_reach(result):
                    raise result
