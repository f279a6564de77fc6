"""Sessions for threads: the storage's own coroutines over a client that blocks, so that they run through at once.

A coroutine that only ever awaits what is there already needs no event loop: its first step is its last. So the two
clients share every line that knows what a session is.
"""

import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from datetime import timedelta
from typing import Any, Final, Generic, Self, TypeVar, cast

from redis import BlockingConnectionPool, Redis, exceptions
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

from prefold.config.redis_urls import is_cluster_url
from prefold.errors import TransientError, UnsupportedError
from prefold.storage import Sessions
from prefold.storage.build_times import BuildLeads, BuildTimes
from prefold.storage.hot import Argument
from prefold.storage.lean import Lean
from prefold.storage.limits import milliseconds

__all__ = ["complete", "connect_blocking"]

T = TypeVar("T")
_FRESH_SECONDS: Final = 10.0
_PAUSES: Final = (0.0, 0.02, 0.1)
"""Seconds before each further try."""


def complete(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits. RuntimeError: it did."""
    try:
        work.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    work.close()
    raise RuntimeError("a call that has to wait, in a client that has nothing to wait with")


class Done(Generic[T]):
    """An awaitable that is there: the value, or the error that awaiting it raises."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call

    def __await__(self) -> Generator[Any, None, T]:
        return self._call()
        yield  # what makes it a generator


class BlockingClient:
    """redis-py's asyncio client as far as sessions use it, over its blocking one."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Done[Any]]:
        command = getattr(self._client, name)
        return lambda *arguments, **named: Done(lambda: command(*arguments, **named))

    def pipeline(self, transaction: bool = True) -> "BlockingPipeline":
        return BlockingPipeline(self._client.pipeline(transaction=transaction))


class BlockingPipeline:
    """Commands that go out together."""

    def __init__(self, pipeline: Any) -> None:
        self._pipeline = pipeline

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return cast("Callable[..., Any]", getattr(self._pipeline, name))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._pipeline.reset()

    async def execute(self, raise_on_error: bool = True) -> Any:
        return self._pipeline.execute(raise_on_error)


class Connects:
    """How many connections were made: behind a new one may be another server."""

    def __init__(self) -> None:
        self.made = 0

    def note(self, connection: Any) -> None:
        """Called for each that is made, in the place of its own greeting."""
        self.made += 1
        connection.on_connect()


class BlockingLean:
    """The hot paths over connections of the same pool, without what redis-py does around each command."""

    def __init__(self, client: Redis, connects: Connects) -> None:
        self._connects = connects
        self._client: Any = client
        self._pool: Any = client.connection_pool

    @property
    def connections_made(self) -> int:
        return self._connects.made

    async def evalsha(self, sha: str, numkeys: int, *keys_and_args: Argument) -> Any:
        return await self.execute(("EVALSHA", sha, numkeys, *keys_and_args))

    async def script_load(self, script: str) -> Any:
        return await self.execute(("SCRIPT", "LOAD", script))

    async def execute(self, *commands: Sequence[Argument]) -> Any:
        if len(commands) == 1:
            return self._persist(commands[0])
        is_transaction = commands[0][0] == "MULTI"
        with self._client.pipeline(transaction=is_transaction) as pipeline:
            for command in commands[1:-1] if is_transaction else commands:
                pipeline.execute_command(*command)
            replies = pipeline.execute()
        return replies if is_transaction else replies[-1]

    def _persist(self, command: Sequence[Argument]) -> Any:
        """Sent again after a lost connection, never after a reply that did not come in time."""
        for pause in _PAUSES:
            try:
                return self._once(command)
            except exceptions.ConnectionError:
                time.sleep(pause)
        return self._once(command)

    def _once(self, command: Sequence[Argument]) -> Any:
        connection = self._pool.get_connection()
        try:
            connection.send_command(*command, check_health=False)
            return connection.read_response()
        finally:
            self._pool.release(connection)


class BlockingLeads:
    """How long builds take, for appends: what was measured some seconds ago."""

    def __init__(self, times: BuildTimes, prior: timedelta) -> None:
        self._times = times
        self._prior_ms = milliseconds(prior)
        self._known: dict[str, tuple[float, int]] = {}

    def ms_of(self, tenant: str) -> int:
        read_at, lead_ms = self._known.get(tenant, (0.0, self._prior_ms))
        if not read_at or time.monotonic() - read_at > _FRESH_SECONDS:
            self._known[tenant] = (time.monotonic(), lead_ms)  # first, so that other threads do not ask as well
            try:
                lead_ms = complete(self._times.lead_ms(tenant, self._prior_ms))
            except (TransientError, exceptions.ResponseError):  # or it may not be read by this user
                return lead_ms
            self._known[tenant] = (time.monotonic(), lead_ms)
        return lead_ms


def connect_blocking(url: str, timeout_seconds: float, build_lead: timedelta) -> tuple[Redis, Sessions]:
    """A client, to be closed, and sessions on it, whose calls ``complete`` runs. Opens nothing yet."""
    if is_cluster_url(url):
        raise UnsupportedError("a Redis cluster needs AsyncPrefold.direct, or a gateway over HTTP", field="redis_url")
    connects = Connects()
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=64,
        timeout=timeout_seconds,
        socket_timeout=timeout_seconds,
        socket_connect_timeout=timeout_seconds,
        redis_connect_func=connects.note,
        retry=Retry(ExponentialBackoff(cap=0.5, base=0.02), 3, supported_errors=(exceptions.ConnectionError,)),
    )
    client = Redis.from_pool(pool)
    adapted = cast("Any", BlockingClient(client))
    leads = BlockingLeads(BuildTimes(adapted), build_lead)
    lean: Lean = BlockingLean(client, connects)
    return client, Sessions(adapted, hot=lean, leads=cast("BuildLeads", leads))
