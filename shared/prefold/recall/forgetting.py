"""Deleting turns from all collections: the embedder may have been another one when they were stored."""

from prefold.errors import UnavailableError
from prefold.recall.names import COLLECTION_PREFIX
from prefold.recall.scope import Scope
from prefold.recall.server import VectorServer


async def forget_turns(
    server: VectorServer, tenant: str, *, session: str, incarnation: str | None = None, other_than: str | None = None
) -> int:
    """Deletes a session's turns of one life, of all, or of all but ``other_than``; how many a second look finds."""
    scope = Scope(tenant=tenant, session=session, incarnation=incarnation, other_than=other_than)
    ours = [name for name in await server.collections() if name.startswith(COLLECTION_PREFIX)]
    return sum([await _forget_in(server, name, scope) for name in ours])


async def _forget_in(server: VectorServer, collection: str, scope: Scope) -> int:
    try:
        await server.delete(collection, scope.filter())
        return await server.count(collection, scope.filter(), exact=True)
    except UnavailableError as error:
        if error.code != "collection_missing":
            raise
        return 0
