"""``prefold dispatcher``: the process."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from datetime import timedelta
from functools import partial

import structlog
from redis.asyncio import Redis

from prefold.config.flags import load_settings
from prefold.config.lifecycle import run_async
from prefold.config.logs import configure_logging
from prefold.dispatcher.asking import Asking
from prefold.dispatcher.attempts import Attempts
from prefold.dispatcher.ingesting import ingest_streams
from prefold.dispatcher.intake import Intake, IntakeOptions
from prefold.dispatcher.lag import Lag
from prefold.dispatcher.outage import stopped_within
from prefold.dispatcher.readiness import ready_to_work
from prefold.dispatcher.reconciler import Reconciler, ReconcilerOptions
from prefold.dispatcher.settings import DispatcherSettings
from prefold.dispatcher.sweep import Sweep, SweepOptions
from prefold.jobs import JobQueue, queue_connection
from prefold.jobs.dead_letters import running_version
from prefold.storage.client import connect
from prefold.storage.dropped import count_dropped
from prefold.storage.due import DueSets
from prefold.storage.events import TurnEvents
from prefold.storage.restoring import restore_due, sessions_in_pages
from prefold.telemetry.process import observed

log = structlog.get_logger(__name__)

REPORT_EVERY = timedelta(minutes=1)
_KEYS_A_LOOK = 1_000
"""Keys that one step of a sweep looks at: some hundred microseconds of the server."""
REPLY_TIMEOUT = timedelta(seconds=1.5)
"""The loops try again by themselves, and a stop must not wait for a server that hangs."""


def main(argv: Sequence[str]) -> int:
    """Runs until SIGTERM or SIGINT; 0 when it stopped in order."""
    settings = load_settings(
        DispatcherSettings, argv, prog="prefold dispatcher", description="Turns events into jobs for the workers."
    )
    configure_logging("dispatcher", settings)
    collect_rarely()
    with observed("dispatcher", settings):
        return run_async(lambda stop: serve(settings, stop))


def collect_rarely() -> None:
    """Looks for garbage in cycles less often: there is hardly any, and the looks take a quarter of the time at full load."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


async def serve(settings: DispatcherSettings, stop: asyncio.Event) -> None:
    """Builds the dispatcher and runs it until ``stop`` is set."""
    queue = queue_connection(settings.queue_url, reply_timeout=REPLY_TIMEOUT)
    async with connect(
        settings.redis_url, max_connections=settings.redis_max_connections, timeout=REPLY_TIMEOUT, retries=0
    ) as client:
        with closing(JobQueue(queue)) as jobs:
            attempts = Attempts(round(settings.retry_seconds * 1000), round(settings.max_retry_seconds * 1000))
            asking = Asking(jobs, settings.max_queue_depth, _monotonic_ms)
            intake = Intake(
                TurnEvents(client),
                asking,
                attempts,
                _intake_options(settings),
                _monotonic_ms,
                count_drops=partial(count_dropped, client),
            )
            reconciler = Reconciler(
                DueSets(client),
                asking,
                attempts,
                _reconciler_options(settings),
                now_ms=_monotonic_ms,
                wall_ms=partial(_redis_ms, client),
            )
            sweep = Sweep(SessionsOwing(client), _sweep_options(settings))
            log.info("dispatcher_started", consumer=settings.dispatcher_name)
            async with ready_to_work(settings, client, queue, stop), asyncio.TaskGroup() as tasks:
                tasks.create_task(intake.run(stop))
                tasks.create_task(reconciler.run(stop))
                tasks.create_task(sweep.run(stop))
                tasks.create_task(ingest_streams(settings, stop))
                lag = Lag(client, jobs, timedelta(seconds=settings.lag_seconds), settings.ingest_names)
                tasks.create_task(lag.run(stop))
                tasks.create_task(_report(intake, reconciler, sweep, stop))
    log.info("dispatcher_stopped")


class SessionsOwing:
    """The sessions, as the sweep needs them."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    def pages(self) -> AsyncIterator[list[tuple[str, str]]]:
        return sessions_in_pages(self._client, _KEYS_A_LOOK)

    async def restore(self, tenant: str, session: str) -> int:
        return await restore_due(self._client, tenant, session, version=running_version())


async def _report(intake: Intake, reconciler: Reconciler, sweep: Sweep, stop: asyncio.Event) -> None:
    stopping = False
    while not stopping:
        stopping = await stopped_within(stop, REPORT_EVERY)
        log.info(
            "dispatcher_totals",
            events=intake.events_seen,
            events_dropped=intake.events_dropped,
            jobs_from_events=intake.jobs_enqueued,
            jobs_from_due=reconciler.jobs_enqueued,
            due_restored=sweep.due_restored,
        )


def _intake_options(settings: DispatcherSettings) -> IntakeOptions:
    return IntakeOptions(
        consumer=settings.dispatcher_name,
        batch_turns=settings.embed_batch_turns,
        batch_wait_ms=settings.embed_batch_wait_ms,
        build_window_ms=settings.build_window_ms,
        max_build_window_ms=4 * settings.build_window_ms,
        claim_idle_ms=settings.claim_idle_ms,
    )


def _sweep_options(settings: DispatcherSettings) -> SweepOptions:
    return SweepOptions(
        every=timedelta(seconds=settings.sweep_seconds), sessions_per_second=settings.sweep_sessions_per_second
    )


def _reconciler_options(settings: DispatcherSettings) -> ReconcilerOptions:
    return ReconcilerOptions(every=timedelta(seconds=settings.reconcile_seconds))


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


async def _redis_ms(client: Redis) -> int:
    """The clock that wrote the due entries."""
    seconds, micros = await client.time()
    return int(seconds) * 1000 + int(micros) // 1000
