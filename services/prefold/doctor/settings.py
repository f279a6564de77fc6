"""What can be set of the doctor: what the processes that it looks at are set to."""

from pathlib import Path

from pydantic import Field

from prefold.config.addresses import Addresses
from prefold.config.settings import (
    DataDirSettings,
    DurabilitySettings,
    EmbedderSettings,
    QueueSettings,
    RedisSettings,
    SummarizerSettings,
    VectorSettings,
)

__all__ = ["DoctorSettings", "located"]


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


def located(settings: DoctorSettings) -> DoctorSettings:
    """The settings with the addresses of a stack that runs on the data folder, where none are set."""
    running = Addresses.read(settings.data_dir)
    if running is None:
        return settings
    known = {name: value for name, value in running.settings().items() if name not in settings.model_fields_set}
    return settings.model_copy(update=known)
