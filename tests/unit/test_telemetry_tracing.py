"""Traces that are off cost nothing; those that are on carry no message of an error."""

import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from prefold.config.settings import ProbeSettings
from prefold.errors import ConfigurationError
from prefold.telemetry import exporting, tracing
from prefold.telemetry.tracing import ids_of, is_on, note, span, traceparent, turns_stored
from tests.support.otlp import Collector, collecting
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
TURN = ("acme", "talk", "0123456789ab", 7)


def settings_for(collector: Collector) -> ProbeSettings:
    return ProbeSettings(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)


def test_off_no_process_imports_what_makes_and_sends_spans() -> None:
    # redis-py itself imports other parts of OpenTelemetry where that is installed.
    code = """
import sys
import prefold.jobs, prefold.recall
from prefold.config.settings import ProbeSettings
from prefold.telemetry.process import observed
with observed("gateway", ProbeSettings()):
    parts = ("prefold.telemetry.exporting", "opentelemetry.sdk.trace", "opentelemetry.exporter")
    print([name for name in sys.modules if name.startswith(parts)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_one_module_alone_imports_opentelemetry() -> None:
    importing = {
        path.name
        for root in ("services", "workers", "shared")
        for path in (ROOT / root).rglob("*.py")
        if re.search(r"^\s*(?:from|import) opentelemetry", path.read_text("utf-8"), re.MULTILINE)
    }
    assert importing == {"exporting.py"}


def test_off_a_span_is_one_and_the_same_nothing() -> None:
    assert not is_on()
    assert span("a", {"b": 1}, turns=[TURN]) is span("c")
    assert traceparent() is None
    note({"a": 1})
    turns_stored(TURN, {})


def test_off_a_span_takes_no_measurable_time() -> None:
    def seconds(rounds: int) -> float:
        began = time.perf_counter()
        for _ in range(rounds):
            with span("a"):
                pass
        return time.perf_counter() - began

    assert min(seconds(10_000) for _ in range(5)) / 10_000 < 10e-6  # some 0.2 µs; an append takes hundreds


def test_the_ids_of_a_turn_are_the_same_everywhere_and_differ_from_turn_to_turn() -> None:
    assert ids_of(TURN) == ids_of(("acme", "talk", "0123456789ab", 7))
    others = {ids_of((*TURN[:3], seq)) for seq in range(1, 200)} | {ids_of(("acme", "talk:0", "123456789ab", 7))}
    assert len(others) == 200
    assert all(0 < trace < 2**128 and 0 < one < 2**64 for trace, one in others)


def test_on_spans_arrive_with_parents_links_and_attributes_and_the_end_sends_the_last() -> None:
    with collecting() as collector:
        with tracing.tracing("gateway", settings_for(collector)):
            assert is_on()
            with span("request", {"http.route": "/v1"}, kind="server"):
                turns_stored(TURN, {"turns": 1})
                carried = traceparent()
            with span("dispatch", turns=[TURN]), span("inner"):
                note({"outcome": "ok"})
            with span("job", parent=carried):
                pass
        assert not is_on()
        wait_until("the last spans have arrived", lambda: collector.spans("job"))
        [request], [stored], [dispatch], [inner], [job] = (
            collector.spans(name) for name in ("request", "turns stored", "dispatch", "inner", "job")
        )
    assert (int(stored.trace, 16), int(stored.id, 16)) == ids_of(TURN)
    assert stored.links == ((request.trace, request.id),)
    assert request.links == dispatch.links == ((stored.trace, stored.id),)
    assert (inner.trace, inner.parent) == (dispatch.trace, dispatch.id)
    assert inner.attributes == {"outcome": "ok"}
    assert (job.trace, job.parent) == (request.trace, request.id)
    assert {one.service for one in collector.spans()} == {"prefold-gateway"}


def test_an_error_marks_its_span_and_keeps_its_words_to_itself() -> None:
    with collecting() as collector:
        with (
            tracing.tracing("worker-embed", settings_for(collector)),
            pytest.raises(ValueError, match="canary"),
            span("work"),
        ):
            raise ValueError("canary words")
        wait_until("the span has arrived", lambda: collector.spans("work"))
    body = b"".join(collector.bodies)
    assert b"ValueError" in body
    assert b"canary" not in body


def test_a_collector_that_is_away_holds_up_nobody() -> None:
    began = time.monotonic()
    with tracing.tracing("gateway", ProbeSettings(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")), span("a"):
        pass
    assert time.monotonic() - began < 5


def test_a_collector_that_goes_away_and_comes_back_is_told_of_once_each(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for thread in threading.enumerate():  # of other tests, whose collector was away
        if thread.name == "last spans":
            thread.join(10)
    monkeypatch.setattr(exporting, "log", structlog.get_logger())  # one that was used before is not captured
    with capture_logs() as events, socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        port = kept.getsockname()[1]
        with tracing.tracing("gateway", ProbeSettings(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}")):

            def send(name: str) -> None:
                with span(name):
                    pass
                assert tracing._tracing is not None
                tracing._tracing._provider.force_flush()

            for name in ("first", "second"):
                send(name)
            kept.close()
            with collecting(port) as collector:
                for name in ("third", "fourth"):
                    send(name)
                assert [one.name for one in collector.arrived] == ["third", "fourth"]
    told = [event for event in events if event["event"].startswith("traces_")]
    assert [event["event"] for event in told] == ["traces_unsent", "traces_sent_again"]
    assert "refused" in told[0]["reason"]
    assert told[1]["dropped"] == 2
    assert [record for record in caplog.records if record.name.startswith("opentelemetry")] == []


def test_a_process_says_what_is_missing_when_opentelemetry_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prefold.telemetry.exporting", None)
    settings = ProbeSettings(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    with pytest.raises(ConfigurationError, match=r"prefold\[traces\]"), tracing.tracing("gateway", settings):
        pass
