"""What is asked of the queue: one job each, put together before it is sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from prefold.jobs.names import (
    COMPACT_JOB,
    COMPACT_QUEUE,
    EMBED_JOB,
    EMBED_QUEUE,
    EXPIRE_JOB,
    MEMORY_QUEUE,
    REMEMBER_JOB,
    QueueName,
    WorkKind,
)
from prefold.jobs.payloads import Json, encode_sessions, encode_spans, job_id
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.types import SessionRef

__all__ = ["QUEUE_OF", "Ask"]

QUEUE_OF: Final[dict[WorkKind, QueueName]] = {
    "embed": EMBED_QUEUE,
    "compact": COMPACT_QUEUE,
    "remember": MEMORY_QUEUE,
    "expire": EMBED_QUEUE,  # its workers reach the vectors
}
_JOB_OF: Final[dict[WorkKind, str]] = {
    "embed": EMBED_JOB,
    "compact": COMPACT_JOB,
    "remember": REMEMBER_JOB,
    "expire": EXPIRE_JOB,
}


@dataclass(frozen=True, slots=True)
class Ask:
    """One job. The same rows on the same occasion are the same job."""

    kind: WorkKind
    rows: Json
    occasion: str
    at_front: bool = False
    """Before all that waits."""

    @classmethod
    def embed(cls, spans: Sequence[EmbedSpan], occasion: str) -> "Ask":
        return cls("embed", encode_spans(spans), occasion)

    @classmethod
    def sessions(cls, kind: WorkKind, sessions: Sequence[SessionRef], occasion: str) -> "Ask":
        """Of work whose jobs name whole sessions."""
        return cls(kind, encode_sessions(sessions), occasion)

    @property
    def queue(self) -> QueueName:
        return QUEUE_OF[self.kind]

    @property
    def job(self) -> str:
        """Name of what the worker calls."""
        return _JOB_OF[self.kind]

    @property
    def id(self) -> str:
        return job_id(self.queue, self.rows, self.occasion)
