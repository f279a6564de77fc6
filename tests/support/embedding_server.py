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

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        rows = [{"index": index, "embedding": _vector(text)} for index, text in enumerate(request["input"])]
        content = json.dumps({"data": rows}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_arguments: object) -> None:
        """A caller that was killed is no news."""


@contextmanager
def embedding_server() -> Iterator[str]:
    """Its base URL. It runs in threads of this process."""
    with _Server(("127.0.0.1", 0), _Embeddings) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def _vector(text: str) -> list[float]:
    return [byte / 255 + 0.01 for byte in hashlib.sha256(text.encode()).digest()]
