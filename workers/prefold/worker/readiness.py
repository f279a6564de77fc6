"""What a worker tells of itself on its probe, and that it never works on a store of another layout."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from datetime import timedelta
from functools import partial
from typing import Final

import structlog
from redis.asyncio import Redis

from prefold.errors import ConfigurationError, TransientError, UnavailableError
from prefold.jobs import COMPACT_QUEUE, EMBED_QUEUE, QueueName, queue_connection
from prefold.jobs.readiness import Check, queue_answers, sessions_answer, states_of, vectors_answer
from prefold.pricing import prices_and_budgets
from prefold.recall.server import VectorServer, connect_server
from prefold.storage.client import connect
from prefold.storage.layout import meet_layout
from prefold.telemetry.probe import serving_probe
from prefold.worker.settings import WorkerSettings

__all__ = ["KeptLayout", "kept_layout", "probed"]

log = structlog.get_logger(__name__)

_ANSWER: Final = timedelta(seconds=1)
_AGAIN_SECONDS: Final = 1.0


class KeptLayout:
    """Whether the store turned out to have another layout after the start."""

    is_other = False


@asynccontextmanager
async def kept_layout(settings: WorkerSettings, stop: threading.Event) -> AsyncIterator[KeptLayout]:
    """``ConfigurationError`` at once when the store has another layout than ours.

    While it does not answer, it is asked again every second; when it has another layout then, that is logged and
    ``stop`` set.
    """
    kept = KeptLayout()
    async with connect(settings.redis_url, max_connections=2, timeout=_ANSWER, retries=0) as client:
        looking: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(2 * _ANSWER.total_seconds()):
                await meet_layout(client)
        except (TransientError, TimeoutError):
            looking = asyncio.create_task(_meet_later(client, kept, stop), name="layout")
        try:
            yield kept
        finally:
            if looking is not None:
                looking.cancel()
                with suppress(asyncio.CancelledError):
                    await looking


async def _meet_later(client: Redis, kept: KeptLayout, stop: threading.Event) -> None:
    while True:
        await asyncio.sleep(_AGAIN_SECONDS)
        try:
            await meet_layout(client)
        except TransientError:
            continue
        except ConfigurationError as error:
            log.critical("layout_differs", error=error.detail)
            kept.is_other = True
            stop.set()
        return


@asynccontextmanager
async def probed(queue: QueueName, settings: WorkerSettings, loaded: threading.Event) -> AsyncIterator[None]:
    """Serves ``/livez``, ``/readyz`` and ``/metrics`` where a port is set. ``loaded``: the models of the jobs are there."""
    if settings.probe_port == 0:
        yield
        return
    async with AsyncExitStack() as stack:
        checks = await _checks(stack, queue, settings)

        async def ready() -> Mapping[str, str]:
            own = {"jobs": "ok" if loaded.is_set() else "still loading what they need"}
            return own | await states_of(checks)

        await stack.enter_async_context(serving_probe(settings, ready))
        yield


async def _checks(stack: AsyncExitStack, queue: QueueName, settings: WorkerSettings) -> dict[str, Check]:
    connecting = connect(settings.redis_url, max_connections=2, timeout=_ANSWER, retries=0)
    sessions = await stack.enter_async_context(connecting)
    jobs = stack.enter_context(closing(queue_connection(settings.queue_url, reply_timeout=_ANSWER)))
    checks: dict[str, Check] = {
        "sessions": partial(sessions_answer, sessions),
        "queue": partial(queue_answers, jobs),
    }
    if queue != COMPACT_QUEUE:
        checks["vectors"] = partial(vectors_answer, await _vectors(stack, settings))
    if queue != EMBED_QUEUE and settings.summarizer == "anthropic":
        checks["prices"] = partial(_files_are_well, settings)
    return checks


async def _vectors(stack: AsyncExitStack, settings: WorkerSettings) -> VectorServer:
    key = settings.qdrant_api_key
    connecting = connect_server(
        settings.qdrant_url,
        api_key=key.get_secret_value() if key else None,
        connect_timeout=_ANSWER,
        request_timeout=_ANSWER,
        max_connections=1,
    )
    return await stack.enter_async_context(connecting)


async def _files_are_well(settings: WorkerSettings) -> None:
    """The files of prices and budgets can be read, as the next start of this worker would."""
    try:
        await asyncio.to_thread(prices_and_budgets, settings)
    except ConfigurationError as error:
        raise UnavailableError(error.detail) from error
