"""The counters of the hot path against the library's own, which they stand in for."""

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from prefold.telemetry.tally import Tally, Times
from tests.support.metrics import Scrape

BOUNDS = (0.01, 0.1, 1.0)


def both(seconds: list[float]) -> tuple[str, str]:
    """What each side renders of the same."""
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    tally, times = (
        Tally("asked_total", "Asked.", ("who",), ours),
        Times("took_seconds", "Took.", ("who",), ours, BOUNDS),
    )
    counter = Counter("asked_total", "Asked.", ("who",), registry=theirs)
    histogram = Histogram("took_seconds", "Took.", ("who",), registry=theirs, buckets=BOUNDS)
    for number, one in enumerate(seconds):
        who = "ab"[number % 2]
        tally.add((who,), 2)
        times.observe((who,), one)
        counter.labels(who).inc(2)
        histogram.labels(who).observe(one)
    return generate_latest(ours).decode(), generate_latest(theirs).decode()


def test_they_render_as_the_library_renders_its_own() -> None:
    ours, theirs = both([0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 3.0])
    assert Scrape(ours).samples() == Scrape(theirs).samples()


def test_a_counter_without_labels_reads_nought_before_it_is_raised() -> None:
    registry = CollectorRegistry()
    Tally("asked_total", "Asked.", (), registry)
    assert "asked_total 0.0" in generate_latest(registry).decode()


def test_a_series_can_begin_before_its_first_rise() -> None:
    registry = CollectorRegistry()
    tally = Tally("asked_total", "Asked.", ("who",), registry)
    tally.begin_at_zero("a")
    assert 'asked_total{who="a"} 0.0' in generate_latest(registry).decode()
    tally.add(("a",))
    tally.begin_at_zero("a")
    assert tally.count("a") == 1


def test_a_name_is_taken_once() -> None:
    registry = CollectorRegistry()
    Tally("asked_total", "Asked.", (), registry)
    with pytest.raises(ValueError, match="asked_total"):
        Counter("asked_total", "Asked.", registry=registry)
