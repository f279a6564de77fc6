"""From a question to turns: embedding, words and the index, put together."""

import asyncio

from prefold.embedding.protocol import Embedder
from prefold.recall.index import VectorIndex
from prefold.recall.points import TurnHit


class TurnSearch:
    """Finds turns by a text. Owns neither the index nor the embedder."""

    def __init__(self, index: VectorIndex, embedder: Embedder) -> None:
        self._index = index
        self._embedder = embedder

    async def find(
        self, tenant: str, query: str, *, limit: int = 20, user: str | None = None, session: str | None = None
    ) -> list[TurnHit]:
        """The tenant's turns that fit the query, best first. Embeds in a thread, so the loop goes on.

        Raises what the embedder and ``VectorIndex.search`` raise.
        """
        vector = await asyncio.to_thread(self._embedder.embed_query, query)
        return await self._index.search(tenant, query=query, vector=vector, limit=limit, user=user, session=session)
