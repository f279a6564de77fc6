"""An RQ worker in one process that recovers in seconds and stops by an event.

What differs from RQ's SimpleWorker, and why:

- A job's execution lives 6 s and is extended by a thread. RQ extends it only in its forking worker, so a job of a
  killed SimpleWorker would come back after its whole timeout.
- Maintenance runs every second, not every ten minutes: it is what brings a killed worker's job back, and one that a
  dying worker was given, see ``TakenJobs``.
- Waiting for a job lasts at most a second, so that a stop is seen without an exception in the middle of a read,
  which could lose the job that the read was about to give.
- No pub/sub thread and no signal handlers: the process stops by its own event, and a job cannot be killed alone.
- A job runs by way of ``Isolation``, which finds the session that kills or fails it.
"""

import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any

import structlog
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError
from rq import Queue, SimpleWorker
from rq.exceptions import DequeueTimeout, InvalidJobOperation, StopRequested
from rq.executions import Execution, ExecutionRegistry
from rq.job import Job
from rq.registry import StartedJobRegistry
from rq.serializers import JSONSerializer
from rq.suspension import is_suspended
from rq.worker import WorkerStatus
from rq.worker_registration import REDIS_WORKER_KEYS

from prefold.errors import RefusedError, TransientError
from prefold.jobs import HintQueue, queue_connection
from prefold.jobs.names import WorkKind
from prefold.jobs.starts import Starts
from prefold.telemetry.metrics import JOBS
from prefold.telemetry.tracing import TRACEPARENT, is_on, span
from prefold.worker.going_on import STOP_LOOK_SECONDS, GoingOn, Room
from prefold.worker.isolation import Isolation
from prefold.worker.runtime import Runtime

log = structlog.get_logger(__name__)

WAIT_FOR_JOB_SECONDS = 1
EXECUTION_SECONDS = 6
"""A job whose worker has been silent this long is given to another."""
HEARTBEAT_SECONDS = 1.5
SILENT_SHARE = 0.6
"""Of ``EXECUTION_SECONDS``: after such a silence a start counts as dead. Before RQ gives the job away, after two beats."""
ROOM_LOOK_SECONDS = 0.05
"""How soon a worker that was full sees that it is not any more."""
WORKER_SECONDS = 17
"""How long (and a minute more) RQ lists a worker that says nothing."""
REPLY_SECONDS = 4
"""Longest wait for a reply of Redis; above ``WAIT_FOR_JOB_SECONDS``."""
LONGEST_PAUSE = timedelta(seconds=5)
"""Between two jobs while what they need is away."""


class LivingExecutions(ExecutionRegistry):
    """The runs of a job. RQ's own raises over one whose worker died, and with it the end of the run that followed."""

    def get_executions(self, start: int = 0, end: int = -1) -> list[Execution]:
        """Those that RQ still knows."""
        found = []
        for execution_id in self.get_execution_ids(start, end):
            with suppress(ValueError):
                found.append(Execution.fetch(execution_id, self.job_id, self.connection))
        return found


class HintJob(Job):
    """A job that its worker sends by another way than a plain call."""

    way: Callable[[str, Any, Callable[..., object]], object] | None = None
    """Called with the job's name, its arguments and its function."""

    @property
    def execution_registry(self) -> ExecutionRegistry:
        """See ``LivingExecutions``."""
        return LivingExecutions(self.id, self.connection)

    def _execute(self) -> Any:
        if self.way is None or self.func_name is None or self.kwargs:
            return super()._execute()
        return self.way(self.func_name, self.args, self.func)


class HintWorker(SimpleWorker):
    """Serves exactly one queue: with more, RQ pops by BLPOP, and a job popped by a dying worker is lost."""

    queue_class = HintQueue
    job_class = HintJob
    log_result_lifespan = False

    def __init__(
        self,
        queue: HintQueue,
        stop: threading.Event,
        shared: Callable[[], Runtime] | None = None,
        going_on: GoingOn | None = None,
    ) -> None:
        """``shared``: the runtime of the jobs; without it no session is ever set aside.

        ``going_on``: of a process whose jobs leave work behind that goes on. While it is full no job is taken.
        """
        super().__init__(
            [queue],
            connection=queue.connection,
            serializer=JSONSerializer,
            worker_ttl=WORKER_SECONDS,
            maintenance_interval=1,
            default_result_ttl=0,
            log_job_description=False,
        )
        self._stop = stop
        self._going_on = going_on
        self._isolation = Isolation(shared, self._starts, going_on) if shared else None
        self._failures_in_a_row = 0

    @property
    def dequeue_timeout(self) -> int:
        """Seconds that one blocking read waits for a job."""
        return WAIT_FOR_JOB_SECONDS

    @property
    def connection_timeout(self) -> int:
        """RQ raises the client's read timeout to this."""
        return REPLY_SECONDS

    def get_heartbeat_ttl(self, job: Job, working_time: float = 0.0) -> int:  # noqa: ARG002 (RQ's signature)
        """Seconds until a silent execution counts as abandoned."""
        return EXECUTION_SECONDS

    def check_for_suspension(self, burst: bool) -> None:
        """Done before each wait for a job, where an outage is outlived."""

    def run_maintenance_tasks(self) -> None:
        """Done before each wait for a job, where an outage is outlived."""

    def dequeue_job_and_maintain_ttl(
        self,
        timeout: int | None,
        max_idle_time: int | None = None,  # noqa: ARG002 (RQ's signature)
    ) -> tuple[Job, Queue] | None:
        """The next job; None in burst mode when there is none. StopRequested once the stop event is set."""
        failures = 0
        while not self._stop.is_set():
            try:
                if failures:
                    self._register_again()
                    failures = 0
                return self._next_job(timeout)
            except DequeueTimeout:
                continue
            except (RedisConnectionError, RedisTimeoutError) as error:
                if not failures:
                    log.warning("queue_unavailable", error=str(error))
                failures += 1
                self._stop.wait(min(0.1 * 2**failures, LONGEST_PAUSE.total_seconds()))
        raise StopRequested

    def _next_job(self, timeout: int | None) -> tuple[Job, Queue] | None:
        self.set_state(WorkerStatus.IDLE)
        self.heartbeat()
        while is_suspended(self.connection, self) and not self._stop.wait(1):
            self.heartbeat()
        if self.should_run_maintenance_tasks:
            self.clean_registries()  # type: ignore[no-untyped-call]
            self._stay_listed()
        if not self._has_room():
            raise DequeueTimeout(WAIT_FOR_JOB_SECONDS, self.queue_names())
        if self._stop.is_set():
            raise StopRequested
        return self.queue_class.dequeue_any(
            self.queues,
            timeout,
            connection=self.connection,
            job_class=self.job_class,
            serializer=self.serializer,
            death_penalty_class=self.death_penalty_class,
        )

    def _has_room(self) -> bool:
        """Waits for it as long as for a job."""
        until = time.monotonic() + WAIT_FOR_JOB_SECONDS
        while self._going_on is not None and not self._going_on.has_room:
            if self._stop.wait(ROOM_LOOK_SECONDS) or time.monotonic() > until:
                return False
        return True

    def _register_again(self) -> None:
        self._stay_listed()
        log.info("queue_available")

    def _stay_listed(self) -> None:
        """The server may have lost everything."""
        if not self.connection.sismember(REDIS_WORKER_KEYS, self.key):
            self.connection.delete(self.key)  # a heartbeat may have made a part of it
            self.register_birth()  # type: ignore[no-untyped-call]

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Runs the job in this thread while another says that we live."""
        execution = self.prepare_execution(job)
        if self._isolation is not None and isinstance(job, HintJob):
            job.way = partial(self._isolation.run, run=execution.composite_key)
        trace = job.meta.get(TRACEPARENT) if is_on() else None
        with (
            structlog.contextvars.bound_contextvars(job=job.id),
            span(f"job {queue.name}", {"job": job.id}, kind="consumer", parent=trace),
            self._beating(job, execution),
        ):
            has_ended_well = self.perform_job(job, queue, execution)
            JOBS.labels(queue.name, "done" if has_ended_well else "failed").inc()
            if has_ended_well:
                self._failures_in_a_row = 0
        self.set_state(WorkerStatus.IDLE)

    @contextmanager
    def _beating(self, job: Job, execution: Execution) -> Iterator[None]:
        over = threading.Event()

        def beat() -> None:
            beat_at, let_go = time.monotonic(), False
            while not over.wait(min(STOP_LOOK_SECONDS, HEARTBEAT_SECONDS)):
                try:
                    if time.monotonic() - beat_at >= HEARTBEAT_SECONDS:
                        beat_at = time.monotonic()
                        self._beat(job, execution)
                    if self._isolation is not None and self._stop.is_set() and not let_go:
                        self._isolation.let_go()
                        let_go = True
                except (RedisError, TransientError) as error:
                    log.warning("heartbeat_failed", error=str(error))

        thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _beat(self, job: Job, execution: Execution) -> None:
        # Not RQ's maintain_heartbeats: it also writes the job's hash, which may be gone by then.
        with self.connection.pipeline() as pipeline:
            self.heartbeat(pipeline=pipeline)
            execution.heartbeat(job.started_job_registry, EXECUTION_SECONDS, pipeline=pipeline)
            pipeline.execute()

    def handle_job_success(
        self, job: Job, queue: Queue, started_job_registry: StartedJobRegistry, execution: Execution
    ) -> None:
        """Ends the job, unless another worker did so while this one was silent."""
        if self._is_ended_elsewhere(job, execution):
            return
        try:
            super().handle_job_success(job, queue, started_job_registry, execution)
        except InvalidJobOperation:
            if not self._is_ended_elsewhere(job, execution):
                raise

    def handle_job_failure(
        self,
        job: Job,
        queue: Queue,
        started_job_registry: StartedJobRegistry | None = None,
        exc_string: str = "",
        execution: Execution | None = None,
    ) -> None:
        """Puts the job back or lists it as failed, unless it is gone: then ``due`` brings its work."""
        if self._is_ended_elsewhere(job, execution):
            return
        super().handle_job_failure(job, queue, started_job_registry, exc_string, execution)

    def _is_ended_elsewhere(self, job: Job, execution: Execution | None) -> bool:
        if self.connection.hexists(job.key, "data"):
            return False
        with self.connection.pipeline() as pipeline:
            pipeline.delete(job.key)  # the note of a heartbeat
            self.cleanup_execution(job, pipeline=pipeline, execution=execution)
            pipeline.execute()
        log.info("job_ended_elsewhere", job=job.id)
        return True

    def _starts(self, kind: WorkKind) -> Starts:
        execution = timedelta(seconds=EXECUTION_SECONDS)
        connection = self._going_on.connection if self._going_on else self.connection
        return Starts(connection, kind, silent=SILENT_SHARE * execution, execution=execution)

    def _read_again(self, job: Job) -> None:
        """An erasure may have taken a session out of the job: a retry writes down what we have read."""
        try:
            data = self.connection.hget(job.key, "data")
        except RedisError:
            return
        if isinstance(data, bytes):
            job.data = zlib.decompress(data)

    def handle_exception(self, job: Job, *exc_info: Any) -> None:
        """Says what becomes of a failed run; RQ asks ``job.retries_left`` afterwards.

        Transient: a pause first, growing from failure to failure, so that no job burns its attempts at once.
        Refused: no further attempt.
        """
        self._read_again(job)
        error: BaseException = exc_info[1]
        if isinstance(error, RefusedError):
            job.retries_left = 0
            log.error("job_refused", job=job.id, error=error.detail)
            return
        attempts_left = job.retries_left or 0
        if not isinstance(error, TransientError):
            log.error("job_failed", job=job.id, attempts_left=attempts_left, exc_info=exc_info)
            return
        pause = error.retry_after or timedelta(seconds=0.25 * 2 ** min(self._failures_in_a_row, 10))
        self._failures_in_a_row += 1
        log.warning("job_failed", job=job.id, attempts_left=attempts_left, error=str(error))
        self._stop.wait(min(pause, LONGEST_PAUSE).total_seconds())

    def procline(self, message: str) -> None:
        """Leaves the command line alone: it names the role."""

    def subscribe(self) -> None:
        """See the module."""

    def unsubscribe(self) -> None:
        """See the module."""

    def _install_signal_handlers(self) -> None:
        """See the module."""


@contextmanager
def work_that_goes_on(url: str, stop: threading.Event, room: Room) -> Iterator[GoingOn]:
    """What a process works on beyond its jobs; it says as often as a job's execution that it lives."""
    beat, silence = timedelta(seconds=HEARTBEAT_SECONDS), timedelta(seconds=EXECUTION_SECONDS)
    with (
        closing(queue_connection(url)) as connection,
        GoingOn(connection, stop, beat=beat, silence=silence, room=room) as going_on,
    ):
        yield going_on
