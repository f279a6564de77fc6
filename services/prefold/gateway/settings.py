"""What can be set on a gateway."""

from pydantic import Field

from prefold.config.settings import (
    DurabilitySettings,
    EmbedderSettings,
    ListenSettings,
    RedisSettings,
    VectorSettings,
)


class GatewaySettings(RedisSettings, VectorSettings, ListenSettings, DurabilitySettings, EmbedderSettings):
    """Settings of ``prefold gateway``."""

    turn_max_bytes: int = Field(1_048_576, ge=1024, le=16_777_216, description="Largest turn, in bytes of JSON.")
    request_max_bytes: int = Field(4_194_304, ge=1024, le=67_108_864, description="Largest request body, in bytes.")
    turns_per_request: int = Field(100, ge=1, le=1000, description="Most turns in one append.")
    body_timeout_ms: int = Field(15_000, ge=100, le=120_000, description="Time for a request body to arrive, in ms.")
    request_timeout_ms: int = Field(5_000, ge=100, le=60_000, description="Time for an answer, in ms; then 503.")
    recall_deadline_ms: int = Field(
        300, ge=10, le=10_000, description="Time that a context read gives to recall, in ms; then it answers without."
    )
    requests_in_flight: int = Field(512, ge=1, le=65_536, description="Requests served at once; above that 503.")
    keys_check_seconds: int = Field(5, ge=1, le=60, description="How often a changed key file is looked for, in s.")
