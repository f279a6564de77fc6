"""Deleting from all collections: the embedder may have been another one when something was stored."""

from collections.abc import Sequence
from typing import Final

from prefold.errors import UnavailableError
from prefold.recall.names import COLLECTION_PREFIX, MEMORY_PREFIX
from prefold.recall.scope import Scope, TurnRange
from prefold.recall.server import VectorServer

_RANGES_PER_CALL: Final = 64


async def forget_turns(
    server: VectorServer,
    tenant: str,
    *,
    session: str,
    incarnation: str | None = None,
    turns: Sequence[TurnRange] | None = None,
) -> int:
    """Deletes a session's turns of one life, or of all, with what was derived from them; how many a second look finds.

    ``turns`` narrows it to the turns that lie in any of the ranges, and spares what was derived: its maker makes it
    anew, and may have done so already. With an empty list nothing is done.
    """
    scopes = [Scope(tenant=tenant, session=session, incarnation=incarnation, turns=part) for part in _parts(turns)]
    prefixes = (COLLECTION_PREFIX,) if turns is not None else (COLLECTION_PREFIX, MEMORY_PREFIX)
    return await forget_in(server, prefixes, scopes)


async def forget_user(server: VectorServer, tenant: str, user: str) -> int:
    """Deletes all of a user's turns, summaries and facts; how many a second look finds."""
    return await forget_in(server, (COLLECTION_PREFIX, MEMORY_PREFIX), [Scope(tenant=tenant, user=user)])


async def forget_in(server: VectorServer, prefixes: tuple[str, ...], scopes: Sequence[Scope]) -> int:
    """Deletes what lies in any of the scopes from all collections so named; how many a second look finds."""
    if not scopes:
        return 0
    ours = [name for name in await server.collections() if name.startswith(prefixes)]
    return sum([await _forget_in(server, name, scope) for name in ours for scope in scopes])


def _parts(turns: Sequence[TurnRange] | None) -> list[Sequence[TurnRange] | None]:
    """So many ranges as one call takes; None, once, stands for all turns."""
    if turns is None:
        return [None]
    return [turns[at : at + _RANGES_PER_CALL] for at in range(0, len(turns), _RANGES_PER_CALL)]


async def _forget_in(server: VectorServer, collection: str, scope: Scope) -> int:
    try:
        await server.delete(collection, scope.filter())
        return await server.count(collection, scope.filter(), exact=True)
    except UnavailableError as error:
        if error.code != "collection_missing":
            raise
        return 0
