"""The blocking client on Redis itself."""

import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from redis.exceptions import RedisError

from prefold.client.blocking import Prefold
from prefold.client.calls import Call, all_named, events
from prefold.client.direct.blocking_redis import complete, connect_blocking
from prefold.client.direct.calls import DirectCalls
from prefold.client.direct.refusing import checked_url, patient, refused_by_store, unsupported
from prefold.client.direct.store import Durability, StoreLooks
from prefold.client.events import Event, Told
from prefold.client.results import Appended
from prefold.client.retrying import Attempts, RetryPolicy, closed_client
from prefold.conversation import check_name
from prefold.errors import TransientError
from prefold.tokens.at_hand import CounterKind, counter_at_hand

__all__ = ["DirectPrefold"]

T = TypeVar("T")


class DirectPrefold(Prefold):
    """See ``Prefold.direct``. Safe to share between threads, and to be inherited by a forked process."""

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
        checked = check_name(tenant, "tenant")
        self._counter, self._counter_kind = counter_at_hand()
        self._is_closed = False
        seconds = self._retry.attempt_seconds
        self._redis, sessions = connect_blocking(redis_url, seconds, timedelta(seconds=build_seconds))
        self._direct = DirectCalls(sessions, StoreLooks(sessions, durability, waits=False), checked, self._counter)

    @property
    def counter(self) -> CounterKind:
        """``exact`` or ``estimate``: how tokens are counted."""
        return self._counter_kind

    def close(self) -> None:
        """Give the connections back. Closing twice is legal."""
        self._is_closed = True
        self._redis.close()

    def append_many(self, session: str, turns: Iterable[Mapping[str, Any]]) -> Appended:
        """Publish several turns in order: all are stored, or none."""
        named, attempts = all_named(turns), Attempts(self._retry)
        while True:
            try:
                return complete(self._opened().append(session, named))
            except TransientError as error:
                pause = attempts.pause_after(patient(error))
            except RedisError as error:
                raise refused_by_store(error) from error
            time.sleep(pause)

    def _send(self, call: Call[T]) -> T:
        if call.direct is None:
            raise unsupported(call)
        attempts = Attempts(self._retry)
        while True:
            try:
                return complete(call.direct(self._opened()))
            except TransientError as error:
                pause = attempts.pause_after(patient(error))
            except RedisError as error:
                raise refused_by_store(error) from error
            time.sleep(pause)

    def _opened(self) -> DirectCalls:
        if self._is_closed:
            raise closed_client()
        return self._direct

    def _listen(self, session: str, told: Told) -> Iterator[Event | None]:  # noqa: ARG002
        raise unsupported(events(session))
