"""What a session says of its summaries: who wrote them, when the next one is due, what they cost."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, UnsetType

from prefold.storage.session_options import SharedPrefix

Count = Annotated[int, Meta(ge=0)]


class SharedPrefixState(SharedPrefix, frozen=True, kw_only=True, omit_defaults=False):
    """The setting, and whether it can be followed."""

    enabled: bool | UnsetType = False
    waits_for: Literal["model"] | None = None
    """``model``: the session has none, and summaries are written without the prefix until it has."""


class SoftThreshold(Struct, frozen=True, kw_only=True):
    """From where the next summary is built: what is still free then lasts for ``build_seconds`` at this pace."""

    tokens: Count
    """Served tokens."""
    ratio: float
    """Share of the room beside system and tools."""
    adaptive: bool
    """``false``: ``soft_ratio`` was given."""
    tokens_per_minute: float
    """How fast the session grew lately, in raw tokens."""
    build_seconds: float
    """95 of 100 of the tenant's builds took no longer; before enough were measured, what the engine is known for."""


class ActiveSummary(Struct, frozen=True, kw_only=True):
    """The summary in use stands for all turns up to ``covers_to``; 0: none yet, and the rest is ``null``."""

    covers_to: Count
    engine: str | None = None
    instead_of: str | None = None
    """The engine that should have written it and could not."""
    because: str | None = None
    """Why not: a code."""
    coverage: float | None = None
    """Share of the exact values, constraints and corrections of its turns that summary and ledger carry."""
    coverage_before: float | None = None
    """The share that the summary carried before the ledger put back what it lacked."""
    built_at: str | None = None


class Standby(Struct, frozen=True, kw_only=True):
    """The next summary, built and verified, waiting for the limit. Members as in ``active``."""

    covers_to: Count
    built_at: str
    coverage: float | None
    tokens: Count
    """Of the whole context once it is swapped in."""
    engine: str | None = None
    instead_of: str | None = None
    because: str | None = None
    coverage_before: float | None = None


class SummaryUsage(Struct, frozen=True, kw_only=True):
    """What the model calls for this session's summaries took, as the provider counted; all 0 without a model."""

    calls: Count = 0
    input_tokens: Count = 0
    """Neither read from the provider's cache nor written to it."""
    cache_read_tokens: Count = 0
    cache_write_tokens: Count = 0
    output_tokens: Count = 0
    cost_usd: float = 0.0
    """By the operator's price table."""
