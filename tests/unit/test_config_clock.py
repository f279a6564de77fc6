"""The time of day as logs and records say it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from prefold.config import clock
from prefold.config.clock import utc_now


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], int]], None]:
    def set_clock(read: Callable[[], int]) -> None:
        fake = SimpleNamespace(time_ns=read, gmtime=time.gmtime, strftime=time.strftime)
        monkeypatch.setattr(clock, "time", fake)

    return set_clock


@pytest.mark.parametrize(
    ("nanoseconds", "told"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_999_999_999, "1970-01-01T00:00:01.999999Z"),
        (1_709_210_096_000_007_000, "2024-02-29T12:34:56.000007Z"),
    ],
)
def test_a_moment_is_told_in_full(at: Callable[[Callable[[], int]], None], nanoseconds: int, told: str) -> None:
    at(lambda: nanoseconds)

    assert [utc_now(), utc_now()] == [told, told]


def test_seconds_follow_each_other(at: Callable[[Callable[[], int]], None]) -> None:
    moments = iter([59_999_999_000, 60_000_000_000, 59_500_000_000])
    at(lambda: next(moments))

    assert [utc_now()[14:26] for _ in range(3)] == ["00:59.999999", "01:00.000000", "00:59.500000"]


def test_it_is_the_time_of_now() -> None:
    assert abs(datetime.fromisoformat(utc_now()) - datetime.fromtimestamp(time.time(), UTC)) < timedelta(seconds=30)
