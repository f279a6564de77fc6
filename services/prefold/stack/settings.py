"""Settings of ``prefold up``."""

from pydantic import Field, SecretStr

from prefold.config.settings import (
    AuditSettings,
    DataDirSettings,
    DurabilitySettings,
    EmbedderSettings,
    HttpUrl,
    IngestSettings,
    ListenSettings,
    RedisUrl,
    SessionsUrl,
)
from prefold.pricing import AskingSettings


class StackSettings(
    ListenSettings, DataDirSettings, DurabilitySettings, EmbedderSettings, AskingSettings, IngestSettings, AuditSettings
):
    """An address replaces the embedded part; the other settings are passed on to the processes."""

    redis_url: SessionsUrl | None = Field(None, description="Redis of the sessions, instead of the embedded one.")
    queue_url: RedisUrl | None = Field(None, description="Redis of the job queue, instead of the embedded one.")
    qdrant_url: HttpUrl | None = Field(None, description="Qdrant, instead of the embedded vector store.")
    qdrant_api_key: SecretStr | None = Field(
        None, description="API key of the vector store; the embedded one gets a random key at each start without it."
    )
    probe_host: str = Field(
        "127.0.0.1", min_length=1, max_length=255, description="Address of the gateway's probe, where its port is set."
    )
    probe_port: int = Field(
        0,
        ge=0,
        le=65535,
        description="TCP port of /livez, /readyz and /metrics of the gateway, without a key; 0: a free one, on loopback.",
    )
    embed_workers: int = Field(1, ge=0, le=64, description="Worker processes that embed turns.")
    compact_workers: int = Field(1, ge=0, le=64, description="Worker processes that write summaries.")
    memory_workers: int = Field(
        1, ge=0, le=64, description="Worker processes that learn facts and close sessions; they yield to all others."
    )
