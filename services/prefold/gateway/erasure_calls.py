"""``DELETE /v1/sessions/{session}``: erasure, with a receipt."""

import time
from typing import Protocol

from starlette.responses import Response

from prefold.conversation.ids import check_name
from prefold.errors import GoneError, NotFoundError, UnavailableError
from prefold.gateway.answers import ErasureAnswer, Remains
from prefold.gateway.bodies import json_response
from prefold.gateway.exchange import Exchange
from prefold.gateway.rewriting import LogRewrites
from prefold.gateway.session_calls import iso_time
from prefold.storage import Sessions
from prefold.storage.types import ErasedSession


class ForgettingIndex(Protocol):
    """The vectors, as an erasure needs them."""

    async def forget(
        self, tenant: str, session: str, incarnation: str | None = None, *, other_than: str | None = None
    ) -> int:
        """Deletes the vectors of one life of a session, of all its lives, or of all but ``other_than``.

        How many of them are left. Raises ``UnavailableError``.
        """
        ...


class ErasureCalls:
    """Erases what was said. What is derived goes with it, and work under way is refused by the raised epoch."""

    def __init__(self, sessions: Sessions, index: ForgettingIndex, rewrites: LogRewrites) -> None:
        self._sessions = sessions
        self._index = index
        self._rewrites = rewrites

    async def session(self, exchange: Exchange) -> Response:
        """Erase a session. Safe to repeat: a repeat finishes what a failure had left."""
        session = check_name(exchange.path["session"], "session")
        exchange.query()
        erased = await self._sessions.erase(exchange.tenant, session)
        try:
            vectors_left = await self._forget(exchange.tenant, erased)
        except UnavailableError as error:
            # Nobody can find them any more: a hit counts only if the log confirms it.
            raise UnavailableError(
                "the turns are erased, their vectors are not: repeat the call",
                code="erasure_incomplete",
                retry_after=error.retry_after,
            ) from error
        # The due entry stays: a job that embeds now may write once more, and the worker looks again after it.
        receipt = ErasureAnswer(
            session=session,
            erased_at=iso_time(time.time_ns() // 1_000_000),
            turns=erased.turns,
            keys_left=erased.keys_left,
            vectors_left=vectors_left,
            remains=await self._remains(),
        )
        return json_response(receipt)

    async def _forget(self, tenant: str, erased: ErasedSession) -> int:
        if erased.incarnation:
            return await self._index.forget(tenant, erased.session, erased.incarnation)
        try:
            living = (await self._sessions.view(tenant, erased.session)).ref.incarnation
        except (NotFoundError, GoneError):
            living = None
        # A repeat: what is left is of earlier lives, and somebody may have begun a new one since.
        return await self._index.forget(tenant, erased.session, other_than=living)

    async def _remains(self) -> list[Remains]:
        """What a receipt has to name: files that the stores write anew in their own time."""
        return [
            Remains(where="redis append-only file", until=await self._rewrites.ask()),
            Remains(where="vector store files", until="the store has vacuumed and its write-ahead log has moved on"),
            Remains(where="backups that you keep", until="you replace them"),
        ]
