"""Deleting turns from all collections: the embedder may have been another one when they were stored."""

from collections.abc import Sequence
from typing import Final

from prefold.errors import UnavailableError
from prefold.recall.names import COLLECTION_PREFIX
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
    """Deletes a session's turns of one life, or of all; how many a second look finds.

    ``turns`` narrows it to what lies in any of the ranges; with an empty list nothing is done.
    """
    scopes = [Scope(tenant=tenant, session=session, incarnation=incarnation, turns=part) for part in _parts(turns)]
    if not scopes:
        return 0
    ours = [name for name in await server.collections() if name.startswith(COLLECTION_PREFIX)]
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
