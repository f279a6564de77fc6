"""Moments as they are answered."""

from datetime import UTC, datetime

__all__ = ["iso_time"]


def iso_time(milliseconds: int) -> str:
    """RFC 3339 in UTC."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
