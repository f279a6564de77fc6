"""Changing a stored state beside whatever else writes it."""

from collections.abc import Callable
from typing import Final, Protocol

from prefold.errors import ConflictError, NotFoundError
from prefold.pinned.stored import Pinned, decode, encode
from prefold.storage.memory_types import StoredState

__all__ = ["StateStorage", "change_state"]

_TRIES: Final = 8


class StateStorage(Protocol):
    """Part of ``prefold.storage.Sessions``; see there."""

    async def read_state(self, tenant: str, session: str) -> StoredState: ...
    async def put_state(
        self,
        tenant: str,
        session: str,
        *,
        expected_version: int,
        body: bytes,
        tokens: int,
        incarnation: str = "",
        forgets: bool = False,
    ) -> StoredState: ...


async def change_state(
    storage: StateStorage,
    tenant: str,
    session: str,
    change: Callable[[Pinned, StoredState], Pinned],
    *,
    incarnation: str | None = None,
    forgets: bool = False,
) -> StoredState:
    """Reads, changes and writes until nobody wrote in between; the state as it is stored then.

    ``change`` may be called several times, and raises what it likes. ``incarnation``: of that life of the session only.
    ``forgets``: it takes something away, and a full store takes it.
    ``NotFoundError``, ``GoneError`` as ``read_state`` raises them; ``ConflictError`` (version_conflict): others write
    all the time; what ``put_state`` raises else.
    """
    for _ in range(_TRIES):
        stored = await storage.read_state(tenant, session)
        if incarnation not in (None, stored.ref.incarnation):
            raise NotFoundError("that life of the session is over", code="session_not_found")
        before = decode(stored.body)
        after = change(before, stored)
        if after == before:
            return stored
        try:
            return await storage.put_state(
                tenant,
                session,
                expected_version=stored.version,
                body=encode(after),
                tokens=after.tokens,
                incarnation=stored.ref.incarnation,  # what one life held must not come back in the next
                forgets=forgets,
            )
        except NotFoundError:
            continue  # a new life has begun, or none: the next look tells
        except ConflictError as error:
            if error.code != "version_conflict":
                raise
    raise ConflictError("others write the state all the time", code="version_conflict")
