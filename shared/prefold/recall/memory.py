"""What was derived from turns, as vectors: summaries of segments and of sessions, and facts."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from prefold.embedding.protocol import CosineScale
from prefold.recall.derived import DerivedHit, DerivedKind, DerivedPoint
from prefold.recall.derived_ranking import ranked_derived
from prefold.recall.forgetting import forget_in
from prefold.recall.index import CollectionSpec
from prefold.recall.layout import KEYWORD, OF_TENANT, Indexes, check_query, check_vector, ensure_collection
from prefold.recall.names import MEMORY_PREFIX, memory_collection_name
from prefold.recall.retrieval import Retrieval
from prefold.recall.scope import Scope
from prefold.recall.server import VectorServer, connect_server
from prefold.recall.sparse import query_words

_POINTS_PER_CALL: Final = 128
_NEAR: Final = 40
_WORDED: Final = 40
_INDEXES: Final[Indexes] = {
    "tenant": OF_TENANT,
    "user": KEYWORD,
    "session": KEYWORD,
    "kind": KEYWORD,
    "key": KEYWORD,
}


class MemoryIndex:
    """One collection of derived texts on one server. Belongs to the event loop in which it is first used.

    Every call raises ``UnavailableError`` when the server is down, slow or failing, with code ``collection_missing``
    when nobody has called ``ensure`` yet. All writes are idempotent.
    """

    def __init__(self, server: VectorServer, spec: CollectionSpec, scale: CosineScale | None = None) -> None:
        """``scale`` is the embedder's."""
        self._server = server
        self._dimension = spec.dimension
        self._name = memory_collection_name(spec.embedder, spec.dimension)
        self._retrieval = Retrieval(server, self._name, scale or CosineScale())

    @property
    def collection(self) -> str:
        """Name of the collection."""
        return self._name

    async def ensure(self) -> None:
        """Makes the collection and its indexes where they are missing; see ``VectorIndex.ensure``."""
        await ensure_collection(self._server, self._name, self._dimension, _INDEXES)

    async def upsert(self, points: Sequence[DerivedPoint]) -> None:
        """Stores texts; returns once they are found. A newer text of the same key takes the older one's place.

        Raises ``InvalidInputError`` before the first is sent if a vector has the wrong length or is not finite.
        """
        for point in points:
            check_vector(point.vector, self._dimension)
        for start in range(0, len(points), _POINTS_PER_CALL):
            chunk = [point.to_json() for point in points[start : start + _POINTS_PER_CALL]]
            await self._server.upsert(self._name, chunk)

    async def search(
        self,
        tenant: str,
        *,
        query: str,
        vector: NDArray[np.float32] | None,
        kinds: Sequence[DerivedKind] | None = None,
        user: str | None = None,
        session: str | None = None,
        exclude_session: str | None = None,
        categories: Collection[str] = (),
        limit: int = 20,
    ) -> list[DerivedHit]:
        """The derived texts that fit the query, best first, none twice.

        ``user`` None means those of all the tenant's users: a context of a session without a user asks for nothing.
        ``session`` finds that session's own texts only, so no facts; ``exclude_session`` all but its own. Facts of
        ``categories`` come before other facts. A hit's ``digest`` tells whether the text it names is still the same.
        """
        check_query(vector, self._dimension)
        scope = Scope(tenant=tenant, user=user, session=session, kinds=kinds, not_session=exclude_session)
        found = await self._retrieval.first(scope, vector, query_words(query), near=_NEAR, worded=_WORDED)
        scale = await self._retrieval.word_scale(scope, found)
        return ranked_derived(found, scale, categories)[:limit]

    async def forget(
        self,
        tenant: str,
        *,
        user: str | None = None,
        session: str | None = None,
        incarnation: str | None = None,
        kinds: Sequence[DerivedKind] | None = None,
        keys: Sequence[str] | None = None,
    ) -> int:
        """Deletes the tenant's texts that all of this names, in the collections of all embedders.

        How many a second look still finds. With an empty list nothing is done.
        """
        if (keys is not None and not keys) or (kinds is not None and not kinds):
            return 0
        scope = Scope(tenant=tenant, user=user, session=session, incarnation=incarnation, kinds=kinds, keys=keys)
        return await forget_in(self._server, (MEMORY_PREFIX,), [scope])

    async def count(self, tenant: str, *, user: str | None = None, session: str | None = None) -> int:
        """How many texts there are."""
        return await self._server.count(
            self._name, Scope(tenant=tenant, user=user, session=session).filter(), exact=True
        )


@asynccontextmanager
async def connect_memory(
    url: str,
    spec: CollectionSpec,
    *,
    scale: CosineScale | None = None,
    api_key: str | None = None,
    connect_timeout: timedelta = timedelta(seconds=1),
    request_timeout: timedelta = timedelta(seconds=5),
    max_connections: int = 8,
) -> AsyncIterator[MemoryIndex]:
    """The index on a server. Opens no connection before the first call, closes all at the end."""
    connecting = connect_server(
        url,
        api_key=api_key,
        connect_timeout=connect_timeout,
        request_timeout=request_timeout,
        max_connections=max_connections,
    )
    async with connecting as server:
        yield MemoryIndex(server, spec, scale)
