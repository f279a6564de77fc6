"""The asyncio client on Redis itself."""

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, Final, TypeVar

from redis.exceptions import RedisError

from prefold.client.asynchronous import AsyncPrefold
from prefold.client.calls import Call, all_named, events
from prefold.client.direct.calls import DirectCalls
from prefold.client.direct.refusing import checked_url, patient, refused_by_store, unsupported
from prefold.client.direct.store import Durability, StoreLooks
from prefold.client.events import Event, Told
from prefold.client.results import Appended
from prefold.client.retrying import Attempts, RetryPolicy, closed_client
from prefold.conversation import check_name
from prefold.errors import TransientError, UnavailableError
from prefold.storage import connect_sessions
from prefold.tokens.at_hand import CounterKind, counter_at_hand

__all__ = ["DirectAsyncPrefold"]

T = TypeVar("T")
_REPLY_SECONDS: Final = 5.0
"""So long the connections to the sessions wait for a reply."""


class DirectAsyncPrefold(AsyncPrefold):
    """See ``AsyncPrefold.direct``. Belongs to the event loop of its first call."""

    def __init__(
        self,
        redis_url: str,
        *,
        tenant: str,
        retry: RetryPolicy | None,
        durability: Durability | None,
        build_seconds: float,
    ) -> None:
        self.url = checked_url(redis_url)
        self._retry = retry or RetryPolicy()
        self._tenant = check_name(tenant, "tenant")
        self._durability: Durability | None = durability
        self._lead = timedelta(seconds=build_seconds)
        self._counter, self._counter_kind = counter_at_hand()
        self._stack = AsyncExitStack()
        self._loop = None
        self._opening = asyncio.Lock()
        self._direct: DirectCalls | None = None
        self._is_closed = False
        self._is_hasty = min(self._retry.attempt_seconds, self._retry.deadline_seconds) < _REPLY_SECONDS

    @property
    def counter(self) -> CounterKind:
        """``exact`` or ``estimate``: how tokens are counted."""
        return self._counter_kind

    async def aclose(self) -> None:
        """Give the connections back, in the loop that they were made in. Closing twice is legal."""
        if self._direct is not None:
            self._check_loop()
        self._is_closed, self._direct = True, None
        await self._stack.aclose()

    async def append_many(self, session: str, turns: Iterable[Mapping[str, Any]]) -> Appended:
        """Publish several turns in order: all are stored, or none."""
        named, began = all_named(turns), time.monotonic()
        attempts: Attempts | None = None
        while True:
            try:
                direct = self._direct or await self._opened()
                self._check_loop()
                if not self._is_hasty:
                    return await direct.append(session, named)
                attempts = attempts or Attempts(self._retry, began=began)
                return await self._in_time(direct.append(session, named), attempts)
            except TransientError as error:
                attempts = attempts or Attempts(self._retry, began=began)
                pause = attempts.pause_after(patient(error))
            except RedisError as error:
                raise refused_by_store(error) from error
            await asyncio.sleep(pause)

    async def _send(self, call: Call[T]) -> T:
        if call.direct is None:
            raise unsupported(call)
        attempts = Attempts(self._retry)
        while True:
            try:
                direct = self._direct or await self._opened()
                self._check_loop()
                return await self._in_time(call.direct(direct), attempts)
            except TransientError as error:
                pause = attempts.pause_after(patient(error))
            except RedisError as error:
                raise refused_by_store(error) from error
            await asyncio.sleep(pause)

    async def _listen(self, session: str, told: Told) -> AsyncGenerator[Event | None, None]:  # noqa: ARG002
        raise unsupported(events(session))
        yield  # what makes it a generator

    async def _in_time(self, work: Coroutine[Any, Any, T], attempts: Attempts) -> T:
        if not self._is_hasty:
            return await work  # the connections' own bound is the nearer one
        try:
            async with asyncio.timeout(attempts.timeout_seconds()):
                return await work
        except TimeoutError as error:
            raise UnavailableError("Redis does not answer in time", code="no_answer") from error

    async def _opened(self) -> DirectCalls:
        async with self._opening:
            if self._is_closed:
                raise closed_client()
            if self._direct is None:
                sessions = await self._stack.enter_async_context(connect_sessions(self.url, lead=self._lead))
                looks = StoreLooks(sessions, self._durability, waits=True)
                self._direct = DirectCalls(sessions, looks, self._tenant, self._counter)
            return self._direct
