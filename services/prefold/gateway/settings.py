"""What can be set on a gateway."""

from pydantic import Field

from prefold.config.settings import (
    AuditSettings,
    EmbedderSettings,
    EngineSettings,
    ListenSettings,
    ProbeSettings,
    RedisSettings,
    RedisUrl,
    StoreSettings,
    TurnSettings,
    VectorSettings,
)


class GatewaySettings(
    RedisSettings,
    VectorSettings,
    ListenSettings,
    StoreSettings,
    TurnSettings,
    EmbedderSettings,
    EngineSettings,
    AuditSettings,
    ProbeSettings,
):
    """Settings of ``prefold gateway``."""

    queue_url: RedisUrl | None = Field(
        None, description="Redis of the job queue, where erasures look; without it only workers look there."
    )
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
    requests_in_flight: int = Field(
        512, ge=1, le=65_536, description="Requests under way, those that wait among them; above that 429."
    )
    requests_at_once: int = Field(
        96, ge=4, le=4_096, description="Requests worked on at once; the others wait, and tenants take turns."
    )
    requests_of_tenant: int = Field(
        256, ge=1, le=65_536, description="Requests of one tenant under way, likewise; above that 429 for this tenant."
    )
    keys_check_seconds: int = Field(5, ge=1, le=60, description="How often a changed key file is looked for, in s.")
