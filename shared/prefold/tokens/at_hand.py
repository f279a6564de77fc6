"""The best counter that an installation has: the exact one, or the estimate where its packages are not installed."""

from functools import lru_cache
from typing import Literal

from prefold.errors import ConfigurationError
from prefold.tokens.counter import TokenCounter
from prefold.tokens.estimate import EstimatingCounter
from prefold.tokens.loading import load_counter

__all__ = ["CounterKind", "counter_at_hand"]

CounterKind = Literal["exact", "estimate"]


@lru_cache(maxsize=1)
def counter_at_hand() -> tuple[TokenCounter, CounterKind]:
    """The process's counter, and what it is. Takes up to a second where it is exact; later calls take nothing."""
    try:
        return load_counter(), "exact"
    except (ImportError, ConfigurationError):  # neither tiktoken nor its ranks: a backend with the base only
        return EstimatingCounter(), "estimate"
