"""How long is waited."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefold.messages.patience import LONGEST_WAIT, asked_wait, backoff

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "30"}, 30),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "30"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "30"}, 30),
        ({"retry-after": "Mon, 30 Nov 2026 12:01:00 GMT"}, 60),
        ({"retry-after": "Mon, 30 Nov 2026 11:59:00 GMT"}, None),
        ({"retry-after": "4294967296"}, 31_536_000),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "tomorrow"}, None),
        ({}, None),
    ],
)
def test_what_a_response_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    expected = None if seconds is None else timedelta(seconds=seconds)
    assert asked_wait(headers, NOW) == expected


@given(st.text(max_size=40))
def test_whatever_a_server_writes_is_a_wait_within_a_year_or_none(text: str) -> None:
    wait = asked_wait({"retry-after": text}, NOW)
    assert wait is None or timedelta(0) < wait <= timedelta(days=365)


@given(st.integers(-5, 10_000))
def test_a_pause_is_drawn_anew_between_half_a_second_and_its_doubled_base(failures: int) -> None:
    pauses = {backoff(failures) for _ in range(20)}
    most = min(timedelta(seconds=3) * 2 ** min(max(failures - 1, 0), 10), LONGEST_WAIT)
    assert all(timedelta(seconds=0.5) <= pause <= most for pause in pauses)
    assert len(pauses) > 1
