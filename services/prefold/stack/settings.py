"""Settings of ``prefold up``."""

from typing import Self

from pydantic import Field, SecretStr, model_validator

from prefold.config.settings import (
    DataDirSettings,
    DurabilitySettings,
    EmbedderSettings,
    HttpUrl,
    ListenSettings,
    RedisUrl,
    SessionsUrl,
    SummarizerSettings,
    check_summarizer,
)


class StackSettings(ListenSettings, DataDirSettings, DurabilitySettings, EmbedderSettings, SummarizerSettings):
    """An address replaces the embedded part; the other settings are passed on to the processes."""

    redis_url: SessionsUrl | None = Field(None, description="Redis of the sessions, instead of the embedded one.")
    queue_url: RedisUrl | None = Field(None, description="Redis of the job queue, instead of the embedded one.")
    qdrant_url: HttpUrl | None = Field(None, description="Qdrant, instead of the embedded vector store.")
    qdrant_api_key: SecretStr | None = Field(
        None, description="API key of the vector store; the embedded one gets a random key at each start without it."
    )
    embed_workers: int = Field(1, ge=0, le=64, description="Worker processes that embed turns.")
    compact_workers: int = Field(1, ge=0, le=64, description="Worker processes that write summaries.")

    @model_validator(mode="after")
    def _has_what_its_engine_needs(self) -> Self:
        check_summarizer(self)  # the workers look too; they would be started again for ever
        return self
