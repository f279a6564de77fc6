"""Searches over the wire: whichever way one comes, it is answered the same, refused the same and counted."""

import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from prefold.stack.places import free_port
from tests.support import vectors as support
from tests.support.vectors import RunningVectors, running_vectors

LIMIT_BYTES = 200_000
POINTS = 80
SEARCH = {"query": [1, 0, 0, 1], "using": "dense", "limit": 5, "with_payload": True}
WORDS = {"query": {"indices": [3], "values": [1.0]}, "using": "words", "limit": 2}


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVectors]:
    layout = {
        "vectors": {"dense": {"size": 4, "distance": "Cosine"}},
        "sparse_vectors": {"words": {"modifier": "idf"}},
    }
    points = [
        {
            "id": number,
            "vector": {"dense": [1, number, 0, 1], "words": {"indices": [number % 7], "values": [1.0 + number]}},
            "payload": {"number": number},
        }
        for number in range(POINTS)
    ]
    flags = ("--vectors-max-body-bytes", str(LIMIT_BYTES))
    with running_vectors(tmp_path_factory.mktemp("vectors"), *flags) as running:
        with httpx.Client(base_url=running.url) as client:
            assert client.put("/collections/c", json=layout).status_code == 200
            assert client.put("/collections/c/points", json={"points": points}).status_code == 200
        yield running


@pytest.fixture
def http(vectors: RunningVectors) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=vectors.url, timeout=10) as client:
        yield client


@pytest.fixture
def raw(vectors: RunningVectors) -> Iterator[socket.socket]:
    with connected(vectors.url) as connection:
        yield connection


def connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    assert parts.hostname is not None and parts.port is not None
    return socket.create_connection((parts.hostname, parts.port), timeout=10)


def request(body: bytes, *headers: str, path: str = "/collections/c/points/query") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: localhost", f"content-length: {len(body)}", *headers]
    return "\r\n".join((*lines, "", "")).encode() + body


def answer_of(connection: socket.socket, received: bytes = b"") -> tuple[int, Any, bytes]:
    """Status and result of the next answer, and what came behind it."""
    while b"\r\n\r\n" not in received:
        received += (piece := connection.recv(65_536))
        assert piece, "the store hung up"
    head, _, rest = received.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    while len(rest) < length:
        rest += (piece := connection.recv(65_536))
        assert piece, "the store hung up"
    return int(head[9:12]), json.loads(rest[:length]).get("result"), rest[length:]


def in_chunks(body: bytes) -> Iterator[bytes]:
    yield body[:7]
    yield body[7:]


@pytest.mark.parametrize("search", [SEARCH, WORDS], ids=["dense", "words"])
def test_a_search_is_answered_the_same_whichever_way_it_comes(http: httpx.Client, search: dict[str, Any]) -> None:
    expected = http.post("/collections/c/points/query", json=search).json()["result"]
    body = json.dumps(search).encode()
    others = [
        http.post("/collections/c/points/query", content=in_chunks(body)),
        http.post("/collections/c/points/query?timeout=5", content=body),
        http.post("/collections/%63/points/query", content=body),
        http.post("/collections/c/points/query", content=body, headers={"connection": "close"}),
    ]
    batch = http.post("/collections/c/points/query/batch", json={"searches": [search, search]}).json()["result"]
    assert len(expected["points"]) == search["limit"]
    assert [other.json()["result"] for other in others] == [expected] * len(others)
    assert batch == [expected, expected]


@pytest.mark.parametrize("searches", [0, 1, 64, 65, 256])
def test_a_batch_of_any_size_answers_each_search_in_order(http: httpx.Client, searches: int) -> None:
    asked = [{**SEARCH, "offset": number % POINTS} for number in range(searches)]
    found = http.post("/collections/c/points/query/batch", json={"searches": asked}).json()["result"]
    alone = [http.post("/collections/c/points/query", json=search).json()["result"] for search in asked[:3]]
    assert len(found) == searches
    assert found[:3] == alone
    firsts = [one["points"][0]["id"] for one in found if one["points"]]
    assert len(set(firsts)) == min(searches, POINTS)


def test_a_batch_of_too_many_searches_is_refused(http: httpx.Client) -> None:
    assert http.post("/collections/c/points/query/batch", json={"searches": [SEARCH] * 257}).status_code == 400


def test_a_search_that_comes_in_pieces_is_answered(raw: socket.socket) -> None:
    whole = request(json.dumps(SEARCH).encode())
    for start in range(0, len(whole), 40):
        raw.sendall(whole[start : start + 40])
    status, result, rest = answer_of(raw)
    assert (status, len(result["points"]), rest) == (200, 5, b"")


def test_calls_of_all_kinds_in_one_pipeline_are_answered_in_order(raw: socket.socket) -> None:
    counting = request(b"{}", path="/collections/c/points/count")
    limits = [json.dumps({**SEARCH, "limit": limit}).encode() for limit in (1, 2, 3)]
    raw.sendall(request(limits[0]) + counting + request(limits[1]) + request(b"{", "x-a: b") + request(limits[2]))
    answers, rest = [], b""
    for _ in range(5):
        status, result, rest = answer_of(raw, rest)
        answers.append((status, result and len(result.get("points", ()))))
    assert answers == [(200, 1), (200, 0), (200, 2), (400, None), (200, 3)]


def test_a_connection_is_closed_after_the_answer_where_the_caller_says_so(raw: socket.socket) -> None:
    raw.sendall(request(json.dumps(SEARCH).encode(), "connection: close"))
    assert answer_of(raw)[0] == 200
    assert raw.recv(1) == b""


def test_head_and_body_of_an_answer_come_in_one_piece(raw: socket.socket) -> None:
    for call in (request(b"{}", path="/collections/c/points/count"), request(json.dumps(SEARCH).encode())) * 10:
        raw.sendall(call)
        assert raw.recv(65_536).endswith(b"}")


def test_an_answer_without_a_body_comes_too(http: httpx.Client) -> None:
    assert http.head("/healthz").status_code == 200


@pytest.mark.parametrize("headers", [{"origin": "http://127.0.0.1:8000"}, {"host": "evil.example"}, {"host": ""}])
@pytest.mark.parametrize("path", ["/collections/c/points/query", "/collections/c/points/query/batch"])
def test_a_web_page_cannot_search(http: httpx.Client, path: str, headers: dict[str, str]) -> None:
    body = SEARCH if path.endswith("query") else {"searches": [SEARCH]}
    assert http.post(path, json=body).status_code == 200
    assert http.post(path, json=body, headers=headers).status_code == 403


def test_a_search_that_is_compressed_or_too_large_is_refused(http: httpx.Client) -> None:
    compressed = http.post("/collections/c/points/query", content=b"x", headers={"content-encoding": "gzip"})
    large = http.post("/collections/c/points/query", content=b" " * (LIMIT_BYTES + 1))
    assert (compressed.status_code, large.status_code) == (415, 413)


def test_a_search_needs_the_key_and_is_counted(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**support.python_environment(), "PREFOLD_QDRANT_API_KEY": "sesame"}
    monkeypatch.setattr(support, "python_environment", lambda: environment)
    probe, path = free_port("127.0.0.1"), "/collections/none/points/query"
    folder = tmp_path_factory.mktemp("keyed")
    with (
        running_vectors(folder, "--probe-port", str(probe)) as running,
        httpx.Client(base_url=running.url) as client,
    ):
        refused = [client.post(path, json=SEARCH, headers=h).status_code for h in ({}, {"api-key": "no"})]
        let_in = [
            client.post(path, json=SEARCH, headers=headers).status_code
            for headers in ({"api-key": "sesame"}, {"authorization": "Bearer sesame"})
        ]
        metrics = httpx.get(f"http://127.0.0.1:{probe}/metrics", timeout=10).text
    assert (refused, let_in) == ([401, 401], [404, 404])
    assert 'prefold_vectors_request_seconds_count{call="query"} 4.0' in metrics
