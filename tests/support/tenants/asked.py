"""A proxy before the vector store that looks whether every request names one tenant, first of all."""

import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Asked:
    """What went through."""

    url: str = ""
    calls: Counter[str] = field(default_factory=Counter)
    unscoped: list[str] = field(default_factory=list)
    """Requests that could touch more than one tenant's points."""

    def look(self, method: str, path: str, body: bytes) -> None:
        rest = path.partition("?")[0].partition("/points")[2]
        if "/points" not in path:
            return
        self.calls[f"{method} /points{rest}"] += 1
        if not _is_scoped(method, rest, json.loads(body)):
            self.unscoped.append(f"{method} {path}: {body[:300]!r}")


def _is_scoped(method: str, rest: str, body: dict[str, Any]) -> bool:
    if method == "PUT":
        return all(point["payload"]["tenant"] for point in body["points"])
    searches = body["searches"] if rest == "/query/batch" else [body]
    tenants = [_tenants_of(search) for search in searches]
    return all(tenants) and len(set().union(*tenants)) == 1 and None not in tenants[0]


def _tenants_of(search: dict[str, Any]) -> set[str | None]:
    """Of every filter in it: those of its sources and that of the idf's corpus too."""
    corpus = (search.get("params") or {}).get("idf", {}).get("corpus")
    filters = [search.get("filter"), *([corpus] if corpus else [])]
    inner = [_tenants_of(source) for source in search.get("prefetch") or ()]
    return {_tenant_of(one) for one in filters}.union(*inner)


def _tenant_of(chosen: dict[str, Any] | None) -> str | None:
    first = (chosen or {}).get("must") or [{}]
    return str(first[0]["match"]["value"]) if first[0].get("key") == "tenant" else None


class _Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Proxy"

    def setup(self) -> None:
        super().setup()
        self._onward = HTTPConnection(self.server.target, timeout=30)
        self.server.open.append(self.connection)

    def finish(self) -> None:
        super().finish()
        self._onward.close()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.asked.look(self.command, self.path, body)
        self._onward.request(self.command, self.path, body, {"content-type": "application/json"})
        answer = self._onward.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_DELETE = do_POST  # noqa: N815 (the names that the base class looks for)

    def log_message(self, *_arguments: object) -> None:
        pass


class _Proxy(ThreadingHTTPServer):
    daemon_threads = False  # so that its end waits for them
    target: str
    asked: Asked
    open: list[socket.socket]

    def handle_error(self, *_arguments: object) -> None:
        """A caller that ended is no news."""

    def hang_up(self) -> None:
        """Callers that keep their connections would keep the threads."""
        for connection in self.open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def looking_proxy(target: str) -> Iterator[Asked]:
    """A proxy of this server, in threads of this process."""
    with _Proxy(("127.0.0.1", 0), _Passing) as server:
        server.target, server.asked, server.open = urlsplit(target).netloc, Asked(), []
        server.asked.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server.asked
        finally:
            server.shutdown()
            thread.join()
            server.hang_up()
