"""The part of the traces that needs OpenTelemetry. Imported only where a collector is named."""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Final

import structlog
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    get_current_span,
    use_span,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from prefold.config.flags import redacted_url
from prefold.telemetry.tracing import TRACEPARENT, Attributes, Kind, Turn, ids_of

__all__ = ["Tracing"]

log = structlog.get_logger(__name__)

_MOST_LINKS: Final = 128
"""As many as the collector takes by its defaults; of more, the last ones."""
_EVERY_MS: Final = 1_000
_LAST_SECONDS: Final = 1.0
_KINDS: Final[Mapping[Kind, SpanKind]] = {
    "internal": SpanKind.INTERNAL,
    "server": SpanKind.SERVER,
    "client": SpanKind.CLIENT,
    "producer": SpanKind.PRODUCER,
    "consumer": SpanKind.CONSUMER,
}


class _Ids(RandomIdGenerator):
    """Random ids, but for a root whose ids are given."""

    def __init__(self) -> None:
        self._given = threading.local()

    @contextmanager
    def given(self, trace_id: int, span_id: int) -> Iterator[None]:
        """The next span of this thread gets these."""
        self._given.ids = trace_id, span_id
        try:
            yield
        finally:
            self._given.ids = None

    def generate_trace_id(self) -> int:
        ids = getattr(self._given, "ids", None)
        return ids[0] if ids else super().generate_trace_id()

    def generate_span_id(self) -> int:
        ids = getattr(self._given, "ids", None)
        return ids[1] if ids else super().generate_span_id()


class _Reasons(logging.Filter):
    """Takes what the library says of each batch that it could not send: ours says it once."""

    first = ""
    """Of the batch: names the fault, those after it tell of attempts."""

    def filter(self, record: logging.LogRecord) -> bool:
        self.first = self.first or redacted_url(record.getMessage())
        return False


_REASONS: Final = _Reasons()


class _Exporter(OTLPSpanExporter):
    """Tells when the collector begins to take no spans, and when it takes them again."""

    _dropped = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        _REASONS.first = ""
        result = super().export(spans)
        if result is SpanExportResult.FAILURE:
            if not self._dropped:
                log.warning("traces_unsent", reason=_REASONS.first)
            self._dropped += len(spans)
        elif self._dropped:
            log.info("traces_sent_again", dropped=self._dropped)
            self._dropped = 0
        return result


class Tracing:
    """Spans of one process, sent in the background; what the collector does not take in time is dropped.

    Sampling, headers, certificates and limits are OpenTelemetry's own variables (``OTEL_…``). A sampler by trace id
    decides alike in every process, because all of them know the ids.
    """

    def __init__(self, role: str, endpoint: str) -> None:
        self._ids = _Ids()
        named = {"service.name": f"prefold-{role}", "service.version": version("prefold")}
        self._provider = TracerProvider(resource=Resource.create(named), id_generator=self._ids, shutdown_on_exit=False)
        exporter = _Exporter(endpoint=f"{endpoint}/v1/traces", timeout=2)
        self._provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=_EVERY_MS))
        self._tracer = self._provider.get_tracer("prefold")
        self._carrier = TraceContextTextMapPropagator()
        logging.getLogger("opentelemetry").setLevel(logging.ERROR)
        of_exporter = logging.getLogger(trace_exporter.__name__)
        of_exporter.setLevel(logging.WARNING)
        of_exporter.addFilter(_REASONS)

    @contextmanager
    def span(
        self,
        name: str,
        kind: Kind,
        turns: Iterable[Turn],
        parent: str | None,
        attributes: Attributes,
    ) -> Iterator[Span]:
        """See ``prefold.telemetry.tracing.span``."""
        links = [Link(_context_of(turn)) for turn in list(turns)[-_MOST_LINKS:]]
        within = None if parent is None else self._carrier.extract({TRACEPARENT: parent}, Context())
        one = self._tracer.start_span(name, within, _KINDS[kind], dict(attributes), links)
        try:
            with use_span(one, end_on_exit=False, record_exception=False, set_status_on_exception=False):
                yield one
        except BaseException as error:
            # Its message may quote a conversation.
            one.set_status(Status(StatusCode.ERROR, type(error).__qualname__))
            raise
        finally:
            one.end()

    def note(self, attributes: Attributes) -> None:
        """Adds to the current span."""
        get_current_span().set_attributes(dict(attributes))

    def traceparent(self) -> str | None:
        """The current span as a header's value."""
        carrier: dict[str, str] = {}
        self._carrier.inject(carrier)
        return carrier.get(TRACEPARENT)

    def root(self, turn: Turn, attributes: Attributes) -> None:
        """See ``prefold.telemetry.tracing.turns_stored``."""
        request, (trace_id, span_id) = get_current_span(), ids_of(turn)
        links = [Link(request.get_span_context())] if request.get_span_context().is_valid else []
        with self._ids.given(trace_id, span_id):
            root = self._tracer.start_span("turns stored", Context(), SpanKind.PRODUCER, dict(attributes), links)
        root.end()
        request.add_link(root.get_span_context())

    def close(self) -> None:
        """Sends what waits, for a second at most."""
        # In a thread: a collector that is away would hold up the end of the process.
        ending = threading.Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        ending.start()
        ending.join(_LAST_SECONDS)


def _context_of(turn: Turn) -> SpanContext:
    trace_id, span_id = ids_of(turn)
    return SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
