"""Names that the dispatcher writes and the workers resolve. A worker process serves exactly one queue."""

from typing import Final, Literal

QueueName = Literal["embed", "compact", "memory"]
WorkKind = Literal["embed", "compact", "remember", "expire"]
"""What is done for a session: the kinds of its due entries."""
WORK_KINDS: Final[tuple[WorkKind, ...]] = ("embed", "compact", "remember", "expire")

EMBED_QUEUE: Final = "embed"
COMPACT_QUEUE: Final = "compact"
MEMORY_QUEUE: Final = "memory"
QUEUES: Final[tuple[QueueName, ...]] = (EMBED_QUEUE, COMPACT_QUEUE, MEMORY_QUEUE)

EMBED_JOB: Final = "prefold.worker.embed_job.embed_turns"
"""``(spans: list[list])``, see ``encode_spans``."""
EXPIRE_JOB: Final = "prefold.worker.expire_job.expire_sessions"
"""``(sessions: list[list])``, on the embed queue, whose workers reach the vectors."""
COMPACT_JOB: Final = "prefold.compaction.build_job.build_summaries"
"""``(sessions: list[list])``, see ``encode_sessions``."""
REMEMBER_JOB: Final = "prefold.memory.remember_job.remember_sessions"
"""``(sessions: list[list])``, see ``encode_sessions``."""

JOB_KINDS: Final[dict[str, WorkKind]] = {
    EMBED_JOB: "embed",
    EXPIRE_JOB: "expire",
    COMPACT_JOB: "compact",
    REMEMBER_JOB: "remember",
}
"""What a job of that name does. The first argument of each is a list of rows that begin with a session's names."""

SESSIONS_PER_JOB: Final = 8
"""Of one job for summaries or memory: workers share what is due by jobs, so that a large one would keep others idle."""
