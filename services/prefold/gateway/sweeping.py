"""Removes what names an erased session beside its own keys, and looks into every store again."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import structlog

from prefold.errors import UnavailableError
from prefold.jobs import JobQueue, queue_connection
from prefold.jobs.dead_letters import DeadLetters
from prefold.storage import Sessions
from prefold.storage.ingest import IngestStreams
from prefold.storage.ingest_letters import IngestLetters
from prefold.storage.traces import SessionTraces
from prefold.storage.types import ErasedSession

log = structlog.get_logger(__name__)

_QUEUE_SECONDS = 2.0
"""For the queue to be looked through; a worker looks again in any case."""
_MOST_LIVES = 50
"""Whose vectors one call deletes; the workers delete those of every life."""


class ForgettingIndex(Protocol):
    """The vectors, as an erasure needs them."""

    async def forget(self, tenant: str, session: str, incarnation: str) -> int:
        """Deletes the vectors of one life of a session; how many of them are left. Raises ``UnavailableError``."""
        ...


class NamingJobs(Protocol):
    """The job queue, as an erasure needs it: calls block and raise ``UnavailableError``. See ``JobQueue``."""

    def jobs_of(self, tenant: str, session: str) -> int: ...
    def forget_jobs(self, tenant: str, session: str) -> int: ...


@dataclass(frozen=True, slots=True)
class Findings:
    """What a second look found of lives that are over. None: the store could not be looked at."""

    keys: int
    events: int
    due: int
    dead_letters: int
    logged_commands: int | None
    jobs: int | None
    vectors: int | None
    is_reopened: bool
    lives: tuple[str, ...] = ()
    """Those that were looked at."""
    was_published: bool = False
    """The tenant publishes turns on an ingest stream, whose server's files may hold their words."""

    def not_checked(self) -> list[str]:
        """The stores that could not be looked at."""
        looks = {"jobs": self.jobs, "vectors": self.vectors, "slow_commands": self.logged_commands}
        return [name for name, found in looks.items() if found is None]


class Sweep:
    """Safe to repeat: a repeat finishes what a failure had left."""

    def __init__(self, sessions: Sessions, index: ForgettingIndex, jobs: NamingJobs | None) -> None:
        self._traces = SessionTraces(sessions.client)
        self._dead_letters = DeadLetters(sessions.client)
        self._published = IngestStreams(sessions.client)
        self._letters = IngestLetters(sessions.client)
        self._index = index
        self._jobs = jobs

    async def run(self, tenant: str, erased: ErasedSession) -> Findings:
        """Removes and looks. Raises ``UnavailableError`` when the session store does not answer."""
        session = erased.session
        # A repeat does not know the life: those whose end no worker has followed up yet are the ones to look at.
        lives = [erased.incarnation] if erased.incarnation else await self._traces.ended(tenant, session)
        await self._traces.remove(tenant, session)
        await self._dead_letters.erase(tenant, session)
        await self.forget_published(tenant, session)
        jobs, vectors = await asyncio.gather(
            self._sweep_jobs(tenant, session), self._sweep_vectors(tenant, session, lives)
        )
        found = await self._traces.look(tenant, session)
        waiting = 0 if found.is_reopened else await self._published.count(tenant, session)
        return Findings(
            keys=found.keys,
            events=found.events + waiting,
            due=found.due,
            dead_letters=await self._dead_letters.count(tenant, session) + await self._letters.count(tenant, session),
            logged_commands=found.logged_commands,
            jobs=jobs,
            vectors=vectors,
            is_reopened=found.is_reopened,
            lives=tuple(lives),
            was_published=await self._published.was_used(tenant),
        )

    async def forget_published(self, tenant: str, session: str, *, before_ms: int | None = None) -> int:
        """Removes turns that wait in the tenant's ingest stream, or could not be stored from there; how many.

        ``before_ms``: later ones stay.
        """
        # In this order: an entry that cannot be applied moves from the one to the other.
        waiting = await self._published.forget(tenant, session, before_ms=before_ms)
        return waiting + await self._letters.erase(tenant, session, before_ms=before_ms)

    async def _sweep_jobs(self, tenant: str, session: str) -> int | None:
        if self._jobs is None:
            return None
        try:
            async with asyncio.timeout(_QUEUE_SECONDS):
                await asyncio.to_thread(self._jobs.forget_jobs, tenant, session)
                return await asyncio.to_thread(self._jobs.jobs_of, tenant, session)
        except (UnavailableError, TimeoutError) as error:
            log.warning("jobs_not_looked_at", error=type(error).__qualname__)
            return None

    async def _sweep_vectors(self, tenant: str, session: str, lives: Sequence[str]) -> int | None:
        try:
            return sum([await self._index.forget(tenant, session, life) for life in lives[-_MOST_LIVES:]])
        except UnavailableError as error:
            log.warning("vectors_not_forgotten", error=error.detail)
            return None


@contextmanager
def opened_jobs(queue_url: str | None) -> Iterator[NamingJobs | None]:
    """The queue of that address, asked when it is needed first; None without one."""
    if queue_url is None:
        yield None
        return
    with closing(JobQueue(queue_connection(queue_url, reply_timeout=timedelta(seconds=1), retries=0))) as jobs:
        yield jobs
