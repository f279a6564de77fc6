"""What can be set of a dispatcher."""

import socket

from pydantic import Field

from prefold.config.settings import (
    EngineSettings,
    IngestSettings,
    KeyFileSettings,
    ProbeSettings,
    QueueSettings,
    RedisSettings,
    StoreSettings,
    TurnSettings,
)


class DispatcherSettings(
    RedisSettings,
    QueueSettings,
    ProbeSettings,
    IngestSettings,
    KeyFileSettings,
    StoreSettings,
    TurnSettings,
    EngineSettings,
):
    """Settings of ``prefold dispatcher``."""

    dispatcher_name: str = Field(
        default_factory=socket.gethostname,
        min_length=1,
        max_length=128,
        pattern=r"^[A-Za-z0-9._@-]+$",
        description="Name of this consumer, kept over restarts; every dispatcher needs one of its own.",
    )
    embed_batch_turns: int = Field(64, ge=1, le=1024, description="Turns in one embed job.")
    embed_batch_wait_ms: int = Field(100, ge=0, le=10_000, description="Longest wait for a batch to fill, in ms.")
    build_window_ms: int = Field(
        250,
        ge=10,
        le=60_000,
        description="A session's wishes for a summary within this time become one job, in ms; grows fourfold.",
    )
    claim_idle_ms: int = Field(
        15_000, ge=1_000, le=3_600_000, description="Events unacknowledged this long are taken from their consumer, ms."
    )
    ingest_lease_ms: int = Field(
        10_000,
        ge=500,
        le=300_000,
        description="Time after which another dispatcher reads a tenant's ingest stream whose reader died, in ms.",
    )
    reconcile_seconds: float = Field(1, ge=0.1, le=3600, description="Time between two looks at what is due, in s.")
    lag_seconds: float = Field(
        5, ge=0.5, le=300, description="How often it is read how far behind the work is, for the metrics, in s."
    )
    sweep_seconds: float = Field(
        3600, ge=1, le=7 * 86_400, description="Time between two passes through all sessions for what due lacks, in s."
    )
    sweep_sessions_per_second: int = Field(
        500, ge=1, le=100_000, description="Sessions that such a pass looks at in a second, at most."
    )
    retry_seconds: float = Field(
        5, ge=0.5, le=3600, description="Shortest time before the same due work is enqueued again, in s; doubles."
    )
    max_retry_seconds: float = Field(60, ge=1, le=86_400, description="Longest such time, in s.")
    max_queue_depth: int = Field(
        2_000, ge=1, le=1_000_000, description="Jobs waiting in a queue beyond which no more are added."
    )
