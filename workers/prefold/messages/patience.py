"""When to try again: what a response asks for, and what we wait without that."""

import math
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

__all__ = ["LONGEST_WAIT", "asked_wait", "backoff"]

LONGEST_WAIT = timedelta(minutes=5)
"""Whatever a response asks for. A server that asks for a year is asked again after this."""
_FIRST_WAIT = timedelta(seconds=3)
_MOST_DOUBLINGS = 10


def asked_wait(headers: Mapping[str, str], now: datetime | None = None) -> timedelta | None:
    """What ``retry-after-ms`` or ``retry-after`` (seconds or a date) asks for; None: nothing that makes sense.

    Not capped: what is absurd is worth a record. A year at most, so that nobody overflows.
    """
    seconds = _number(headers.get("retry-after-ms"), 0.001)
    if seconds is None:
        text = headers.get("retry-after")
        seconds = _number(text, 1.0)
        if seconds is None and text is not None:
            seconds = _seconds_until(text, now or datetime.now(UTC))
    if seconds is None or seconds <= 0:
        return None
    return timedelta(seconds=min(seconds, 31_536_000.0))


def backoff(failures: int) -> timedelta:
    """Full jitter over a base of 2 to 5 s that doubles with each failure in a row, at most ``LONGEST_WAIT``.

    "Full jitter" as in AWS's "Exponential Backoff And Jitter" (2015): what is drawn starts near nothing, so that
    many who failed together do not come back together. Never under half a second: a model is not there sooner.
    """
    doubled = _FIRST_WAIT * 2 ** min(max(failures - 1, 0), _MOST_DOUBLINGS)
    most = min(doubled, LONGEST_WAIT).total_seconds()
    return timedelta(seconds=random.uniform(0.5, most))  # noqa: S311 (jitter)


def _number(text: str | None, unit: float) -> float | None:
    try:
        value = float(text) * unit if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _seconds_until(text: str, now: datetime) -> float | None:
    try:
        when = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now.timestamp()
