"""Whatever a body holds, the store answers it as done or as refused, never by a failure of its own."""

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from prefold.vectorstore.app import create_app
from prefold.vectorstore.store import opened_store

Post = Callable[[str, str, Any], httpx.Response]

LAYOUT = {"vectors": {"dense": {"size": 2, "distance": "Cosine"}}, "sparse_vectors": {"words": {"modifier": "idf"}}}

scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=5)
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
ids = st.one_of(st.integers(0, 9), st.uuids().map(str), anything)
dense = st.lists(st.floats(-1e39, 1e39) | st.integers(-3, 3), min_size=2, max_size=2) | anything
sparse = st.fixed_dictionaries(
    {
        "indices": st.lists(st.integers(0, 2**32 - 1), max_size=3) | anything,
        "values": st.lists(st.floats(-9, 9), max_size=3),
    }
)
vectors = st.dictionaries(st.sampled_from(["dense", "words", "other"]), dense | sparse, max_size=2) | anything
points = st.fixed_dictionaries(
    {"id": ids, "vector": vectors}, optional={"payload": anything | st.dictionaries(st.text(), anything)}
)
matches = st.dictionaries(
    st.sampled_from(["value", "any", "except", "text"]), anything | st.lists(st.text(), max_size=2), max_size=1
)
conditions = st.recursive(
    st.fixed_dictionaries({"key": st.text(max_size=5)}, optional={"match": matches, "range": anything})
    | st.fixed_dictionaries({"has_id": st.lists(ids, max_size=2)})
    | st.fixed_dictionaries({"key": st.just("a"), "range": st.dictionaries(st.sampled_from(["gt", "lte"]), scalars)})
    | anything,
    lambda inner: st.dictionaries(
        st.sampled_from(["must", "should", "must_not"]), inner | st.lists(inner, max_size=2), max_size=2
    ),
    max_leaves=4,
)
filters = st.dictionaries(
    st.sampled_from(["must", "should", "must_not"]), st.lists(conditions, max_size=2) | anything, max_size=2
)
leaf = st.fixed_dictionaries(
    {},
    optional={
        "query": dense | sparse | anything,
        "using": st.sampled_from(["dense", "words", "other"]) | anything,
        "filter": filters,
        "limit": st.integers(-1, 20) | anything,
        "params": st.fixed_dictionaries({"idf": st.fixed_dictionaries({"corpus": filters}) | anything}) | anything,
        "score_threshold": anything,
    },
)
fusions = (
    st.sampled_from([{"fusion": "rrf"}, {"fusion": "dbsf"}, {"rrf": {"k": 3, "weights": [1, 2]}}, {"rrf": {}}])
    | anything
)
queries = leaf | st.builds(
    lambda base, prefetch, query: {**base, "prefetch": prefetch, "query": query},
    leaf,
    st.lists(leaf, max_size=2) | leaf,
    fusions | dense,
)


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """A failure is in the answer; its traceback in the log would only slow the search for the smallest body."""
    with capture_logs():
        yield


@pytest.fixture(scope="module")
def post() -> Iterator[Post]:
    """Calls the application in this process, on a store with a few points."""
    with asyncio.Runner() as runner, tempfile.TemporaryDirectory() as folder:
        stack = AsyncExitStack()

        async def start() -> httpx.AsyncClient:
            store = await stack.enter_async_context(opened_store(Path(folder)))
            app = create_app(store, max_body_bytes=1_000_000, api_key=None)
            transport = httpx.ASGITransport(app, raise_app_exceptions=True)
            return await stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url="http://localhost"))

        client = runner.run(start())

        def call(method: str, path: str, body: Any) -> httpx.Response:
            content = orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS)
            return runner.run(client.request(method, path, content=content))

        call("PUT", "/collections/c", LAYOUT)
        good = [{"id": n, "vector": {"dense": [1, n], "words": {"indices": [n], "values": [1]}}} for n in range(5)]
        assert call("PUT", "/collections/c/points", {"points": good}).status_code == 200
        yield call
        runner.run(stack.aclose())


def is_answer(response: httpx.Response) -> bool:
    body = response.json()
    if response.status_code == 200:
        return bool(body["status"] == "ok")
    return response.status_code in (400, 404) and isinstance(body["status"]["error"], str)


fuzz = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@fuzz
@given(st.fixed_dictionaries({"points": st.lists(points, max_size=3)}) | anything)
def test_an_upsert_is_done_or_refused(post: Post, body: Any) -> None:
    response = post("PUT", "/collections/c/points", body)
    assert is_answer(response), response.text


@fuzz
@given(queries | anything)
def test_a_search_is_answered_or_refused(post: Post, body: Any) -> None:
    response = post("POST", "/collections/c/points/query", body)
    assert is_answer(response), response.text


@fuzz
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "filter": filters,
            "limit": scalars,
            "offset": ids,
            "with_payload": anything,
            "with_vector": anything,
        },
    )
)
def test_a_page_is_answered_or_refused(post: Post, body: Any) -> None:
    for path in ("scroll", "count"):
        response = post("POST", f"/collections/c/points/{path}", body)
        assert is_answer(response), response.text


@fuzz
@given(anything | st.fixed_dictionaries({"vectors": st.dictionaries(st.text(max_size=3), anything, max_size=2)}))
def test_a_layout_is_made_or_refused(post: Post, body: Any) -> None:
    response = post("PUT", "/collections/d", body)
    assert is_answer(response), response.text
    post("DELETE", "/collections/d", {})
