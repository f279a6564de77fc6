"""Jobs that a worker has taken from the queue and not begun. Those that it never will go back to the queue.

A worker that dies while it waits still has a wish at the server, which gives it the next job: until its connection is
found to be gone, or it is scheduled to die. RQ brings such a job back after a minute, at the price of an attempt.
"""

import time

from redis import Redis
from rq import Queue
from rq.intermediate_queue import IntermediateQueue
from rq.worker import BaseWorker

TAKEN_SECONDS = 6
"""A job is taken so long, as one worker sees it, before it counts as lost: as long as a silent job is its worker's."""

# KEYS: the taken ones, the queue, the job. ARGV: its id. Whoever else puts it back, begins it or ends it comes before or
# after. Its status says that nobody has begun it; it waits where another way has brought it back.
_PUT_BACK = """
if redis.call('LREM', KEYS[1], 1, ARGV[1]) == 0 or redis.call('HGET', KEYS[3], 'status') ~= 'queued' then return 0 end
if redis.call('LPOS', KEYS[2], ARGV[1]) then return 0 end
return redis.call('LPUSH', KEYS[2], ARGV[1])
"""


class TakenJobs(IntermediateQueue):
    """RQ's list of them for one queue, as one worker looks at it."""

    def __init__(self, queue_key: str, connection: Redis) -> None:
        super().__init__(queue_key, connection)
        self._seen: dict[str, float] = {}

    def cleanup(self, worker: BaseWorker, queue: Queue) -> None:  # noqa: ARG002 (RQ's signature)
        """Puts back what has been there at each look for ``TAKEN_SECONDS``, in front and with all its attempts."""
        now = time.monotonic()
        self._seen = {job: self._seen.get(job, now) for job in self.get_job_ids()}
        for job, since in self._seen.items():
            if now - since >= TAKEN_SECONDS:
                self._put_back(queue, job)

    def _put_back(self, queue: Queue, job: str) -> None:
        keys = (self.key, self.queue_key, queue.job_class.key_for(job))
        self.connection.eval(_PUT_BACK, len(keys), *keys, job)
