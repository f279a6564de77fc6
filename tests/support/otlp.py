"""A collector for tests: takes spans by OTLP over HTTP, as a real one, and keeps them."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True, slots=True)
class SeenSpan:
    """One span as it arrived; ids in hex."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    links: tuple[tuple[str, str], ...]
    """Trace and span of each."""
    attributes: Mapping[str, object]


@dataclass(slots=True)
class Collector:
    """What has arrived so far."""

    url: str
    bodies: list[bytes] = field(default_factory=list)
    arrived: list[SeenSpan] = field(default_factory=list)

    def spans(self, name: str | None = None, **attributes: object) -> list[SeenSpan]:
        """Those of that name with these attributes."""
        wanted = attributes.items()
        return [
            one for one in list(self.arrived) if name in (None, one.name) and wanted <= dict(one.attributes).items()
        ]


class _Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def do_POST(self) -> None:
        assert self.path == "/v1/traces", self.path
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.collector.bodies.append(body)
        self.server.collector.arrived.extend(_spans_of(body))
        content = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    collector: Collector


@contextmanager
def collecting(port: int = 0) -> Iterator[Collector]:
    """A collector on that port (0: a free one), in threads of this process."""
    with _Server(("127.0.0.1", port), _Receiver) as server:
        server.collector = Collector(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server.collector
        finally:
            server.shutdown()
            thread.join()


def _spans_of(body: bytes) -> Iterator[SeenSpan]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        named = {one.key: one.value.string_value for one in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield SeenSpan(
                    service=named["service.name"],
                    name=span.name,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
                    attributes={one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes},
                )
