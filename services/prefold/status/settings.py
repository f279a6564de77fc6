"""What ``prefold status`` and ``prefold top`` are told."""

from pydantic import Field

from prefold.config.addresses import Addresses, located
from prefold.config.settings import DataDirSettings, ListenSettings, QueueSettings, RedisSettings

__all__ = ["StatusSettings", "metrics_urls", "with_running"]


class StatusSettings(RedisSettings, QueueSettings, DataDirSettings):
    """Where to look. Addresses that are not set are those of the ``prefold up`` on that data folder."""

    gateway_url: str = Field(
        f"http://127.0.0.1:{ListenSettings.model_fields['port'].default}",
        max_length=10_000,
        description="Gateways whose counters are added up: base URLs, by commas; where /metrics needs a key, of their "
        "probes' ports.",
    )
    status_sessions: int = Field(
        2_000, ge=0, le=1_000_000, description="Sessions that status looks at for those near their limits; 0: none."
    )
    near_limit_percent: float = Field(
        80, gt=0, le=100, description="Used part of its limit from which a session counts as near it, in percent."
    )


def with_running(settings: StatusSettings) -> StatusSettings:
    """The settings with the addresses of a stack on the data folder; of its gateway the probe, which wants no key."""
    running = Addresses.read(settings.data_dir)
    if running is not None and running.probe_url and "gateway_url" not in settings.model_fields_set:
        settings = settings.model_copy(update={"gateway_url": running.probe_url})
    return located(settings)


def metrics_urls(settings: StatusSettings) -> tuple[str, ...]:
    """One for each gateway."""
    return tuple(url.strip().rstrip("/") for url in settings.gateway_url.split(",") if url.strip())
