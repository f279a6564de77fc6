"""Puts jobs on the queue's Redis, and makes the RQ queue that the workers serve."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from redis import Redis
from redis.backoff import ExponentialBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry as ConnectionRetry
from rq import Queue, Retry
from rq.exceptions import DuplicateJobError
from rq.serializers import JSONSerializer

from prefold.jobs.failures import queue_failures
from prefold.jobs.names import (
    COMPACT_JOB,
    COMPACT_QUEUE,
    EMBED_JOB,
    EMBED_QUEUE,
    EXPIRE_JOB,
    MEMORY_QUEUE,
    QUEUES,
    REMEMBER_JOB,
    QueueName,
    WorkKind,
)
from prefold.jobs.naming import jobs_naming, starts_naming, take_out
from prefold.jobs.payloads import Json, encode_sessions, encode_spans, job_id
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.types import SessionRef

_MAINTENANCE_LOCK_SECONDS = 10


class HintQueue(Queue):
    """An RQ queue whose maintenance lock outlives its holder by seconds.

    RQ's own lock stays for 15 minutes when its holder is killed, and nobody recovers jobs as long.
    """

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

    def embed(self, spans: Sequence[EmbedSpan], *, occasion: str) -> bool:
        """Asks for the embedding of all spans in one job. False: the same job waits or runs already."""
        return self._put(EMBED_QUEUE, EMBED_JOB, encode_spans(spans), occasion)

    def compact(self, sessions: Sequence[SessionRef], *, occasion: str) -> bool:
        """Asks for a summary of each session in one job. False: the same job waits or runs already."""
        return self._put(COMPACT_QUEUE, COMPACT_JOB, encode_sessions(sessions), occasion)

    def remember(self, sessions: Sequence[SessionRef], *, occasion: str) -> bool:
        """Asks for what each session is remembered by. False: the same job waits or runs already."""
        return self._put(MEMORY_QUEUE, REMEMBER_JOB, encode_sessions(sessions), occasion)

    def expire(self, sessions: Sequence[SessionRef], *, occasion: str) -> bool:
        """Asks for the end of sessions whose time has come. False: the same job waits or runs already."""
        return self._put(EMBED_QUEUE, EXPIRE_JOB, encode_sessions(sessions), occasion)

    def again(self, kind: WorkKind, sessions: Sequence[SessionRef], *, occasion: str) -> bool:
        """Asks for work whose jobs name whole sessions."""
        asks = {"compact": self.compact, "remember": self.remember, "expire": self.expire}
        return asks[kind](sessions, occasion=occasion)

    def depth(self, queue: QueueName) -> int:
        """Jobs that wait in ``queue``, not counting those that run."""
        with queue_failures():
            return int(self._connection.llen(self._queues[queue].key))

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

    def _put(self, queue: QueueName, job: str, payload: Json, occasion: str) -> bool:
        options = self._options
        with queue_failures():
            try:
                self._queues[queue].enqueue_call(
                    job,
                    args=(payload,),
                    job_id=job_id(queue, payload, occasion),
                    unique=True,
                    description=job,
                    timeout=int(options.job_timeout.total_seconds()),
                    ttl=int(options.queued_for.total_seconds()),
                    result_ttl=0,
                    failure_ttl=int(options.failed_for.total_seconds()),
                    # At once: an interval would need RQ's scheduler process. The jobs wait by themselves.
                    retry=Retry(max=options.attempts - 1) if options.attempts > 1 else None,
                )
            except DuplicateJobError:
                return False
        return True


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
