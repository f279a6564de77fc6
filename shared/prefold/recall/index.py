"""The turns' vectors: stored, found, deleted, always within one tenant."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np
import structlog
from numpy.typing import NDArray

from prefold.embedding.protocol import CosineScale
from prefold.recall.forgetting import forget_turns
from prefold.recall.hybrid import HybridSearch
from prefold.recall.layout import KEYWORD, OF_TENANT, Indexes, check_query, check_vector, ensure_collection
from prefold.recall.names import COLLECTION_PREFIX, collection_name
from prefold.recall.points import TurnHit, TurnPoint
from prefold.recall.scope import Scope, TurnRange
from prefold.recall.server import VectorServer, connect_server

log = structlog.get_logger()

_POINTS_PER_CALL: Final = 128
_INDEXES: Final[Indexes] = {
    "tenant": OF_TENANT,
    "user": KEYWORD,
    "session": KEYWORD,
    "seq": {"type": "integer", "lookup": True, "range": True},  # a long session's changed turns are found by it
    "place": {"type": "integer", "lookup": True, "range": False},
}


@dataclass(frozen=True, slots=True)
class CollectionSpec:
    """Which model's vectors a collection holds."""

    embedder: str
    dimension: int

    @property
    def name(self) -> str:
        """``turns_<embedder>_<dimension>``."""
        return collection_name(self.embedder, self.dimension)


@dataclass(frozen=True, slots=True)
class OtherCollection:
    """Turns that another embedder indexed: they are not found until they are embedded again."""

    name: str
    points: int


class VectorIndex:
    """One collection of turns on one server. Belongs to the event loop in which it is first used.

    Every call raises ``UnavailableError`` when the server is down, slow or failing: nothing is tried again here.
    All writes are idempotent, so the caller may.
    """

    def __init__(self, server: VectorServer, spec: CollectionSpec, scale: CosineScale | None = None) -> None:
        """``scale`` is the embedder's."""
        self._server = server
        self._spec = spec
        self._search = HybridSearch(server, spec.name, scale or CosineScale())

    @property
    def collection(self) -> str:
        """Name of the collection."""
        return self._spec.name

    async def ensure(self) -> None:
        """Makes the collection and its indexes where they are missing. Again, and from two processes, is legal.

        Raises ``ConfigurationError`` if a collection of this name has another form.
        """
        await ensure_collection(self._server, self.collection, self._spec.dimension, _INDEXES)

    async def upsert(self, points: Sequence[TurnPoint]) -> None:
        """Stores turns; returns once they are found. One that is there already is replaced by itself.

        Raises ``InvalidInputError`` before the first is sent if a vector has the wrong length or is not finite.
        """
        for point in points:
            check_vector(point.vector, self._spec.dimension)
        for start in range(0, len(points), _POINTS_PER_CALL):
            chunk = [point.to_json() for point in points[start : start + _POINTS_PER_CALL]]
            await self._server.upsert(self.collection, chunk)

    async def search(
        self,
        tenant: str,
        *,
        query: str,
        vector: NDArray[np.float32] | None,
        limit: int = 20,
        user: str | None = None,
        session: str | None = None,
    ) -> list[TurnHit]:
        """The tenant's turns that fit the query, best first, none that says what a better one says.

        ``vector`` is the query's; without one (no embedder) words alone decide. Hits may name turns that were edited
        or erased since: their text is read from the log, which knows.
        """
        check_query(vector, self._spec.dimension)
        return await self._search.run(Scope(tenant=tenant, user=user, session=session), query, vector, limit)

    async def delete(
        self,
        tenant: str,
        *,
        user: str | None = None,
        session: str | None = None,
        incarnation: str | None = None,
        turns: Sequence[TurnRange] | None = None,
    ) -> None:
        """Deletes the tenant's turns, or those of a user, a session, a life of it, of some ranges of it."""
        scope = Scope(tenant=tenant, user=user, session=session, incarnation=incarnation, turns=turns)
        await self._server.delete(self.collection, scope.filter())

    async def forget(
        self,
        tenant: str,
        *,
        session: str,
        incarnation: str | None = None,
        turns: Sequence[TurnRange] | None = None,
    ) -> int:
        """Deletes a session's turns, or a life of it, or ranges, in the collections of all embedders; what is left."""
        return await forget_turns(self._server, tenant, session=session, incarnation=incarnation, turns=turns)

    async def count(self, tenant: str, *, user: str | None = None, session: str | None = None) -> int:
        """How many points there are: what an erasure checks afterwards."""
        scope = Scope(tenant=tenant, user=user, session=session)
        return await self._server.count(self.collection, scope.filter(), exact=True)

    async def other_collections(self) -> list[OtherCollection]:
        """Collections of other embedders on this server, with what they hold; logs each one that is not empty."""
        names = [name for name in await self._server.collections() if name.startswith(COLLECTION_PREFIX)]
        others = []
        for name in sorted(set(names) - {self.collection}):
            described = await self._server.collection(name) or {}
            others.append(OtherCollection(name, int(described.get("points_count") or 0)))
        for other in others:
            if other.points:
                log.warning("turns_of_another_embedder", collection=other.name, points=other.points)
        return others


@asynccontextmanager
async def connect_vectors(
    url: str,
    spec: CollectionSpec,
    *,
    scale: CosineScale | None = None,
    api_key: str | None = None,
    connect_timeout: timedelta = timedelta(seconds=1),
    request_timeout: timedelta = timedelta(seconds=5),
    max_connections: int = 16,
) -> AsyncIterator[VectorIndex]:
    """The index on a server. Opens no connection before the first call, closes all at the end."""
    connecting = connect_server(
        url,
        api_key=api_key,
        connect_timeout=connect_timeout,
        request_timeout=request_timeout,
        max_connections=max_connections,
    )
    async with connecting as server:
        yield VectorIndex(server, spec, scale)
