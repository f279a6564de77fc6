"""The vector index as the embed job uses it: made where it is missing, and made again if its server loses it."""

from collections.abc import Sequence

from prefold.errors import UnavailableError
from prefold.recall import TurnPoint, TurnRange, VectorIndex
from prefold.storage.types import SessionRef


class MadeIndex:
    """A ``TurnStore``. The first write of the process makes the collection and its indexes, if need be."""

    def __init__(self, index: VectorIndex) -> None:
        self._index = index
        self._is_made = False

    @property
    def collection(self) -> str:
        """See ``VectorIndex``."""
        return self._index.collection

    async def upsert(self, points: Sequence[TurnPoint]) -> None:
        """See ``VectorIndex``."""
        await self._make()
        try:
            await self._index.upsert(points)
        except UnavailableError as error:
            if error.code != "collection_missing":
                raise
            self._is_made = False
            await self._make()
            await self._index.upsert(points)

    async def delete(self, tenant: str, *, session: str, incarnation: str) -> None:
        """See ``VectorIndex``."""
        await self._index.forget(tenant, session=session, incarnation=incarnation)

    async def delete_turns(self, ref: SessionRef, turns: Sequence[TurnRange]) -> None:
        """See ``VectorIndex.forget``."""
        await self._index.forget(ref.tenant, session=ref.session, incarnation=ref.incarnation, turns=turns)

    async def _make(self) -> None:
        if self._is_made:
            return
        await self._index.ensure()
        await self._index.other_collections()  # says so when another embedder was here before
        self._is_made = True
