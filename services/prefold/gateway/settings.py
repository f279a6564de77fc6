"""What can be set on a gateway."""

from datetime import timedelta
from typing import Self

from pydantic import Field, model_validator

from prefold.config.settings import (
    DurabilitySettings,
    EmbedderSettings,
    EngineSettings,
    ListenSettings,
    RedisSettings,
    RedisUrl,
    VectorSettings,
)

PRIOR_LEADS = {"extractive": timedelta(seconds=5), "anthropic": timedelta(minutes=3)}
"""By engine. A gateway is told the engine for this alone."""


class GatewaySettings(
    RedisSettings, VectorSettings, ListenSettings, DurabilitySettings, EmbedderSettings, EngineSettings
):
    """Settings of ``prefold gateway``."""

    queue_url: RedisUrl | None = Field(
        None, description="Redis of the job queue, where erasures look; without it only workers look there."
    )
    turn_max_bytes: int = Field(1_048_576, ge=1024, le=16_777_216, description="Largest turn, in bytes of JSON.")
    request_max_bytes: int = Field(4_194_304, ge=1024, le=67_108_864, description="Largest request body, in bytes.")
    turns_per_request: int = Field(100, ge=1, le=1000, description="Most turns in one append.")
    calls_per_request: int = Field(
        1_024, ge=128, le=100_000, description="Most tool calls and results in one append; the store is busy with each."
    )
    body_timeout_ms: int = Field(15_000, ge=100, le=120_000, description="Time for a request body to arrive, in ms.")
    request_timeout_ms: int = Field(5_000, ge=100, le=60_000, description="Time for an answer, in ms; then 503.")
    recall_deadline_ms: int = Field(
        300, ge=10, le=10_000, description="Time that a context read gives to recall, in ms; then it answers without."
    )
    requests_in_flight: int = Field(512, ge=1, le=65_536, description="Requests served at once; above that 429.")
    keys_check_seconds: int = Field(5, ge=1, le=60, description="How often a changed key file is looked for, in s.")
    replicas_within_ms: int = Field(
        1_000, ge=10, le=4_000, description="Time that replicas have to confirm a durable turn, in ms; then 503."
    )
    store_check_ms: int = Field(
        1_000, ge=50, le=60_000, description="How often settings and memory of the session store are looked at, in ms."
    )
    store_high_percent: float = Field(
        90, gt=0, le=100, description="Used part of the store's maxmemory from which on new turns get 503, in percent."
    )
    store_low_percent: float = Field(
        85, gt=0, le=100, description="Used part below which they are taken again, in percent."
    )

    @property
    def build_lead(self) -> timedelta:
        """How long a summary takes, as far as nothing was measured yet."""
        return PRIOR_LEADS[self.summarizer]

    @model_validator(mode="after")
    def _check_marks(self) -> Self:
        if self.store_low_percent > self.store_high_percent:
            raise ValueError("PREFOLD_STORE_LOW_PERCENT: must not be above PREFOLD_STORE_HIGH_PERCENT")
        return self
