"""What can be set of a worker."""

from pydantic import Field

from prefold.config.settings import (
    EmbedderSettings,
    KeyFileSettings,
    ProbeSettings,
    QueueSettings,
    RedisSettings,
    SummarizerSettings,
    VectorSettings,
)
from prefold.pricing import AskingSettings


class WorkerSettings(
    RedisSettings, QueueSettings, VectorSettings, EmbedderSettings, SummarizerSettings, ProbeSettings, KeyFileSettings
):
    """Settings of ``prefold worker``, whatever it serves."""

    worker_stop_seconds: float = Field(
        20,
        ge=0,
        le=3600,
        description="Time that a running job has to come to a stop; then it goes back to the queue, in s.",
    )
    embed_call_turns: int = Field(16, ge=1, le=256, description="Turns in one call of the embedder.")
    embed_job_turns: int = Field(
        512, ge=1, le=100_000, description="Turns that one job embeds; what is left comes in a later job."
    )
    embed_nice: int = Field(
        5,
        ge=0,
        le=19,
        description="By how much the embed and memory workers yield the CPU to processes that others wait for.",
    )
    builds_at_once: int = Field(
        64, ge=1, le=1024, description="Summaries under way in one process, from which on it takes no more jobs."
    )
    builds_memory_mb: int = Field(
        2048, ge=256, le=1_048_576, description="Memory of such a process, from which on it takes no more jobs, in MiB."
    )
    remember_at_once: int = Field(
        32, ge=1, le=1024, description="Sessions whose memory one process sees to at once; at so many it takes no jobs."
    )


class CompactWorkerSettings(WorkerSettings, AskingSettings):
    """Of one that writes summaries, or those of closed sessions: the same, and its engine has what it needs."""
