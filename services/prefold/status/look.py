"""One look at a deployment: its stores, its queues, its gateways. Changes nothing."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import httpx
from redis.asyncio import Redis
from redis.exceptions import RedisError

from prefold.config.addresses import tried
from prefold.errors import PrefoldError
from prefold.jobs import QUEUES, DeadLetters, JobQueue, QueueName, queue_connection
from prefold.status.gateways import GatewayCounts, counts_of
from prefold.status.sessions import Seen, Walk
from prefold.status.settings import StatusSettings, metrics_urls
from prefold.storage.backlog import DueBacklog, EventBacklog, due_backlog, event_backlog, now_ms_of
from prefold.storage.client import connect
from prefold.storage.ingest import IngestStreams, Waiting
from prefold.storage.ingest_letters import IngestLetters
from prefold.storage.keys import PARTITIONS

__all__ = ["Look", "Looker", "QueueState", "Store", "opened_looker"]

_REPLY_TIMEOUT: Final = timedelta(seconds=2)
_TENANTS_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class QueueState:
    """Of one queue."""

    name: QueueName
    jobs: int
    """That wait."""
    workers: int


@dataclass(frozen=True, slots=True)
class Store:
    """What the sessions' Redis tells."""

    now_ms: int
    events: EventBacklog
    due: DueBacklog
    letters: Mapping[str, int]
    """Dead letters by kind."""
    ingest: tuple[Waiting, ...] = ()
    """What stands in ingest streams, also in those that nobody reads."""

    @property
    def ingest_age_seconds(self) -> float:
        """Of the entry that waits longest in an ingest stream."""
        return max((self.waits_seconds(one) for one in self.ingest), default=0.0)

    def waits_seconds(self, stream: Waiting) -> float:
        """Of the stream's first entry."""
        return max(0.0, (self.now_ms - stream.oldest_ms) / 1000) if stream.oldest_ms else 0.0

    @property
    def event_age_seconds(self) -> float:
        """Of the oldest event that is not done with."""
        return self.events.age_seconds(self.now_ms)

    @property
    def due_age_seconds(self) -> float:
        """Since the oldest due work is due."""
        return self.due.age_seconds(self.now_ms)


@dataclass(frozen=True, slots=True)
class Look:
    """What was found. ``None``: that part does not answer."""

    at: float
    """Seconds of the Unix clock."""
    store: Store | None
    seen: Seen
    queues: tuple[QueueState, ...] | None
    gateways: GatewayCounts
    away: tuple[str, ...] = field(default=())
    """Why parts do not answer."""
    partitions: int = PARTITIONS


class Looker:
    """Looks as often as it is asked to."""

    def __init__(
        self,
        client: Redis,
        jobs: JobQueue,
        web: httpx.AsyncClient,
        settings: StatusSettings,
        addresses: Mapping[str, str],
    ) -> None:
        self._client = client
        self._jobs = jobs
        self._web = web
        self._urls = metrics_urls(settings)
        self._addresses = addresses
        self._tenants: Sequence[str] = ()
        self._tenants_at = -math.inf
        self._walk = Walk(client, settings.near_limit_percent / 100)

    async def look(self, sessions: int) -> Look:
        """Asks all parts at once; of the sessions so many more are looked at. Never raises."""
        store, queues, gateways = await asyncio.gather(
            self._store(sessions), asyncio.to_thread(self._queues), counts_of(self._web, self._urls)
        )
        away = [one for one in (store, queues) if isinstance(one, str)]
        away += gateways.away
        return Look(
            at=time.time(),
            store=None if isinstance(store, str) else store,
            seen=self._walk.seen,
            queues=None if isinstance(queues, str) else queues,
            gateways=gateways,
            away=tuple(away),
        )

    async def _store(self, sessions: int) -> Store | str:
        try:
            found = await self._read_store()
            if sessions:
                await self._walk.advance(sessions)
        except (PrefoldError, RedisError) as error:  # the latter: it answers, and does not let us look
            return f"sessions {self._addresses['sessions']}: {error}"
        return found

    async def _read_store(self) -> Store:
        now_ms = await now_ms_of(self._client)
        letters = Counter[str](letter.kind for letter in await DeadLetters(self._client).letters())
        tenants = await self._ingest_tenants()
        if tenants and (number := await IngestLetters(self._client).number(tenants)):
            letters["ingest"] = number
        return Store(
            now_ms=now_ms,
            events=await event_backlog(self._client),
            due=await due_backlog(self._client, now_ms),
            letters=letters,
            ingest=tuple(await IngestStreams(self._client).waiting(tenants)),
        )

    async def _ingest_tenants(self) -> Sequence[str]:
        """Who has a stream or letters is found by a walk through all keys: once a minute."""
        if time.monotonic() - self._tenants_at > _TENANTS_SECONDS:
            self._tenants, self._tenants_at = await IngestStreams(self._client).tenants(), time.monotonic()
        return self._tenants

    def _queues(self) -> tuple[QueueState, ...] | str:
        try:
            return tuple(QueueState(name, self._jobs.depth(name), self._jobs.workers(name)) for name in QUEUES)
        except (PrefoldError, RedisError) as error:
            return f"queue {self._addresses['queue']}: {error}"


@asynccontextmanager
async def opened_looker(settings: StatusSettings) -> AsyncIterator[Looker]:
    """With connections of its own, closed at the end. Opens none before it looks."""
    addresses = {"sessions": tried(settings, "redis_url"), "queue": tried(settings, "queue_url")}
    async with AsyncExitStack() as stack:
        connecting = connect(settings.redis_url, max_connections=4, timeout=_REPLY_TIMEOUT, retries=0)
        client = await stack.enter_async_context(connecting)
        queue = queue_connection(settings.queue_url, reply_timeout=_REPLY_TIMEOUT, retries=0)
        jobs = stack.enter_context(closing(JobQueue(queue)))
        web = await stack.enter_async_context(httpx.AsyncClient())
        yield Looker(client, jobs, web, settings, addresses)
