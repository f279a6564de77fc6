"""``DELETE /v1/sessions/{session}``: erasure, with a receipt."""

import time
from typing import Protocol

from redis.asyncio import Redis
from redis.exceptions import ResponseError
from starlette.responses import Response

from prefold.conversation.ids import check_name
from prefold.errors import UnavailableError
from prefold.gateway.answers import ErasureAnswer, Remains
from prefold.gateway.bodies import json_response
from prefold.gateway.exchange import Exchange
from prefold.gateway.session_calls import iso_time
from prefold.storage import Sessions
from prefold.storage.client import redis_failures
from prefold.storage.types import SessionRef


class ForgettingIndex(Protocol):
    """The vectors, as an erasure needs them."""

    async def forget(self, tenant: str, session: str) -> int:
        """Deletes a session's vectors; how many are left. Raises ``UnavailableError``."""
        ...


class ErasureCalls:
    """Erases what was said. What is derived goes with it, and work under way is refused by the raised epoch."""

    def __init__(self, sessions: Sessions, index: ForgettingIndex) -> None:
        self._sessions = sessions
        self._index = index

    async def session(self, exchange: Exchange) -> Response:
        """Erase a session. Safe to repeat: a repeat finishes what a failure had left."""
        session = check_name(exchange.path["session"], "session")
        exchange.query()
        erased = await self._sessions.erase(exchange.tenant, session)
        try:
            vectors_left = await self._index.forget(exchange.tenant, session)
        except UnavailableError as error:
            # Nobody can find them any more: a hit counts only if the log confirms it.
            raise UnavailableError(
                "the turns are erased, their vectors are not: repeat the call",
                code="erasure_incomplete",
                retry_after=error.retry_after,
            ) from error
        if erased.incarnation:
            await self._sessions.end_expiry(SessionRef(exchange.tenant, session, erased.incarnation))
        receipt = ErasureAnswer(
            session=session,
            erased_at=iso_time(time.time_ns() // 1_000_000),
            turns=erased.turns,
            keys_left=erased.keys_left,
            vectors_left=vectors_left,
            remains=await _remains(self._sessions.client),
        )
        return json_response(receipt)


async def _remains(redis: Redis) -> list[Remains]:
    """What a receipt has to name: files that the stores write anew in their own time."""
    return [
        Remains(where="redis append-only file", until=await _rewritten(redis)),
        Remains(where="vector store files", until="the store's next vacuum"),
        Remains(where="backups that you keep", until="you replace them"),
    ]


async def _rewritten(redis: Redis) -> str:
    with redis_failures():
        try:
            await redis.bgrewriteaof()
        except ResponseError:  # one is under way already, or the server does not let us
            return "the next rewrite"
    return "the rewrite that was started now"
