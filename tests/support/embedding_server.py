"""A stand-in for an embeddings server: OpenAI's call, answered at once with vectors that follow from the texts."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DIMENSION = 32


class _Embeddings(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.heard += request["input"]
        rows = [{"index": index, "embedding": vector_of(text)} for index, text in enumerate(request["input"])]
        content = json.dumps({"data": rows}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    heard: list[str]

    def handle_error(self, *_arguments: object) -> None:
        """A caller that was killed is no news."""


@contextmanager
def embedding_server(heard: list[str] | None = None) -> Iterator[str]:
    """Its base URL. It runs in threads of this process. Every text that it is given goes into ``heard``, too."""
    with _Server(("127.0.0.1", 0), _Embeddings) as server:
        server.heard = [] if heard is None else heard
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def vector_of(text: str) -> list[float]:
    """What it answers for a text."""
    return [byte / 255 + 0.01 for byte in hashlib.sha256(text.encode()).digest()]
