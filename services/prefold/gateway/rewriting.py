"""The session store's log, written anew after an erasure: until then the file still holds what was erased."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import structlog
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from prefold.errors import TransientError
from prefold.storage.client import redis_failures

log = structlog.get_logger(__name__)

_UNDER_WAY = "in progress"
"""In what the server says when it writes its log anew already."""


class LogRewrites:
    """Asks for rewrites. One that is under way began before the erasure, so another one is owed after it."""

    def __init__(self, redis: Redis, *, pause_seconds: float = 3.0) -> None:
        self._redis = redis
        self._pause_seconds = pause_seconds
        self._is_owed = asyncio.Event()

    async def ask(self) -> str:
        """Start a rewrite, or owe it; which one it will be. Raises ``UnavailableError``."""
        try:
            await self._start()
        except ResponseError as error:
            if _UNDER_WAY not in str(error):  # the server does not let us
                return "the next rewrite"
            self._is_owed.set()
            return "the rewrite that follows the one under way"
        return "the rewrite that was started now"

    async def settle(self) -> None:
        """Starts what is owed as soon as the server takes it. Runs until it is cancelled."""
        while True:
            await self._is_owed.wait()
            await asyncio.sleep(self._pause_seconds)
            try:
                if self._is_owed.is_set():
                    await self._start()
            except ResponseError as error:
                if _UNDER_WAY not in str(error):
                    self._is_owed.clear()
                    log.warning("rewrite_refused", reason=str(error))
            except TransientError as error:
                log.warning("rewrite_waits", reason=error.detail)

    async def _start(self) -> None:
        with redis_failures():
            await self._redis.bgrewriteaof()
        self._is_owed.clear()


@asynccontextmanager
async def opened_rewrites(redis: Redis, *, pause_seconds: float = 3.0) -> AsyncIterator[LogRewrites]:
    """Rewrites whose debts are settled in the background until the end."""
    rewrites = LogRewrites(redis, pause_seconds=pause_seconds)
    settling = asyncio.create_task(rewrites.settle(), name="log rewrites")
    try:
        yield rewrites
    finally:
        settling.cancel()
        with suppress(asyncio.CancelledError):
            await settling
