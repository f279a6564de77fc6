"""What can be set of the doctor: what the processes that it looks at are set to."""

from pathlib import Path

from pydantic import Field

from prefold.config.settings import (
    DataDirSettings,
    DurabilitySettings,
    EmbedderSettings,
    QueueSettings,
    RedisSettings,
    SummarizerSettings,
    VectorSettings,
)

__all__ = ["DoctorSettings"]


class DoctorSettings(
    RedisSettings,
    QueueSettings,
    VectorSettings,
    DataDirSettings,
    DurabilitySettings,
    EmbedderSettings,
    SummarizerSettings,
):
    """Settings of ``prefold doctor``. Addresses that are not set are those of the ``prefold up`` on that data folder."""

    api_keys_file: Path | None = Field(
        None, description="File of hashed keys and their tenants, as the gateway has it."
    )
