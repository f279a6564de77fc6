"""Puts jobs on the queue's Redis, and makes the RQ queue that the workers serve."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from redis import Redis
from redis.backoff import ExponentialBackoff
from redis.client import Pipeline
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError
from redis.retry import Retry as ConnectionRetry
from rq import Queue, Retry, Worker
from rq.job import Job
from rq.scripts import UNIQUE_ENQUEUE_SCRIPT
from rq.serializers import JSONSerializer

from prefold.jobs.asks import Ask
from prefold.jobs.failures import queue_failures
from prefold.jobs.names import QUEUES, QueueName, WorkKind
from prefold.jobs.naming import jobs_naming, starts_naming, take_out
from prefold.jobs.taken import TakenJobs
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.types import SessionRef
from prefold.telemetry.tracing import TRACEPARENT, traceparent

_MAINTENANCE_LOCK_SECONDS = 10
_UNIQUE_SHA = hashlib.sha1(UNIQUE_ENQUEUE_SCRIPT.encode(), usedforsecurity=False).hexdigest()


class HintQueue(Queue):
    """An RQ queue whose maintenance is a matter of seconds.

    RQ's own lock stays for 15 minutes when its holder is killed, and nobody recovers jobs as long.
    """

    @cached_property
    def intermediate_queue(self) -> TakenJobs:
        """See ``TakenJobs``."""
        return TakenJobs(self.key, self.connection)

    def acquire_maintenance_lock(self) -> bool:
        """True for the one worker that may clean the registries now."""
        key = self.registry_cleaning_key
        return bool(self.connection.set(key, 1, nx=True, ex=_MAINTENANCE_LOCK_SECONDS))


@dataclass(frozen=True, slots=True)
class JobQueueOptions:
    """How jobs are put on the queue."""

    job_timeout: timedelta = timedelta(minutes=10)
    """A job that runs longer is ended and tried again."""
    attempts: int = 4
    """Runs of one job, the first included, whether it raised or its worker died."""
    queued_for: timedelta = timedelta(minutes=15)
    """A job that nobody started by then is dropped: ``due`` brings the work back."""
    failed_for: timedelta = timedelta(minutes=5)
    """How long ``rq info`` still shows a job that failed for good."""


class JobQueue:
    """Enqueues the jobs. Calls block for a few round trips; from asyncio call them in a thread.

    Every call raises ``UnavailableError`` when the queue's Redis does not answer.
    """

    def __init__(self, connection: Redis, options: JobQueueOptions | None = None) -> None:
        self._connection = connection
        self._options = options or JobQueueOptions()
        self._queues: dict[QueueName, Queue] = {name: hint_queue(name, connection) for name in QUEUES}

    def put(self, asks: Sequence[Ask]) -> list[bool]:
        """Puts the jobs, all in one round trip and in this order; False: the same job waits or runs already."""
        if not asks:
            return []
        with queue_failures():
            pipe = self._connection.pipeline(transaction=False)
            pipe.sadd(Queue.redis_queues_keys, *{self._queues[ask.queue].key for ask in asks})
            for ask in asks:
                _put_unique(pipe, self._made(ask), self._queues[ask.queue].key, at_front=ask.at_front)
            replies = pipe.execute(raise_on_error=False)[1:]
            refused = next((one for one in replies if isinstance(one, Exception)), None)
            if isinstance(refused, NoScriptError):  # a server that restarted: none of them was put
                self._connection.script_load(UNIQUE_ENQUEUE_SCRIPT)
                return self.put(asks)
            if refused is not None:
                raise refused
        return [reply == 1 for reply in replies]

    def embed(self, spans: Sequence[EmbedSpan], *, occasion: str) -> bool:
        """Asks for the embedding of all spans in one job. False: the same job waits or runs already."""
        return self.put([Ask.embed(spans, occasion)])[0]

    def compact(self, sessions: Sequence[SessionRef], *, occasion: str) -> bool:
        """Asks for a summary of each session in one job. False: the same job waits or runs already."""
        return self.again("compact", sessions, occasion=occasion)

    def remember(self, sessions: Sequence[SessionRef], *, occasion: str) -> bool:
        """Asks for what each session is remembered by. False: the same job waits or runs already."""
        return self.again("remember", sessions, occasion=occasion)

    def expire(self, sessions: Sequence[SessionRef], *, occasion: str) -> bool:
        """Asks for the end of sessions whose time has come. False: the same job waits or runs already."""
        return self.again("expire", sessions, occasion=occasion)

    def again(self, kind: WorkKind, sessions: Sequence[SessionRef], *, occasion: str) -> bool:
        """Asks for work whose jobs name whole sessions."""
        return self.put([Ask.sessions(kind, sessions, occasion)])[0]

    def depth(self, queue: QueueName) -> int:
        """Jobs that wait in ``queue``, not counting those that run."""
        with queue_failures():
            return int(self._connection.llen(self._queues[queue].key))

    def workers(self, queue: QueueName) -> int:
        """Workers that serve ``queue``; one that was killed counts for some seconds more."""
        with queue_failures():
            return Worker.count(queue=self._queues[queue])

    def jobs_of(self, tenant: str, session: str) -> int:
        """Jobs that name the session in any of its lives: waiting, running, failed, or left over by a crash."""
        with queue_failures():
            return sum(1 for _ in jobs_naming(self._connection, tenant, session))

    def forget_jobs(self, tenant: str, session: str) -> int:
        """Takes the session out of every job, and forgets its starts; the number of jobs. The other rows stay.

        What a run left of a failure goes with it. A job in hand goes on with what its worker has read: the session's
        own state refuses what it does.
        """
        with queue_failures():
            found = list(jobs_naming(self._connection, tenant, session))
            taken = sum(take_out(self._connection, job, tenant, session) for job in found)
            starts = starts_naming(self._connection, tenant, session)
            if starts:
                self._connection.unlink(*starts)
        return taken

    def close(self) -> None:
        """Gives the connections back. Closing twice is legal."""
        self._connection.close()

    def _made(self, ask: Ask) -> Job:
        options, queue = self._options, self._queues[ask.queue]
        trace = traceparent()
        job = queue.create_job(
            ask.job,
            args=(ask.rows,),
            job_id=ask.id,
            description=ask.job,
            meta=None if trace is None else {TRACEPARENT: trace},
            timeout=int(options.job_timeout.total_seconds()),
            ttl=int(options.queued_for.total_seconds()),
            result_ttl=0,
            failure_ttl=int(options.failed_for.total_seconds()),
            # At once: an interval would need RQ's scheduler process. The jobs wait by themselves.
            retry=Retry(max=options.attempts - 1) if options.attempts > 1 else None,
        )
        job.origin = queue.name
        job.enqueued_at = datetime.now(UTC)
        return job


def _put_unique(pipe: Pipeline, job: Job, queue_key: str, *, at_front: bool) -> None:
    """RQ's own script for a unique job, which RQ itself does not send in a pipeline."""
    fields = [part for name, value in job.to_dict().items() if value is not None for part in (name, value)]
    ttl = job.ttl if job.ttl is not None else -1
    pipe.evalsha(_UNIQUE_SHA, 2, job.key, queue_key, job.id, "L" if at_front else "R", ttl, *fields)


def hint_queue(name: QueueName, connection: Redis) -> HintQueue:
    """The RQ queue ``name`` with JSON payloads."""
    return HintQueue(name, connection=connection, serializer=JSONSerializer)


def queue_connection(url: str, *, reply_timeout: timedelta = timedelta(seconds=2), retries: int = 1) -> Redis:
    """A client for the queue's Redis that gives up within seconds. Opens nothing yet.

    ``reply_timeout`` must be above the longest blocking command. redis-py's own defaults try a command eleven
    times: with a timeout of 5 s a caller would hang for a minute. Here one goes out again only after a lost
    connection, never when its reply is late.
    """
    return Redis.from_url(
        url,
        socket_timeout=reply_timeout.total_seconds(),
        socket_connect_timeout=reply_timeout.total_seconds(),
        retry=ConnectionRetry(
            ExponentialBackoff(cap=0.2, base=0.02), retries, supported_errors=(RedisConnectionError,)
        ),
    )
