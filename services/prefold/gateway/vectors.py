"""The vectors behind recall: embedder and vector store, opened for the process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TypeVar

import structlog

from prefold.embedding import Embedder, Vector, embedder_from_settings
from prefold.errors import UnavailableError
from prefold.facts import Fact
from prefold.gateway.background import InBackground
from prefold.gateway.finding import Finder, Hit
from prefold.gateway.settings import GatewaySettings
from prefold.recall import (
    CollectionSpec,
    DerivedHit,
    DerivedKind,
    MemoryIndex,
    TurnHit,
    TurnRange,
    VectorIndex,
    forget_turns,
    forget_user,
)
from prefold.recall.derived_text import fact_text
from prefold.recall.forgetting import forget_in
from prefold.recall.names import MEMORY_PREFIX
from prefold.recall.scope import Scope
from prefold.recall.server import VectorServer, connect_server
from prefold.storage import Sessions

T = TypeVar("T")

log = structlog.get_logger(__name__)

_CONNECT = timedelta(seconds=1)
_ANSWER = timedelta(seconds=3)
_CONNECTIONS = 16


class EmbeddedTurns:
    """The collections of the configured embedder; known once that is loaded. See ``TurnIndex`` and ``MemorySearch``.

    A collection that is not there yet has nothing in it: it is made, and the answer is empty.
    """

    def __init__(self, server: VectorServer, embedder: InBackground[Embedder]) -> None:
        self._server = server
        self._embedder = embedder
        self._index: VectorIndex | None = None
        self._memory: MemoryIndex | None = None

    async def search(
        self, tenant: str, vector: Vector, text: str, *, session: str | None, user: str | None, limit: int
    ) -> Sequence[Hit]:
        """Turns, best first."""
        index = await self._opened()
        found = await _searched(
            index, lambda: index.search(tenant, query=text, vector=vector, limit=limit, user=user, session=session)
        )
        return [_hit(hit) for hit in found if hit.ref.tenant == tenant]

    async def search_memory(
        self,
        tenant: str,
        vector: Vector,
        text: str,
        *,
        kinds: Sequence[DerivedKind],
        user: str | None,
        session: str | None,
        exclude_session: str | None,
        categories: Collection[str],
        limit: int,
    ) -> Sequence[DerivedHit]:
        """Derived texts, best first."""
        memory = await self._memory_opened()
        return await _searched(
            memory,
            lambda: memory.search(
                tenant,
                query=text,
                vector=vector,
                kinds=kinds,
                user=user,
                session=session,
                exclude_session=exclude_session,
                categories=categories,
                limit=limit,
            ),
        )

    async def forget(self, tenant: str, session: str, incarnation: str) -> int:
        """Deletes a life's vectors in the collections of all embedders; how many a second look still finds."""
        return await forget_turns(self._server, tenant, session=session, incarnation=incarnation)

    async def forget_turns(
        self,
        tenant: str,
        session: str,
        incarnation: str,
        first_seq: int,
        last_seq: int,
        *,
        below_revision: int | None = None,
    ) -> int:
        """Deletes what earlier revisions of these turns left, or all of it, in the collections of all embedders.

        How many vectors a second look still finds. Raises ``UnavailableError``; a worker deletes them later then.
        """
        changed = TurnRange(first_seq, last_seq, below_revision)
        return await forget_turns(self._server, tenant, session=session, incarnation=incarnation, turns=[changed])

    async def store_facts(self, tenant: str, user: str, facts: Sequence[Fact]) -> None:
        """Stores the vectors of facts; ``UnavailableError`` as long as the embedder loads. See ``DerivedIndex``."""
        embedder = self._embedder.now()
        if embedder is None:
            raise UnavailableError("the embedder is still loading", code="embedder_loading")
        if not facts:
            return
        texts = list(map(fact_text, facts))
        vectors = await asyncio.to_thread(embedder.embed_documents, [one.text for one in texts])
        points = [one.point(tenant, user, vector) for one, vector in zip(texts, vectors, strict=True)]
        memory = await self._memory_opened()
        try:
            await memory.upsert(points)
        except UnavailableError as error:
            if error.code != "collection_missing":
                raise
            await memory.ensure()
            await memory.upsert(points)

    async def forget_derived(
        self,
        tenant: str,
        *,
        user: str | None = None,
        session: str | None = None,
        incarnation: str | None = None,
        kinds: Sequence[DerivedKind] | None = None,
        keys: Sequence[str] | None = None,
    ) -> int:
        """Deletes derived texts in the collections of all embedders; how many a second look still finds."""
        scope = Scope(tenant=tenant, user=user, session=session, incarnation=incarnation, kinds=kinds, keys=keys)
        return await forget_in(self._server, (MEMORY_PREFIX,), [scope])

    async def forget_user(self, tenant: str, user: str) -> int:
        """Deletes everything of the user in all collections; how many a second look still finds."""
        return await forget_user(self._server, tenant, user)

    async def _opened(self) -> VectorIndex:
        if self._index is None:
            embedder = await self._embedder.get()
            self._index = VectorIndex(
                self._server, CollectionSpec(embedder.id, embedder.dimension), scale=embedder.scale
            )
        return self._index

    async def _memory_opened(self) -> MemoryIndex:
        if self._memory is None:
            embedder = await self._embedder.get()
            spec = CollectionSpec(embedder.id, embedder.dimension)
            self._memory = MemoryIndex(self._server, spec, scale=embedder.scale)
        return self._memory


def _hit(found: TurnHit) -> Hit:
    others = tuple(_hit(other) for other in found.others if other.ref.tenant == found.ref.tenant)
    return Hit(found.ref.session, found.ref.incarnation, found.seq, found.revision, found.score, others)


async def _searched(index: VectorIndex | MemoryIndex, search: Callable[[], Awaitable[list[T]]]) -> list[T]:
    try:
        return await search()
    except UnavailableError as error:
        if error.code != "collection_missing":
            raise
        log.warning("vector_collection_missing", collection=index.collection)
        await index.ensure()
        return []


@asynccontextmanager
async def opened_finder(settings: GatewaySettings, sessions: Sessions) -> AsyncIterator[tuple[Finder, EmbeddedTurns]]:
    """The finder and its index, with their connections; the embedder loads in the background."""
    key = settings.qdrant_api_key
    connecting = connect_server(
        settings.qdrant_url,
        api_key=key.get_secret_value() if key else None,
        connect_timeout=_CONNECT,
        request_timeout=_ANSWER,
        max_connections=_CONNECTIONS,
    )
    embedder = InBackground("embedder", lambda: embedder_from_settings(settings))
    embedder.start()
    executor = ThreadPoolExecutor(settings.embedder_threads, thread_name_prefix="embed")
    try:
        async with connecting as server:
            index = EmbeddedTurns(server, embedder)
            yield Finder(sessions, index, embedder, executor), index
    finally:
        # A query under way may hang on a server: the process does not wait for it.
        executor.shutdown(wait=False, cancel_futures=True)
        if (loaded := embedder.now()) is not None:
            await asyncio.to_thread(loaded.close)
