"""Settings of the vector store's process."""

from pydantic import Field, SecretStr, field_validator

from prefold.config.settings import DataDirSettings, ProbeSettings

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class VectorstoreSettings(DataDirSettings, ProbeSettings):
    """Where the embedded vector store listens and how it looks after its files, which are in ``data_dir/vectors``."""

    vectors_host: str = Field("127.0.0.1", description="Loopback address to listen on.")
    vectors_port: int = Field(6333, ge=0, le=65535, description="TCP port; 0 takes a free one.")
    qdrant_api_key: SecretStr | None = Field(None, description="API key that clients must send; none: no key.")
    vectors_max_body_bytes: int = Field(
        16 * 1024 * 1024, ge=1024, le=256 * 1024 * 1024, description="Largest request body, bytes."
    )
    vectors_flush_seconds: float = Field(5.0, gt=0, le=3600, description="How often the log is folded in, seconds.")
    vectors_vacuum_idle_seconds: float = Field(
        10.0, ge=0, le=86_400, description="Seconds without a call before deleted points are cleared away."
    )

    @field_validator("vectors_host")
    @classmethod
    def _loopback(cls, value: str) -> str:
        if value not in _LOOPBACK:
            raise ValueError(f"the embedded store serves this machine only: one of {', '.join(_LOOPBACK)}")
        return value
