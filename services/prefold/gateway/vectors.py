"""The vectors behind recall: embedder and vector store, opened for the process."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta

import structlog

from prefold.embedding import Embedder, Vector, embedder_from_settings
from prefold.errors import UnavailableError
from prefold.gateway.background import InBackground
from prefold.gateway.finding import Finder, Hit
from prefold.gateway.settings import GatewaySettings
from prefold.recall import CollectionSpec, TurnRange, VectorIndex, forget_turns, query_words
from prefold.recall.server import VectorServer
from prefold.recall.transport import HttpTransport
from prefold.storage import Sessions

log = structlog.get_logger(__name__)

_CONNECT = timedelta(seconds=1)
_ANSWER = timedelta(seconds=3)
_CONNECTIONS = 16


class EmbeddedTurns:
    """The collection of the configured embedder; known once that is loaded. See ``TurnIndex``."""

    def __init__(self, server: VectorServer, embedder: InBackground[Embedder]) -> None:
        self._server = server
        self._embedder = embedder
        self._index: VectorIndex | None = None

    async def search(
        self, tenant: str, vector: Vector, text: str, *, session: str | None, user: str | None, limit: int
    ) -> Sequence[Hit]:
        """Best first. A collection that is not there yet has nothing in it: it is made, and the answer is empty."""
        index = await self._opened()
        try:
            found = await index.search(
                tenant, vector=vector, words=query_words(text), limit=limit, user=user, session=session
            )
        except UnavailableError as error:
            if error.code != "collection_missing":
                raise
            log.warning("vector_collection_missing", collection=index.collection)
            await index.ensure()
            return []
        return [
            Hit(hit.ref.session, hit.ref.incarnation, hit.seq, hit.revision, hit.score)
            for hit in found
            if hit.ref.tenant == tenant
        ]

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

    async def _opened(self) -> VectorIndex:
        if self._index is None:
            embedder = await self._embedder.get()
            self._index = VectorIndex(
                self._server, CollectionSpec(embedder.id, embedder.dimension), scale=embedder.scale
            )
        return self._index


@asynccontextmanager
async def opened_finder(settings: GatewaySettings, sessions: Sessions) -> AsyncIterator[tuple[Finder, EmbeddedTurns]]:
    """The finder and its index, with their connections; the embedder loads in the background."""
    key = settings.qdrant_api_key
    transport = HttpTransport(
        settings.qdrant_url,
        headers={"api-key": key.get_secret_value()} if key else {},
        connect_timeout=_CONNECT,
        request_timeout=_ANSWER,
        max_connections=_CONNECTIONS,
    )
    embedder = InBackground("embedder", lambda: embedder_from_settings(settings))
    embedder.start()
    executor = ThreadPoolExecutor(settings.embedder_threads, thread_name_prefix="embed")
    try:
        async with transport:
            index = EmbeddedTurns(VectorServer(transport), embedder)
            yield Finder(sessions, index, embedder, executor), index
    finally:
        # A query under way may hang on a server: the process does not wait for it.
        executor.shutdown(wait=False, cancel_futures=True)
        if (loaded := embedder.now()) is not None:
            await asyncio.to_thread(loaded.close)
