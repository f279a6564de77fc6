"""One collection: one qdrant-edge shard, whose every call holds the GIL and so must be short.

What lives long is made in a thread of its own: the system's allocator gives that thread a heap of its own. In one heap
searches would look for their short-lived pieces among what 100,000 upserts have left, which took a seventh of the time.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeVar

import qdrant_edge as edge

from prefold.vectorstore.identifiers import PointId
from prefold.vectorstore.layout import Layout
from prefold.vectorstore.rejections import RejectedError, no_collection

T = TypeVar("T")

POINTS_PER_CALL: Final = 256
"""An upsert of 30,000 points would stop the process for 400 ms."""
QUERIES_PER_CALL: Final = 64

_MAKING: Final = ThreadPoolExecutor(1, "vectors-making")
"""Of all collections: one, so that what was begun first is done first, even if nobody waits for it any more."""

_VACUUM_MIN_DELETED: Final = 1_000
_VACUUM_MIN_SHARE: Final = 0.2
"""From these on points deleted by id are worth a vacuum. What a filter deletes always is: somebody was erased."""


class Collection:
    """Writes are done one call after the other, reads in between.

    An acknowledged write is in the shard's log, which survives ``kill -9``; ``flush`` shortens the log.
    """

    def __init__(self, name: str, layout: Layout, shard: edge.EdgeShard, clock: Callable[[], float]) -> None:
        self.name = name
        self.layout = layout
        self._shard: edge.EdgeShard | None = shard
        self._clock = clock
        self._writing = asyncio.Lock()
        self._operations = itertools.count()
        self._unflushed = False
        self._deleted = 0
        self._owes_vacuum = False
        self._used_at = clock()

    @classmethod
    def create(
        cls, name: str, layout: Layout, folder: Path, clock: Callable[[], float] = time.monotonic
    ) -> "Collection":
        """A new, empty one in a folder that does not exist."""
        folder.mkdir()
        shard = _MAKING.submit(edge.EdgeShard.create, str(folder), layout.edge_config()).result()
        return cls(name, layout, shard, clock)

    @classmethod
    def load(cls, name: str, layout: Layout, folder: Path, clock: Callable[[], float] = time.monotonic) -> "Collection":
        """The one in this folder, its log read again."""
        shard = _MAKING.submit(edge.EdgeShard.load, str(folder), layout.edge_config()).result()
        loaded = cls(name, layout, shard, clock)
        loaded._owes_vacuum = True  # nobody knows what was deleted before; with nothing to clear it costs nothing
        return loaded

    async def upsert(self, points: Sequence[edge.Point]) -> int:
        """Writes the points and returns the number of the operation. A crash may leave a first part of them."""
        async with self._writer() as shard:
            for chunk in _chunks(points):
                await _made(shard.update, edge.UpdateOperation.upsert_points(chunk))
        return next(self._operations)

    async def delete_points(self, ids: Sequence[PointId]) -> int:
        """Deletes those of the ids that exist."""
        async with self._writer() as shard:
            for chunk in _chunks(ids):
                await _made(shard.update, edge.UpdateOperation.delete_points(chunk))
            self._deleted += len(ids)
        return next(self._operations)

    async def delete_matching(self, chosen: edge.Filter) -> int:
        """Deletes what the filter matches."""
        async with self._writer() as shard:
            deleted = shard.count(edge.CountRequest(filter=chosen))
            await _made(shard.update, edge.UpdateOperation.delete_points_by_filter(chosen))
            self._deleted += deleted
            self._owes_vacuum |= deleted > 0
        return next(self._operations)

    async def set_payload(self, ids: Sequence[PointId], payload: dict[str, Any], key: str | None) -> int:
        """Merges members into the payload of points that must exist."""
        async with self._writer() as shard:
            known = {str(record.id) for record in shard.retrieve(list(ids), False, False)}
            for identifier in ids:
                if str(identifier) not in known:
                    raise RejectedError(HTTPStatus.NOT_FOUND, f"Not found: No point with id {identifier} found")
            for chunk in _chunks(ids):
                await _made(shard.update, edge.UpdateOperation.set_payload(chunk, payload, key))
        return next(self._operations)

    async def set_payload_matching(self, chosen: edge.Filter, payload: dict[str, Any], key: str | None) -> int:
        """The same for what the filter matches."""
        async with self._writer() as shard:
            await _made(shard.update, edge.UpdateOperation.set_payload_by_filter(chosen, payload, key))
        return next(self._operations)

    async def create_index(self, field: str, schema: Any) -> int:
        """Indexes a member of the payload; again is legal."""
        async with self._writer() as shard:
            await _made(shard.update, edge.UpdateOperation.create_field_index(field, schema))
        return next(self._operations)

    async def delete_index(self, field: str) -> int:
        """Forgets an index; one that is not there is legal."""
        async with self._writer() as shard:
            await _made(shard.update, edge.UpdateOperation.delete_field_index(field))
        return next(self._operations)

    async def query(self, requests: Sequence[edge.QueryRequest]) -> list[list[edge.ScoredPoint]]:
        """The hits of each request, in order."""
        found: list[list[edge.ScoredPoint]] = []
        for chunk in _chunks(requests, QUERIES_PER_CALL):
            if found:
                await asyncio.sleep(0)
            found += self.query_now(chunk)
        return found

    def query_now(self, requests: Sequence[edge.QueryRequest]) -> list[list[edge.ScoredPoint]]:
        """The same, without a pause for others: at most ``QUERIES_PER_CALL``."""
        if not requests:
            return []
        return list(self._reader().query_batch(edge.QueryBatchRequest(list(requests))))

    def scroll(self, request: edge.ScrollRequest) -> tuple[list[edge.Record], PointId | None]:
        """One page in the order of ids, and where the next one begins."""
        records, following = self._reader().scroll(request)
        return records, following

    def count(self, request: edge.CountRequest) -> int:
        """How many points match."""
        return self._reader().count(request)

    def retrieve(self, ids: Sequence[PointId], with_payload: Any, with_vector: Any) -> list[edge.Record]:
        """Those of the points that exist."""
        return self._reader().retrieve(list(ids), with_payload, with_vector)

    def info(self) -> "edge.ShardInfo":
        """Counts and indexes."""
        return self._reader().info()

    async def flush(self) -> bool:
        """Puts onto disk what is only in the log; True if there was something."""
        async with self._writing:
            if self._shard is None or not self._unflushed:
                return False
            await _made(self._shard.flush)
            self._unflushed = False
            return True

    async def vacuum(self, idle_seconds: float) -> bool:
        """Clears deleted points away if that is due and nobody called for ``idle_seconds``; True if it did."""
        if self._shard is None or self._clock() - self._used_at < idle_seconds:
            return False
        if not self._owes_vacuum and not self._many_deleted():
            return False
        async with self._writing:
            shard = self._reader()
            has_cleared = await _made(shard.optimize)
            if has_cleared:
                await _made(shard.flush)  # only then the former files go
            self._deleted, self._owes_vacuum = 0, False
            return has_cleared

    async def close(self) -> None:
        """Flushes and lets go of the folder. Twice is legal; every call after it finds no collection."""
        async with self._writing:
            shard, self._shard = self._shard, None
            if shard is not None:
                await _made(shard.flush)
                await _made(shard.close)

    def _many_deleted(self) -> bool:
        if self._deleted < _VACUUM_MIN_DELETED:
            return False
        return self._deleted >= _VACUUM_MIN_SHARE * (self._deleted + self._reader().info().points_count)

    def _reader(self) -> edge.EdgeShard:
        if self._shard is None:
            raise no_collection(self.name)
        self._used_at = self._clock()
        return self._shard

    @asynccontextmanager
    async def _writer(self) -> AsyncIterator[edge.EdgeShard]:
        async with self._writing:
            shard = self._reader()
            self._unflushed = True
            yield shard


async def _made(make: Callable[..., T], *arguments: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(_MAKING, make, *arguments)


def _chunks(items: Sequence[T], size: int = POINTS_PER_CALL) -> list[list[T]]:
    return [list(items[start : start + size]) for start in range(0, len(items), size)]
