"""``prefold worker embed``, ``compact`` and ``memory``: the process."""

import argparse
import logging
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from datetime import timedelta
from functools import partial
from typing import cast

import structlog
from redis.exceptions import RedisError

from prefold.cli.main import USAGE_ERROR
from prefold.config.flags import add_flags, settings_from
from prefold.config.lifecycle import stop_flag
from prefold.config.logs import configure_logging
from prefold.jobs import COMPACT_QUEUE, EMBED_QUEUE, MEMORY_QUEUE, QUEUES, QueueName, hint_queue, queue_connection
from prefold.pricing import check_files
from prefold.telemetry.process import observed
from prefold.worker.going_on import GoingOn, Room
from prefold.worker.hint_worker import REPLY_SECONDS, HintWorker, work_that_goes_on
from prefold.worker.readiness import kept_layout, probed
from prefold.worker.runtime import Runtime, close_runtime, prepare, runtime
from prefold.worker.settings import CompactWorkerSettings, WorkerSettings

log = structlog.get_logger(__name__)

_AFTER_HANDING_BACK = timedelta(seconds=4)
"""From the end of a job's time to the hard exit."""
_FIRST_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 3.0


def main(argv: Sequence[str]) -> int:
    """Serves one queue until SIGTERM or SIGINT; 0 when it stopped in order.

    Raises ``ConfigurationError`` for settings that cannot work and for a store of another layout; 2 where that is found
    later.
    """
    parser = argparse.ArgumentParser(prog="prefold worker", description="Runs the jobs of one queue.")
    parser.add_argument("queue", choices=QUEUES, help="the queue to serve")
    add_flags(parser, WorkerSettings)
    parsed = parser.parse_args(argv)
    queue = cast("QueueName", parsed.queue)
    kind = WorkerSettings if queue == EMBED_QUEUE else CompactWorkerSettings
    settings = settings_from(kind, parsed, partial(check_settings, queue))
    configure_logging(f"worker-{queue}", settings)
    for name in ("rq.worker", "rq.job", "rq.registry"):
        logging.getLogger(name).setLevel(logging.WARNING)  # one event a second says that it did its maintenance
    stopping = stop_flag(timedelta(seconds=settings.worker_stop_seconds) + _AFTER_HANDING_BACK)
    with stopping as stop, observed(f"worker-{queue}", settings):
        prepare(settings, stop)
        has_ended, loaded = False, threading.Event()
        try:
            runtime().enter(probed(queue, settings, loaded))
            layout = runtime().enter(kept_layout(settings, stop))
            load(queue, runtime())
            loaded.set()
            with _going_on(queue, settings, stop) as going_on:
                serve(queue, settings, stop, going_on)
                runtime().settle()
        finally:
            has_ended = close_runtime()
    if not has_ended:
        # The job is handed back, but its thread is blocked and Python would wait for it.
        logging.shutdown()
        sys.stderr.flush()
        os._exit(0)
    return USAGE_ERROR if layout.is_other else 0


def check_settings(queue: QueueName, settings: WorkerSettings) -> None:
    """``ConfigurationError``: a file that the jobs of this queue need cannot be read, or the embedder not be loaded."""
    if queue != COMPACT_QUEUE:
        from prefold.embedding import check_embedder

        check_embedder(settings)
    if queue != EMBED_QUEUE:
        check_files(settings)


def _going_on(
    queue: QueueName, settings: WorkerSettings, stop: threading.Event
) -> AbstractContextManager[GoingOn | None]:
    """The builds of summaries outlive their jobs, and so does what is remembered."""
    if queue == EMBED_QUEUE:
        return nullcontext()
    at_once = settings.builds_at_once if queue == COMPACT_QUEUE else settings.remember_at_once
    return work_that_goes_on(settings.queue_url, stop, Room(at_once, settings.builds_memory_mb))


def serve(queue: QueueName, settings: WorkerSettings, stop: threading.Event, going_on: GoingOn | None = None) -> None:
    """Runs jobs until ``stop`` is set, whatever becomes of the queue's Redis in between."""
    pause = _FIRST_PAUSE_SECONDS
    while not stop.is_set():
        try:
            reply_timeout = timedelta(seconds=REPLY_SECONDS)
            with closing(queue_connection(settings.queue_url, reply_timeout=reply_timeout)) as connection:
                worker = HintWorker(hint_queue(queue, connection), stop, runtime, going_on)
                log.info("worker_started", queue=queue, worker=worker.name)
                pause = _FIRST_PAUSE_SECONDS
                worker.work()
        except RedisError as error:
            if pause == _FIRST_PAUSE_SECONDS:
                log.warning("queue_unavailable", error=str(error))
        stop.wait(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
    log.info("worker_stopped", queue=queue)


def load(queue: QueueName, shared: Runtime) -> None:
    """Loads what the queue's jobs need, so that a wrong setting ends the process now and no job waits for it."""
    if queue == EMBED_QUEUE:
        import prefold.worker.embed_job
        import prefold.worker.expire_job  # noqa: F401 (RQ imports both by name)

        os.nice(shared.settings.embed_nice)
        log.info("embedder_loaded", embedder=shared.embedder.id)
    elif queue == COMPACT_QUEUE:
        from prefold.compaction.build_job import builder_of, pool_of

        log.info("summarizer_loaded", summarizer=builder_of(shared).engine_name)
        pool_of(shared)
    elif queue == MEMORY_QUEUE:
        os.nice(max(0, shared.settings.embed_nice - os.nice(0)))
        from prefold.memory.remember_job import memory_of

        log.info("memory_loaded", summarizer=memory_of(shared).engine_name)
