"""Vectors for turns. One turn that the embedder refuses holds up no other."""

import asyncio
from collections.abc import Sequence

import structlog

from prefold.embedding import Embedder, Matrix, Vector
from prefold.errors import ConfigurationError, TransientError, UnavailableError
from prefold.worker.embed_page import Item, names
from prefold.worker.verdicts import reason_of

log = structlog.get_logger(__name__)

_PROBE = "This is a sentence that every embedder can read."


class TurnVectors:
    """Calls the embedder in a thread. ``UnavailableError``: it is away, or refuses every text."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.refused = 0

    async def of(self, items: Sequence[Item]) -> list[Vector | None]:
        """A vector for each item, None for a refused one: a bad turn is looked for by halves."""
        if not items:
            return []
        try:
            return list(await self._embed([item.text for item in items]))
        except TransientError:
            raise
        except ConfigurationError as error:
            raise UnavailableError(error.detail) from error
        except Exception as error:  # noqa: BLE001 (an embedder may fail in any way on one turn; the others must go on)
            if len(items) == 1:
                await self._refuse(items[0], error)
                return [None]
        half = len(items) // 2
        return await self.of(items[:half]) + await self.of(items[half:])

    async def _refuse(self, item: Item, error: Exception) -> None:
        """Records a turn that cannot be embedded, unless it is the embedder that is broken."""
        try:
            await self._embed([_PROBE])
        except Exception as broken:  # noqa: BLE001 (as above)
            raise UnavailableError(f"the embedder refuses every text: {broken}") from error
        self.refused += 1
        log.error("turn_refused_by_embedder", **names(item.page.work.ref), seq=item.turn.seq, error=reason_of(error))

    async def _embed(self, texts: list[str]) -> Matrix:
        return await asyncio.to_thread(self._embedder.embed_documents, texts)
