"""The ingest streams' reader with everything that it needs, from settings."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import structlog
from redis.exceptions import RedisError

from prefold.access import Allowances, WatchedFile
from prefold.dispatcher.ingest import Ingest, IngestOptions
from prefold.dispatcher.ingest_batch import Batches
from prefold.dispatcher.outage import Outage
from prefold.dispatcher.settings import DispatcherSettings
from prefold.errors import ConfigurationError, TransientError
from prefold.quotas import Quotas
from prefold.storage import Sessions, connect_sessions
from prefold.storage.ingest import IngestStreams
from prefold.storage.ingest_letters import IngestLetters
from prefold.storage.quotas import QuotaCounts
from prefold.storage.watching import watched_store
from prefold.tokens import load_counter

__all__ = ["ingest_streams", "opened_ingest"]

log = structlog.get_logger(__name__)

_STOP_WITHIN = timedelta(seconds=1)
"""A batch under way may end in that time; what is broken off stays in the stream."""


async def ingest_streams(settings: DispatcherSettings, stop: asyncio.Event) -> None:
    """Reads the streams of the tenants that are set until ``stop`` is set. Never raises.

    A store that does not keep what is asked of it is waited for: meanwhile the entries stay where they are.
    """
    outage = Outage("ingest")
    while settings.ingest_names and not stop.is_set():
        try:
            async with opened_ingest(settings) as ingest:
                outage.over()
                log.info("ingest_started", tenants=len(settings.ingest_names))
                await _run(ingest, stop)
        except (TransientError, ConfigurationError, RedisError, OSError) as error:
            await outage.wait(error, stop)


@asynccontextmanager
async def opened_ingest(settings: DispatcherSettings) -> AsyncIterator[Ingest]:
    """A reader on connections of its own. ``UnavailableError``, ``ConfigurationError``: the store cannot be used now."""
    connecting = connect_sessions(
        settings.redis_url, max_connections=settings.redis_max_connections, lead=settings.build_lead
    )
    async with connecting as sessions, watched_store(sessions, settings) as store:
        quotas = _quotas(sessions, settings)
        streams, letters = IngestStreams(sessions.client), IngestLetters(sessions.client)
        options = IngestOptions(
            settings.ingest_names,
            f"{settings.dispatcher_name}:{secrets.token_hex(6)}",
            turns=settings,
            lease=timedelta(milliseconds=settings.ingest_lease_ms),
        )
        batches = Batches(sessions, store, streams, letters, settings, quotas)
        try:
            yield Ingest(streams, letters, batches, load_counter, options)
        finally:
            if quotas is not None:
                await quotas.close()


def _quotas(sessions: Sessions, settings: DispatcherSettings) -> Quotas | None:
    """``ConfigurationError`` when the key file that is set cannot be read."""
    if settings.api_keys_file is None:
        return None
    file = WatchedFile(settings.api_keys_file)
    file.load()

    def allowances() -> Allowances:
        file.look()
        return file.content.allowances

    return Quotas(QuotaCounts(sessions.client), allowances)


async def _run(ingest: Ingest, stop: asyncio.Event) -> None:
    running = asyncio.create_task(ingest.run(stop))
    await asyncio.wait({running, stopping := asyncio.create_task(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    await asyncio.wait({running}, timeout=_STOP_WITHIN.total_seconds())
    if not running.done():
        running.cancel()
        await asyncio.wait({running})
    if not running.cancelled() and (failure := running.exception()) is not None:
        raise failure
