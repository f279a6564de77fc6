"""What an embeddings server may answer, and what we make of it."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from prefold.embedding import HttpEmbedder, HttpEmbedderOptions
from prefold.errors import ConfigurationError, InvalidInputError, OverloadedError, PrefoldError, UnavailableError


@dataclass
class Answering:
    """The next answer of the server, and what it was asked."""

    url: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    """None: a proper answer of two dimensions."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Answering]:
    answering = Answering()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            answering.requests.append({"path": self.path, **request})
            answering.authorizations.append(self.headers["authorization"])
            content = (answering.body or proper(request["input"])).encode()
            self.send_response(answering.status)
            for name, value in {**answering.headers, "content-length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        answering.url = f"http://127.0.0.1:{http.server_port}/v1/"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        yield answering
        http.shutdown()
        thread.join()


def proper(texts: list[str]) -> str:
    return json.dumps({"data": [{"index": i, "embedding": [1.0, float(len(text))]} for i, text in enumerate(texts)]})


def embedder(server: Answering, **changes: Any) -> "closing[HttpEmbedder]":
    options: dict[str, Any] = {"url": server.url, "model": "m", "dimension": 2, **changes}
    return closing(HttpEmbedder(HttpEmbedderOptions(**options)))


def failure_of(server: Answering, **changes: Any) -> PrefoldError:
    with embedder(server, **changes) as built, pytest.raises(PrefoldError) as raised:
        built.embed_documents(["text"])
    return raised.value


def test_the_call_is_openais_with_model_input_and_bearer_key(server: Answering) -> None:
    with embedder(server, key=SecretStr("k")) as built:
        built.embed_documents(["a", "b"])
    assert server.requests == [{"path": "/v1/embeddings", "model": "m", "input": ["a", "b"]}]
    assert server.authorizations == ["Bearer k"]


def test_many_texts_go_in_batches_and_come_back_in_order(server: Answering) -> None:
    texts = ["x" * length for length in range(1, 8)]
    with embedder(server, max_batch=3) as built:
        rows = built.embed_documents(texts)
    assert [len(request["input"]) for request in server.requests] == [3, 3, 1]
    assert rows[:, 1] / rows[:, 0] == pytest.approx(range(1, 8))


def test_queries_and_documents_get_their_own_prefix(server: Answering) -> None:
    with embedder(server, query_prefix="query: ", document_prefix="passage: ") as built:
        built.embed_query("q")
        built.embed_documents(["d"])
    assert [request["input"] for request in server.requests] == [["query: q"], ["passage: d"]]


def test_an_empty_text_is_never_sent_and_a_huge_one_is_cut(server: Answering) -> None:
    with embedder(server, max_text_chars=5) as built:
        built.embed_documents(["", "  ", "1234567"])
    assert server.requests[0]["input"] == [".", ".", "12345"]


def test_the_dimension_is_asked_for_once_when_it_is_not_configured(server: Answering) -> None:
    with embedder(server, dimension=None) as built:
        assert built.dimension == 2
        built.embed_query("q")
    assert len(server.requests) == 2


def test_vectors_without_a_direction_become_the_even_one(server: Answering) -> None:
    server.body = json.dumps(
        {"data": [{"index": 0, "embedding": [0, 0]}, {"index": 1, "embedding": [float("nan"), 1]}]}
    )
    with embedder(server) as built:
        rows = built.embed_documents(["a", "b"])
    assert rows == pytest.approx(np.full((2, 2), 0.5**0.5))


def test_another_dimension_than_configured_is_never_returned(server: Answering) -> None:
    assert isinstance(failure_of(server, dimension=3), ConfigurationError)


@pytest.mark.parametrize(
    "body",
    [
        "not json",
        "[]",
        "{}",
        '{"data": []}',
        '{"data": [{"index": 0}]}',
        '{"data": [{"index": 1, "embedding": [1, 2]}]}',
        '{"data": [{"index": 0, "embedding": "AAAA"}]}',
        '{"data": [{"index": 0, "embedding": [1, "x"]}]}',
        '{"data": [{"index": 0, "embedding": []}]}',
        '{"data": [{"index": 0, "embedding": null}]}',
    ],
)
def test_an_answer_that_cannot_be_read_is_worth_a_retry(server: Answering, body: str) -> None:
    server.body = body
    error = failure_of(server)
    assert isinstance(error, UnavailableError)
    assert error.code == "embedder_bad_answer"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidInputError),
        (422, InvalidInputError),
        (401, ConfigurationError),
        (403, ConfigurationError),
        (404, ConfigurationError),
        (307, ConfigurationError),
        (408, UnavailableError),
        (429, OverloadedError),
        (500, UnavailableError),
        (503, UnavailableError),
    ],
)
def test_a_refusal_tells_whether_a_retry_helps(server: Answering, status: int, kind: type[PrefoldError]) -> None:
    server.status = status
    assert type(failure_of(server)) is kind
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [("7", 7, 7), ("0", 0, 0), ("in an hour", 3500, 3601)],
    ids=["seconds", "at once", "a date"],
)
def test_when_to_come_back_is_carried_along(server: Answering, value: str, low: int, high: int) -> None:
    if value == "in an hour":
        value = format_datetime(datetime.now(UTC) + timedelta(hours=1))
    server.status, server.headers = 429, {"retry-after": value}
    error = failure_of(server)
    assert isinstance(error, OverloadedError)
    assert error.retry_after is not None
    assert low <= error.retry_after.total_seconds() <= high


@pytest.mark.parametrize("value", ["soon", "", "-3", "1.5"])
def test_a_time_that_cannot_be_read_is_unknown(server: Answering, value: str) -> None:
    server.status, server.headers = 503, {"retry-after": value}
    error = failure_of(server)
    assert isinstance(error, UnavailableError)
    assert error.retry_after is None


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        options = HttpEmbedderOptions(url=url, model="m", dimension=2)
        with closing(HttpEmbedder(options)) as built, pytest.raises(UnavailableError):
            built.embed_query("q")
        with pytest.raises(UnavailableError):
            HttpEmbedder(HttpEmbedderOptions(url=url, model="m"))


def test_a_server_that_hangs_is_given_up_after_the_timeout() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        options = HttpEmbedderOptions(url=url, model="m", dimension=2, timeout=timedelta(seconds=0.1))
        with closing(HttpEmbedder(options)) as built, pytest.raises(UnavailableError):
            built.embed_query("q")


def test_the_key_is_not_shown() -> None:
    options = HttpEmbedderOptions(url="http://127.0.0.1:1", model="m", dimension=2, key=SecretStr("hush"))
    assert "hush" not in repr(options)
