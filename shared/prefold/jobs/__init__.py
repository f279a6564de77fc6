"""The RQ jobs between the dispatcher and the workers: their names, payloads, ids and queue.

A job is a hint. It carries ids only, it may be lost, doubled or late, and every job checks the sessions' own
state before it does anything. What is really undone stands in the ``due`` sets.
"""

from prefold.jobs.asks import QUEUE_OF, Ask
from prefold.jobs.dead_letters import DeadLetter, DeadLetters
from prefold.jobs.names import (
    COMPACT_JOB,
    COMPACT_QUEUE,
    EMBED_JOB,
    EMBED_QUEUE,
    MEMORY_QUEUE,
    QUEUES,
    REMEMBER_JOB,
    QueueName,
)
from prefold.jobs.payloads import (
    TO_HEAD,
    decode_sessions,
    decode_spans,
    encode_sessions,
    encode_spans,
    job_id,
)
from prefold.jobs.queue import HintQueue, JobQueue, JobQueueOptions, hint_queue, queue_connection

__all__ = [
    "COMPACT_JOB",
    "COMPACT_QUEUE",
    "EMBED_JOB",
    "EMBED_QUEUE",
    "MEMORY_QUEUE",
    "QUEUES",
    "QUEUE_OF",
    "REMEMBER_JOB",
    "TO_HEAD",
    "Ask",
    "DeadLetter",
    "DeadLetters",
    "HintQueue",
    "JobQueue",
    "JobQueueOptions",
    "QueueName",
    "decode_sessions",
    "decode_spans",
    "encode_sessions",
    "encode_spans",
    "hint_queue",
    "job_id",
    "queue_connection",
]
