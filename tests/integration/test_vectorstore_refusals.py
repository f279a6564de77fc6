"""What the vector store refuses, with Qdrant's status codes and error body, and that nothing is stored by it."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support import vectors as support
from tests.support.vectors import RunningVectors, running_vectors

LIMIT_BYTES = 200_000
SIZE = 4


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path_factory.mktemp("vectors"), "--vectors-max-body-bytes", str(LIMIT_BYTES)) as running:
        yield running


@pytest.fixture(scope="module")
def connection(vectors: RunningVectors) -> Iterator[httpx.Client]:
    layout = {
        "vectors": {"dense": {"size": SIZE, "distance": "Cosine"}},
        "sparse_vectors": {"words": {"modifier": "idf"}},
    }
    with httpx.Client(base_url=vectors.url, timeout=10) as client:
        assert client.put("/collections/c", json=layout).status_code == 200
        yield client


@pytest.fixture
def http(connection: httpx.Client) -> httpx.Client:
    """A client of a store with the empty collection ``c``."""
    assert connection.post("/collections/c/points/delete", json={"filter": {}}).status_code == 200
    return connection


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


def one(**changes: Any) -> dict[str, Any]:
    return {"points": [{"id": 1, "vector": {"dense": [1, 0, 0, 0]}, "payload": {"a": 1}, **changes}]}


def dense(*values: float) -> dict[str, Any]:
    return one(vector={"dense": list(values)})


def words(indices: list[Any], values: list[Any]) -> dict[str, Any]:
    return one(vector={"words": {"indices": indices, "values": values}})


BAD_POINTS = {
    "too few dimensions": dense(1, 0, 0),
    "too many dimensions": dense(1, 0, 0, 0, 0),
    "zeros": dense(0, 0, 0, 0),
    "too small for 32 bits": dense(1e-30, 0, 0, 0),
    "too long for 32 bits": dense(1e38, 1e38, 0, 0),
    "infinite in 32 bits": dense(1e39, 0, 0, 0),
    "strings for numbers": one(vector={"dense": ["1", "0", "0", "0"]}),
    "nulls for numbers": one(vector={"dense": [None, 0, 0, 0]}),
    "vectors in a vector": one(vector={"dense": [[1, 0, 0, 0]]}),
    "ragged": one(vector={"dense": [[1], 0, 0, 0]}),
    "unknown vector": one(vector={"other": [1, 0, 0, 0]}),
    "unnamed vector": one(vector=[1, 0, 0, 0]),
    "sparse in the dense vector": one(vector={"dense": {"indices": [1], "values": [1]}}),
    "dense in the sparse vector": one(vector={"words": [1, 0, 0, 0]}),
    "an index twice": words([1, 1], [1, 2]),
    "an index below zero": words([-1], [1]),
    "an index over 32 bits": words([2**32], [1]),
    "more values than indices": words([1], [1, 2]),
    "a sparse value that is no number": words([1], ["x"]),
    "a negative id": one(id=-1),
    "an id over 64 bits": one(id=2**64),
    "an id that is no UUID": one(id="hello"),
    "a fractional id": one(id=1.5),
    "a boolean id": one(id=True),
    "no id": {"points": [{"vector": {"dense": [1, 0, 0, 0]}}]},
    "a payload that is no object": one(payload=[1]),
    "a payload nested too deep": one(payload=nested(200)),
    "a member that nobody knows": one(vectors={"dense": [1, 0, 0, 0]}),
    "points that are no list": {"points": {"id": 1}},
    "a body that is no object": [],
    "columns of different length": {"batch": {"ids": [1, 2], "vectors": {"dense": [[1, 0, 0, 0]]}}},
}


@pytest.mark.parametrize("name", BAD_POINTS)
def test_a_bad_point_is_refused_and_its_good_neighbours_are_not_stored(http: httpx.Client, name: str) -> None:
    body = BAD_POINTS[name]
    if isinstance(body, dict) and isinstance(body.get("points"), list):
        good = [{"id": number, "vector": {"dense": [1, 1, 0, 0]}} for number in (8, 9)]
        body = {"points": [good[0], *body["points"], good[1]]}
    answer = http.put("/collections/c/points", json=body)
    assert answer.status_code == 400
    assert answer.json()["status"]["error"]
    assert http.post("/collections/c/points/count", json={}).json()["result"] == {"count": 0}


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "1e999", '"\\ud800"', "{", '{"a":' * 2000])
def test_what_is_not_json_is_refused(http: httpx.Client, literal: str) -> None:
    content = f'{{"points":[{{"id":1,"vector":{{"dense":[1,0,0,{literal}]}}}}]}}'
    assert http.put("/collections/c/points", content=content).status_code == 400


BAD_QUERIES = {
    "wrong dimension": {"query": [1.0], "using": "dense"},
    "zeros": {"query": [0, 0, 0, 0], "using": "dense"},
    "unknown vector": {"query": [1, 0, 0, 0], "using": "other"},
    "no vector name": {"query": [1, 0, 0, 0]},
    "sparse against dense": {"query": {"indices": [1], "values": [1]}, "using": "dense"},
    "dense against sparse": {"query": [1, 0, 0, 0], "using": "words"},
    "by the id of a point": {"query": 1, "using": "dense"},
    "fusion of nothing": {"query": {"fusion": "rrf"}},
    "unknown fusion": {"query": {"fusion": "sum"}, "prefetch": [{"query": [1, 0, 0, 0], "using": "dense"}]},
    "a formula": {"query": {"formula": {"sum": []}}, "prefetch": [{"query": [1, 0, 0, 0], "using": "dense"}]},
    "a limit of zero": {"query": [1, 0, 0, 0], "using": "dense", "limit": 0},
    "an enormous limit": {"query": [1, 0, 0, 0], "using": "dense", "limit": 10**9},
    "a misspelt filter": {"query": [1, 0, 0, 0], "using": "dense", "filters": {"must": []}},
    "a misspelt condition": {"query": [1, 0, 0, 0], "using": "dense", "filter": {"musst": []}},
    "a condition without a test": {"query": [1, 0, 0, 0], "using": "dense", "filter": {"must": [{"key": "a"}]}},
    "a condition of mixed values": {
        "query": [1, 0, 0, 0],
        "using": "dense",
        "filter": {"must": [{"key": "a", "match": {"any": [1, "x"]}}]},
    },
    "a geo condition": {
        "query": [1, 0, 0, 0],
        "using": "dense",
        "filter": {"must": [{"key": "a", "geo_radius": {"center": {"lon": 1, "lat": 1}, "radius": 1}}]},
    },
    "a date that is none": {
        "query": [1, 0, 0, 0],
        "using": "dense",
        "filter": {"must": [{"key": "a", "range": {"gt": "yesterday"}}]},
    },
    "prefetches nested too deep": {
        "prefetch": {"prefetch": {"prefetch": {"prefetch": {"prefetch": {"limit": 1}}}}},
        "query": {"fusion": "rrf"},
    },
}


@pytest.mark.parametrize("name", BAD_QUERIES)
def test_a_bad_search_is_refused_alone_and_in_a_batch(http: httpx.Client, name: str) -> None:
    alone = http.post("/collections/c/points/query", json=BAD_QUERIES[name])
    batch = http.post("/collections/c/points/query/batch", json={"searches": [BAD_QUERIES[name]]})
    assert (alone.status_code, batch.status_code) == (400, 400)
    assert "error" in alone.json()["status"]


def test_a_filter_nested_too_deep_is_refused(http: httpx.Client) -> None:
    chosen: dict[str, Any] = {"must": []}
    for _ in range(100):
        chosen = {"must": [chosen]}
    assert http.post("/collections/c/points/count", json={"filter": chosen}).status_code == 400


@pytest.mark.parametrize("body", [{}, {"points": [1], "filter": {}}, {"points": None}, {"points": 1}])
def test_a_delete_that_does_not_say_what_is_refused(http: httpx.Client, body: dict[str, Any]) -> None:
    http.put("/collections/c/points", json=one())
    assert http.post("/collections/c/points/delete", json=body).status_code == 400
    assert http.post("/collections/c/points/count", json={}).json()["result"] == {"count": 1}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/collections/none", None),
        ("PUT", "/collections/none/points", one()),
        ("POST", "/collections/none/points", {"ids": [1]}),
        ("POST", "/collections/none/points/query", {}),
        ("POST", "/collections/none/points/delete", {"points": [1]}),
        ("POST", "/collections/c/points/payload", {"payload": {"a": 1}, "points": [999]}),
        ("GET", "/collections/c/points/1/vectors", None),
        ("GET", "/telemetry", None),
    ],
)
def test_what_is_not_there_answers_404(http: httpx.Client, method: str, path: str, body: Any) -> None:
    answer = http.request(method, path, json=body)
    assert answer.status_code == 404
    assert answer.json()["status"]["error"]


def test_an_unknown_collection_is_named_in_qdrants_words(http: httpx.Client) -> None:
    error = http.get("/collections/none").json()["status"]["error"]
    assert error == "Not found: Collection `none` doesn't exist!"


def test_a_second_collection_of_a_name_is_a_conflict(http: httpx.Client) -> None:
    body = {"vectors": {"dense": {"size": 9, "distance": "Cosine"}}}
    assert http.put("/collections/c", json=body).status_code == 409
    assert http.get("/collections/c").json()["result"]["config"]["params"]["vectors"]["dense"]["size"] == SIZE


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"vectors": {"dense": {"size": 0, "distance": "Cosine"}}},
        {"vectors": {"dense": {"size": 4, "distance": "Near"}}},
        {"vectors": {"dense": {"size": 4, "distance": "Cosine", "datatype": "uint8"}}},
        {"vectors": {"dense": {"size": 4, "distance": "Cosine", "multivector_config": {"comparator": "max_sim"}}}},
        {"vectors": {"": {"size": 4, "distance": "Cosine"}}},
        {"vectors": {"a": {"size": 4, "distance": "Cosine"}}, "sparse_vectors": {"a": {}}},
        {"vectors": {"a": {"size": 4, "distance": "Cosine"}}, "quantization_config": {"scalar": {"type": "int8"}}},
    ],
)
def test_a_layout_that_we_cannot_keep_is_refused(http: httpx.Client, body: dict[str, Any]) -> None:
    assert http.put("/collections/other", json=body).status_code == 400
    assert http.get("/collections/other/exists").json()["result"] == {"exists": False}


@pytest.mark.parametrize("name", ["a%2Fb", "..%2F..%2Fetc", "a%3Ab", "x" * 300])
def test_a_name_that_is_no_name_is_refused(http: httpx.Client, name: str) -> None:
    body = {"vectors": {"dense": {"size": 4, "distance": "Cosine"}}}
    assert http.put(f"/collections/{name}", json=body).status_code in (400, 404, 405)


def test_a_body_over_the_limit_is_refused_whether_its_length_is_told_or_not(http: httpx.Client) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(30):
            yield b" " * 10_000

    told = http.put("/collections/c/points", content=b" " * (LIMIT_BYTES + 1))
    untold = http.put("/collections/c/points", content=parts())
    assert (told.status_code, untold.status_code) == (413, 413)


def test_a_compressed_body_is_refused(http: httpx.Client) -> None:
    answer = http.put("/collections/c/points", content=b"x", headers={"content-encoding": "gzip"})
    assert answer.status_code == 415


@pytest.mark.parametrize("headers", [{"origin": "http://127.0.0.1:8000"}, {"host": "evil.example"}, {"host": ""}])
def test_a_web_page_is_not_let_in(http: httpx.Client, headers: dict[str, str]) -> None:
    assert http.get("/collections", headers=headers).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:6333"])
def test_this_machine_is_let_in_by_any_of_its_names(http: httpx.Client, host: str) -> None:
    assert http.get("/collections", headers={"host": host}).status_code == 200


def test_with_a_key_configured_only_health_is_open(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("keyed")
    environment = {**support.python_environment(), "PREFOLD_QDRANT_API_KEY": "sesame"}
    monkeypatch.setattr(support, "python_environment", lambda: environment)
    with running_vectors(folder) as running, httpx.Client(base_url=running.url) as client:
        open_paths = [client.get(path).status_code for path in ("/healthz", "/readyz", "/livez")]
        refused = [client.get("/collections", headers=h).status_code for h in ({}, {"api-key": "no"}, {"api-key": ""})]
        let_in = [
            client.get("/collections", headers=headers).status_code
            for headers in ({"api-key": "sesame"}, {"authorization": "Bearer sesame"})
        ]
    assert (open_paths, refused, let_in) == ([200] * 3, [401] * 3, [200] * 2)


def test_a_large_upsert_lets_other_calls_in_between(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The loop gets its turn between two chunks, so a search does not wait for the whole upsert."""
    with running_vectors(tmp_path_factory.mktemp("busy")) as running, httpx.Client(base_url=running.url) as client:
        client.put("/collections/c", json={"vectors": {"dense": {"size": SIZE, "distance": "Cosine"}}})
        points = [{"id": number, "vector": {"dense": [1, number, 0, 1]}} for number in range(20_000)]
        content = json.dumps({"points": points}).encode()
        seen: list[int] = []
        with httpx.Client(base_url=running.url) as watcher:
            upsert = threading.Thread(target=client.put, args=("/collections/c/points",), kwargs={"content": content})
            upsert.start()
            while upsert.is_alive():
                seen.append(watcher.post("/collections/c/points/count", json={}).json()["result"]["count"])
            upsert.join()
    assert any(0 < count < 20_000 for count in seen)
