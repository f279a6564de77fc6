"""Bad input: a problem document that names the place, in bounded time, and nothing stored."""

import gzip
import json
import time
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from tests.support.gateway import Served, served_gateway

JSON = {"content-type": "application/json"}
TURNS = "/v1/sessions/s1/turns"


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as served:
        yield served


async def everything_stored(redis: Redis) -> dict[bytes, bytes | None]:
    return {key: await redis.dump(key) async for key in redis.scan_iter()}


def turn(**members: object) -> bytes:
    return json.dumps({"role": "user", "content": "hi", **members}).encode()


BODIES = {
    "no json": (b"hello", 400, "body"),
    "empty": (b"", 400, "body"),
    "cut off": (b'{"role":"user","content":"h', 400, "body"),
    "two values": (b'{"role":"user","content":"hi"}{}', 400, "body"),
    "not utf-8": (b'{"role":"user","content":"\xff"}', 400, "body"),
    "a list": (b'[{"role":"user","content":"hi"}]', 400, "body"),
    "null": (b"null", 400, "body"),
    "nan": (b'{"role":"user","content":"hi","ts":NaN}', 400, "body"),
    "infinity": (b'{"role":"user","content":"hi","ts":-Infinity}', 400, "body"),
    "beyond a double": (b'{"role":"user","content":"hi","ts":1e400}', 400, "body"),
    "duplicate key": (b'{"role":"user","role":"assistant","content":"hi"}', 400, "role"),
    "duplicate key deep inside": (turn(metadata={})[:-3] + b'{"a":1,"a":2}}', 400, "a"),
    "1,000 levels": (b'{"role":"user","content":' + b"[" * 1000 + b"]" * 1000 + b"}", 400, "body"),
    "100,000 levels": (b'{"role":"user","content":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "body"),
    "5,000 digits": (b'{"role":"user","content":"hi","ts":' + b"9" * 5000 + b"}", 400, "body"),
    "no role": (b'{"content":"hi"}', 422, "role"),
    "unknown role": (turn(role="robot"), 422, "role"),
    "role of a wrong type": (turn(role=7), 422, "role"),
    "role as a list": (turn(role=["user"]), 422, "role"),
    "no content": (b'{"role":"user"}', 422, "content"),
    "content null": (turn(content=None), 422, "content"),
    "content a number": (turn(content=7), 422, "content"),
    "content an object": (turn(content={"type": "text", "text": "hi"}), 422, "content"),
    "empty content": (turn(content=""), 422, "content"),
    "blank content": (turn(content=" \n\t"), 422, "content"),
    "no blocks": (turn(content=[]), 422, "content"),
    "a block of a wrong type": (turn(content=["hi"]), 422, "content[0]"),
    "an unknown block": (turn(content=[{"type": "video"}]), 422, "content[0].type"),
    "text of a wrong type": (turn(content=[{"type": "text", "text": 7}]), 422, "content[0].text"),
    "an unknown member": (turn(colour="red"), 422, "colour"),
    "id of a wrong type": (turn(id=7), 422, "id"),
    "empty id": (turn(id=""), 422, "id"),
    "id with a line end": (turn(id="a\nb"), 422, "id"),
    "id of 10 KB": (turn(id="x" * 10_240), 422, "id"),
    "invisible id": (turn(id="\u200b"), 422, "id"),
    "usage of a wrong type": (turn(usage=[]), 422, "usage"),
    "negative usage": (turn(role="assistant", usage={"input_tokens": -1}), 422, "usage.input_tokens"),
    "ts of a wrong type": (turn(ts={}), 422, "ts"),
    "a result without its call's id": (turn(role="tool"), 422, "tool_call_id"),
    "a call of the user": (
        turn(content=[{"type": "tool_use", "id": "a", "name": "f", "input": {}}]),
        422,
        "content[0].type",
    ),
    "turns no list": (b'{"turns":{}}', 422, "turns"),
    "turns empty": (b'{"turns":[]}', 422, "turns"),
    "turns of a wrong type": (b'{"turns":["hi"]}', 422, "turns[0]"),
    "turns and more": (b'{"turns":[{"role":"user","content":"hi"}],"role":"user"}', 422, "role"),
    "the second of two": (
        b'{"turns":[{"role":"user","content":"hi"},{"role":"user","content":[{"type":"text"}]}]}',
        422,
        "turns[1].content[0].text",
    ),
    "a huge turn": (turn(content="x" * 1_100_000), 413, "body"),
    "a huge turn among others": (
        b'{"turns":[' + turn() + b"," + turn(content="x" * 1_100_000) + b"]}",
        413,
        "turns[1]",
    ),
    "a huge body": (b'{"turns":[' + b",".join([turn(content="x" * 600_000)] * 8) + b"]}", 413, None),
    "too many turns": (b'{"turns":[' + b",".join([turn()] * 101) + b"]}", 413, "turns"),
}


@pytest.mark.parametrize("name", BODIES)
async def test_a_bad_turn_is_refused_with_its_place_and_nothing_is_stored(
    served: Served, redis: Redis, name: str
) -> None:
    body, status, field = BODIES[name]
    before = await everything_stored(redis)
    started = time.monotonic()
    answer = await served.client.post(TURNS, content=body, headers=JSON)
    assert time.monotonic() - started < 2
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (answer.status_code, problem["status"], problem.get("field")) == (status, status, field), problem
    assert {"type", "title", "status", "detail", "code"} <= problem.keys()
    assert await everything_stored(redis) == before


NAMES = {
    "a colon": "a%3Ab",
    "braces": "%7Ba%7D",
    "a star": "a*",
    "a space": "a%20b",
    "a slash": "a%2Fturns",
    "a dot-dot": "..",
    "a line end": "a%0Ab",
    "nul": "a%00",
    "look-alike unicode": "%D0%B0bc",
    "broken utf-8": "%FF",
    "10 KB": "a" * 10_240,
    "a leading dash": "-a",
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("call", ["append", "log", "context", "put", "get"])
async def test_a_session_name_that_could_mean_something_else_is_refused(
    served: Served, redis: Redis, name: str, call: str
) -> None:
    path = f"/v1/sessions/{NAMES[name]}"
    if name == "a dot-dot":  # clients resolve it; a raw one reaches us all the same
        path = "/v1/sessions/%2E%2E"
    method, url = {
        "append": ("POST", f"{path}/turns"),
        "log": ("GET", f"{path}/turns"),
        "context": ("GET", f"{path}/context"),
        "put": ("PUT", path),
        "get": ("GET", path),
    }[call]
    content = {"append": turn(), "put": b"{}"}.get(call)
    answer = await served.client.request(method, url, content=content, headers=JSON if content else {})
    assert (answer.status_code, answer.json().get("field")) == (422, "session")
    assert await everything_stored(redis) == {}


SESSION_BODIES: dict[str, tuple[object, str]] = {
    "unknown member": ({"limit": 7}, "limit"),
    "limit too small": ({"hard_limit_tokens": 999}, "hard_limit_tokens"),
    "limit of a wrong type": ({"hard_limit_tokens": "many"}, "hard_limit_tokens"),
    "limit a fraction": ({"hard_limit_tokens": 2000.5}, "hard_limit_tokens"),
    "limit true": ({"hard_limit_tokens": True}, "hard_limit_tokens"),
    "ratio above one": ({"soft_ratio": 1.5}, "soft_ratio"),
    "user with a colon": ({"user": "a:b"}, "user"),
    "user of a wrong type": ({"user": 7}, "user"),
    "tools no list": ({"tools": {}}, "tools"),
    "a tool no object": ({"tools": ["f"]}, "tools[0]"),
    "system of a wrong type": ({"system": ["be kind"]}, "system"),
    "metadata no object": ({"metadata": []}, "metadata"),
    "model blank": ({"model": ""}, "model"),
    "a system without end": ({"hard_limit_tokens": 1000, "system": "word " * 2000}, "system"),
}


@pytest.mark.parametrize("name", SESSION_BODIES)
async def test_a_bad_session_is_refused_with_its_place_and_nothing_is_stored(
    served: Served, redis: Redis, name: str
) -> None:
    body, field = SESSION_BODIES[name]
    answer = await served.client.put("/v1/sessions/s1", json=body)
    assert (answer.status_code, answer.json().get("field")) == (422, field), answer.json()
    assert await everything_stored(redis) == {}


async def test_a_body_in_another_encoding_is_refused_before_it_is_unpacked(served: Served, redis: Redis) -> None:
    bomb = gzip.compress(b" " * 50_000_000 + turn())
    answer = await served.client.post(TURNS, content=bomb, headers={**JSON, "content-encoding": "gzip"})
    assert (answer.status_code, answer.json()["field"]) == (415, "content-encoding")
    assert await everything_stored(redis) == {}


@pytest.mark.parametrize(
    "media", ["", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", "*/*"]
)
async def test_a_body_of_another_media_type_is_refused(served: Served, redis: Redis, media: str) -> None:
    headers = {"content-type": media} if media else {}
    answer = await served.client.post(TURNS, content=turn(), headers=headers)
    assert (answer.status_code, answer.json()["field"]) == (415, "content-type")
    assert await everything_stored(redis) == {}


async def test_a_body_that_says_to_be_too_large_is_refused_unread(served: Served) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        raise AssertionError("the body was read")
        yield b""

    headers = {**JSON, "content-length": "5000000000"}
    answer = await served.client.post(TURNS, content=chunks(), headers=headers)
    assert answer.status_code == 413


async def test_lone_surrogates_and_nul_are_replaced_at_the_door(served: Served) -> None:
    body = b'{"id":"a","role":"user","content":"x\\ud800y\\u0000z \\ud83d\\ude00"}'
    answer = await served.client.post(TURNS, content=body, headers=JSON)
    assert answer.status_code == 201
    (stored,) = (await served.client.get(TURNS)).json()["turns"]
    assert stored["content"] == "x�y�z 😀"


async def test_the_text_of_a_special_token_is_text(served: Served) -> None:
    answer = await served.client.post(TURNS, content=turn(content="<|endoftext|> and <|im_start|>"), headers=JSON)
    assert answer.status_code == 201
    assert answer.json()["turns"][0]["tokens"] > 10


QUERIES = {
    "unknown parameter": ("context?colour=red", "colour"),
    "given twice": ("context?format=openai&format=openai", "format"),
    "unknown in the log": ("turns?after=3", "after"),
    "no parameters taken": ("?a=1", "a"),
}


@pytest.mark.parametrize("name", QUERIES)
async def test_a_query_that_cannot_be_meant_is_malformed(served: Served, name: str) -> None:
    path, field = QUERIES[name]
    url = f"/v1/sessions/s1{path}" if path.startswith("?") else f"/v1/sessions/s1/{path}"
    answer = await served.client.get(url)
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (400, "malformed_query", field)


VALUES = {
    "unknown format": ("context?format=xml", "format"),
    "budget no number": ("context?budget_tokens=many", "budget_tokens"),
    "budget too small": ("context?budget_tokens=299", "budget_tokens"),
    "budget negative": ("context?budget_tokens=-5", "budget_tokens"),
    "budget beyond all": ("context?budget_tokens=99999999999999999999", "budget_tokens"),
    "budget in other digits": ("context?budget_tokens=%D9%A3%D9%A0%D9%A0%D9%A0", "budget_tokens"),
    "blank query": ("context?query=%20", "query"),
    "query without end": (f"context?query={'a' * 8001}", "query"),
    "limit above 500": ("turns?limit=501", "limit"),
    "limit zero": ("turns?limit=0", "limit"),
    "after negative": ("turns?after_seq=-1", "after_seq"),
}


@pytest.mark.parametrize("name", VALUES)
async def test_a_query_value_out_of_bounds_is_named(served: Served, name: str) -> None:
    path, field = VALUES[name]
    await served.client.post(TURNS, content=turn(), headers=JSON)
    answer = await served.client.get(f"/v1/sessions/s1/{path}")
    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_a_query_that_is_not_text_is_malformed(served: Served) -> None:
    for query in ("query=%FF", "format"):
        answer = await served.client.get(f"/v1/sessions/s1/context?{query}")
        assert (answer.status_code, answer.json()["code"]) == (400, "malformed_query")


async def test_an_unknown_path_and_an_unknown_method_are_told_apart(served: Served) -> None:
    assert (await served.client.get("/v1/nothing")).json()["code"] == "no_such_path"
    assert (await served.client.get("/v1/sessions//turns")).status_code == 404
    assert (await served.client.get("/v1/sessions/s1/turns/")).status_code in (404, 405)
    answer = await served.client.patch("/v1/sessions/s1/turns")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, POST, HEAD"


async def test_every_answer_bears_an_id_and_takes_over_a_sensible_one(served: Served) -> None:
    ours = [(await served.client.get("/livez")).headers["x-request-id"] for _ in range(2)]
    assert ours[0] != ours[1]
    given = await served.client.get("/v1/nothing", headers={"x-request-id": "req-7"})
    assert given.headers["x-request-id"] == "req-7"
    strange = await served.client.get("/livez", headers={"x-request-id": "a b"})
    assert strange.headers["x-request-id"] != "a b"
