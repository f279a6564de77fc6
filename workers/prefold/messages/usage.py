"""What an answer says that it took."""

from typing import Any

from prefold.pricing import BilledTokens

__all__ = ["read_usage"]

_MOST = 1_000_000_000


def read_usage(usage: Any) -> BilledTokens | None:
    """The counts of a ``usage`` object; what is missing, null or no count is 0. None: it says nothing at all.

    Writes to the cache that are not split by lifetime count as those of five minutes, the default.
    """
    if not isinstance(usage, dict) or not ("input_tokens" in usage or "output_tokens" in usage):
        return None
    split = usage.get("cache_creation")
    hour = _count(split.get("ephemeral_1h_input_tokens")) if isinstance(split, dict) else 0
    written = _count(usage.get("cache_creation_input_tokens"))
    if not written and isinstance(split, dict):
        written = hour + _count(split.get("ephemeral_5m_input_tokens"))
    hour = min(hour, written)
    return BilledTokens(
        input_tokens=_count(usage.get("input_tokens")),
        cache_read_tokens=_count(usage.get("cache_read_input_tokens")),
        cache_write_5m_tokens=written - hour,
        cache_write_1h_tokens=hour,
        output_tokens=_count(usage.get("output_tokens")),
    )


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        return 0
    return int(value)
