"""The time of day as logs and records say it."""

import time

__all__ = ["utc_now"]

_second: tuple[int, str] = (-1, "")
"""The second that was told last, and its text."""


def utc_now() -> str:
    """Such as ``2026-05-09T08:07:06.012345Z``; a third of what ``datetime`` takes, because a second is spelt once."""
    global _second
    second, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    known, text = _second
    if second != known:
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        _second = second, text  # one assignment: another thread sees both or neither
    return f"{text}.{nanoseconds // 1000:06d}Z"
