"""What answers of a vector store mean, also those that ours never gives."""

from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from prefold.embedding import CosineScale
from prefold.errors import (
    ConfigurationError,
    OverloadedError,
    PrefoldError,
    RefusedError,
    TooLargeError,
    UnavailableError,
)
from prefold.recall.hybrid import HybridSearch
from prefold.recall.scope import Scope
from prefold.recall.server import VectorServer
from prefold.recall.sparse import query_words
from prefold.recall.text_counts import TextCounts
from prefold.recall.transport import Answer, HttpTransport


class Answering(HttpTransport):
    """Gives one answer to everything and remembers what was asked."""

    def __init__(self, status: int, content: Any) -> None:
        self._given = Answer(status, content if isinstance(content, bytes) else orjson.dumps(content))
        self.asked: list[tuple[str, str]] = []

    async def request(self, method: str, path: str, body: bytes = b"") -> Answer:
        self.asked.append((method, path))
        return self._given


def result(value: Any) -> dict[str, Any]:
    return {"result": value, "status": "ok", "time": 0.0}


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, RefusedError, "vector_store_refused"),
        (401, ConfigurationError, "configuration"),
        (403, ConfigurationError, "configuration"),
        (404, UnavailableError, "collection_missing"),
        (413, TooLargeError, "too_large"),
        (429, OverloadedError, "overloaded"),
        (500, UnavailableError, "unavailable"),
        (503, UnavailableError, "unavailable"),
    ],
)
async def test_a_status_becomes_the_error_that_tells_what_to_do(
    status: int, kind: type[PrefoldError], code: str
) -> None:
    server = VectorServer(Answering(status, {"status": {"error": "because"}, "time": 0.0}))
    with pytest.raises(PrefoldError, match="because") as raised:
        await server.search("c", [])
    assert (type(raised.value), raised.value.code) == (kind, code)


@pytest.mark.parametrize(
    "said",
    [
        {"status": {"error": 'invalid type: string "canary \\"words\\" of a turn", expected a number'}},
        {"status": {"error": f'bad value "{"canary " * 100}'}},
        b'<html>"canary" could not be passed on</html>',
    ],
    ids=["quoted", "cut", "no JSON"],
)
async def test_what_a_server_quotes_is_left_out_for_it_may_be_a_text_of_ours(said: Any) -> None:
    with pytest.raises(RefusedError, match="the vector store answered 400: ") as raised:
        await VectorServer(Answering(400, said)).search("c", [])
    assert "canary" not in raised.value.detail
    assert "…" in raised.value.detail


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"result'])
async def test_an_answer_that_is_not_qdrants_is_unavailable(body: bytes) -> None:
    with pytest.raises(UnavailableError):
        await VectorServer(Answering(200, body)).count("c", {}, exact=True)


async def test_an_error_without_qdrants_body_shows_what_was_said() -> None:
    with pytest.raises(UnavailableError, match="bad gateway"):
        await VectorServer(Answering(502, b"bad gateway")).collections()


async def test_a_write_that_was_only_acknowledged_was_not_done() -> None:
    server = VectorServer(Answering(200, result({"operation_id": 1, "status": "acknowledged"})))
    for write in (server.upsert("c", []), server.delete("c", {}), server.create_index("c", "f", {})):
        with pytest.raises(UnavailableError, match="acknowledged"):
            await write


@pytest.mark.parametrize("status", [400, 409])
async def test_a_collection_that_another_process_made_first_is_fine(status: int) -> None:
    transport = Answering(status, {"status": {"error": "Wrong input: Collection `c` already exists!"}})
    assert await VectorServer(transport).create_collection("c", {}) is False


async def test_a_name_is_quoted_in_the_path() -> None:
    transport = Answering(200, result({"count": 0}))
    await VectorServer(transport).count("a/b?c", {}, exact=True)
    assert transport.asked == [("POST", "/collections/a%2Fb%3Fc/points/count")]


async def test_a_turn_of_another_tenant_is_withheld_and_reported_even_if_the_store_returns_it() -> None:
    def hit(tenant: str, seq: int) -> dict[str, Any]:
        payload = {"tenant": tenant, "session": "s", "incarnation": "i", "user": "u"}
        return {
            "id": f"{tenant}{seq}",
            "score": 2.0,
            "payload": {**payload, "seq": seq, "revision": 0, "role": "user", "ts": None},
            "vector": {"words": {"indices": list(query_words("tea").indices), "values": [1.0]}},
        }

    transport = Answering(200, result([{"points": [hit("acme", 1), hit("evil", 2)]}] * 2))
    search = HybridSearch(VectorServer(transport), "c", CosineScale())
    with capture_logs() as logs:
        hits = await search.run(Scope(tenant="acme"), "tea", None, 10)
    assert [found.ref.tenant for found in hits] == ["acme"]
    assert list(dict.fromkeys(entry["event"] for entry in logs)) == ["foreign_text_withheld"]


async def test_many_texts_are_counted_once_a_minute_and_few_each_time() -> None:
    now = 0.0
    transport = Answering(200, result({"count": 100}))
    counts = TextCounts(VectorServer(transport), "c", clock=lambda: now)
    mine, other = Scope(tenant="acme", user="ann"), Scope(tenant="acme", user="bob")
    assert [await counts.of(scope) for scope in (mine, mine, other)] == [100, 100, 100]
    assert len(transport.asked) == 2
    now = 61.0
    await counts.of(mine)
    assert len(transport.asked) == 3
    few = Answering(200, result({"count": 99}))
    counts = TextCounts(VectorServer(few), "c", clock=lambda: now)
    assert [await counts.of(mine), await counts.of(mine)] == [99, 99]
    assert len(few.asked) == 2
