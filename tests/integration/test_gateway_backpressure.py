"""What is refused before the session store refuses, and what goes on all the same; on a real Redis."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any
from unittest.mock import MagicMock

import orjson
import pytest
from httpx import Response
from redis.asyncio import Redis

from prefold.conversation.accepting import prepare_body
from prefold.errors import UnavailableError
from prefold.gateway.api import operations_of
from prefold.stack.redis_server import session_options
from prefold.storage import Sessions, connect_sessions
from prefold.storage.types import SessionOptions
from prefold.tokens import load_counter
from tests.support.gateway import Served, gateway_settings, served_gateway
from tests.support.redis import RunningRedis, running_redis
from tests.support.storage import begin, summary, turn
from tests.support.waiting import wait_until_async

LOOK_MS = 50
TENANT = "default"
JSON = {"content-type": "application/json"}
FULL = (503, "store_nearly_full", "5")


@pytest.fixture(scope="module")
def server() -> Iterator[RunningRedis]:
    with running_redis(session_options("fast")) as running:
        yield running


@pytest.fixture
async def redis(server: RunningRedis) -> AsyncIterator[Redis]:
    """Its memory is unbounded before and after, and what clients use of it for a moment is little beside what is stored."""
    server.flush()
    async with Redis.from_url(server.url) as client:
        await client.setrange("ballast", 60_000_000, b"x")
        yield client
        await client.config_set("maxmemory", 0)


@pytest.fixture
async def served(server: RunningRedis, redis: Redis) -> AsyncIterator[Served]:
    async with served_gateway(server.url, watched=True, store_check_ms=LOOK_MS) as served:
        yield served


async def use(redis: Redis, percent: float) -> None:
    """Bounds the memory so that what is used now is that part of it."""
    await redis.config_set("maxmemory", int((await redis.info("memory"))["used_memory"] * 100 / percent))


async def publish(served: Served, turn_id: str, text: str = "Where is my parcel?", session: str = "s1") -> Response:
    return await served.client.post(
        f"/v1/sessions/{session}/turns", json={"id": turn_id, "role": "user", "content": text}
    )


def refusal(answer: Response) -> tuple[int, str, str | None]:
    return answer.status_code, answer.json().get("code", ""), answer.headers.get("retry-after")


async def seen(served: Served, is_full: bool) -> None:
    async def as_wanted() -> bool:
        return (refusal(await served.client.put("/v1/sessions/probe", json={})) == FULL) is is_full

    await wait_until_async("the gateway sees how full the store is", as_wanted)


async def test_past_the_high_mark_what_grows_is_refused_and_everything_else_goes_on(
    served: Served, redis: Redis
) -> None:
    for number in range(4):
        assert (await publish(served, f"t{number}")).status_code == 201
    await publish(served, "other", session="s2")
    await use(redis, 95)
    await seen(served, is_full=True)
    client, session = served.client, "/v1/sessions/s1"
    for refused in (
        await publish(served, "more"),
        await publish(served, "t0"),
        await client.put(session, json={"soft_ratio": 0.5}),
        await client.put(f"{session}/turns/t0", json={"role": "user", "content": "corrected"}),
        await client.post(f"{session}/fork", json={"session": "s3"}),
    ):
        assert refusal(refused) == FULL, refused.request.url
    for answered in (
        await client.get(f"{session}/context"),
        await client.get(f"{session}/context?query=parcel"),
        await client.get(f"{session}/turns"),
        await client.get(session),
        await client.post("/v1/search", json={"query": "parcel"}),
        await client.delete(f"{session}/turns/t1"),
        await client.post(f"{session}/rewind", json={"to_seq": 2}),
        await client.delete(session),
        await client.delete("/v1/sessions/s2"),
    ):
        assert answered.status_code == 200, (answered.request.url, answered.text)


async def test_turns_are_taken_again_only_below_the_low_mark(served: Served, redis: Redis) -> None:
    await use(redis, 95)
    await seen(served, is_full=True)
    await use(redis, 87.5)
    await redis.config_resetstat()

    async def has_looked() -> bool:
        stats = await redis.info("commandstats")
        return int(stats.get("cmdstat_config|get", {"calls": 0})["calls"]) > 2  # nobody else asks for settings

    await wait_until_async("the gateway has looked again", has_looked)
    assert refusal(await publish(served, "a")) == FULL
    await use(redis, 80)
    await seen(served, is_full=False)
    assert (await publish(served, "a")).status_code == 201


async def test_writers_who_never_stop_are_refused_by_us_and_never_by_redis(served: Served, redis: Redis) -> None:
    await use(redis, 86)
    await redis.config_resetstat()
    outcomes: list[int] = []

    async def write(writer: int) -> None:
        for number in range(10_000):
            answer = await publish(served, f"{writer}-{number}", "word " * 400, f"w{writer}")
            outcomes.append(answer.status_code)
            if answer.status_code != 201:
                assert refusal(answer) == FULL
                return

    await asyncio.gather(*(write(writer) for writer in range(4)))
    assert outcomes.count(201) > 50
    assert "errorstat_OOM" not in await redis.info("errorstats")


async def test_a_full_store_still_takes_what_ends_work_and_erases(server: RunningRedis, redis: Redis) -> None:
    async with connect_sessions(server.url) as sessions:
        ref = await conversation(sessions)
        ticket = await begin(sessions, ref)
        await redis.config_set("maxmemory", 1)
        with pytest.raises(UnavailableError) as refused:
            await sessions.commit_build(ticket, summary())
        assert refused.value.code == "store_full"
        assert await sessions.renew_build(ticket)
        await sessions.abandon_build(ticket, "store_full", 100)
        await sessions.mark_embedded(ref, 2, "collection")
        assert (await sessions.read_context(TENANT, "s1")).body
        assert (await sessions.erase(TENANT, "s1")).turns > 0


async def conversation(sessions: Sessions) -> Any:
    """A session that wants a summary."""
    await sessions.open(TENANT, "s1", SessionOptions(hard_limit_tokens=1000))
    answer = await sessions.append(TENANT, "s1", [turn("user", "word " * 100)])
    while answer.status != "soft":
        answer = await sessions.append(TENANT, "s1", [turn("assistant", "word " * 100), turn("user", "word " * 100)])
    return answer.ref


def large_results() -> list[dict[str, Any]]:
    """The costliest turns that there are: a result is kept whole in the log, and again in context and standby."""
    turns: list[dict[str, Any]] = []
    for number in range(3):
        body = {"type": "tool_result", "tool_use_id": f"c-{number}-0", "content": "x " * 500_000}
        turns += [calls(number, 1), {"role": "user", "content": [body]}]
    return turns


def calls(first: int, count: int = 128) -> dict[str, Any]:
    block = {"type": "tool_use", "name": "f", "input": {}}
    return {"role": "assistant", "content": [{**block, "id": f"c-{first}-{number}"} for number in range(count)]}


@pytest.mark.parametrize(
    ("turns", "of_calls"),
    [
        ([{"role": "user", "content": "word " * 200_000}] * 4, 0),
        (large_results(), 3_000),
        ([calls(first) for first in range(8)], 1_024_000),
    ],
    ids=["text", "results", "calls"],
)
async def test_an_append_writes_at_most_six_times_its_body_and_a_thousand_bytes_a_call(
    server: RunningRedis, redis: Redis, turns: list[dict[str, Any]], of_calls: int
) -> None:
    async with connect_sessions(server.url) as sessions:
        ref = await conversation(sessions)
        await sessions.commit_build(await begin(sessions, ref), summary())  # from here each turn is written to both
        await sessions.open(TENANT, "s1", SessionOptions(hard_limit_tokens=10_000_000))
        raw = orjson.dumps({"turns": turns})
        prepared = await asyncio.to_thread(prepare_body, raw, load_counter(), gateway_settings())
        before = await sizes(redis)
        await sessions.append(TENANT, "s1", prepared)
        for now, then in zip(await sizes(redis), before, strict=True):
            assert 2 * len(raw) < now - then <= 6 * len(raw) + of_calls


async def sizes(redis: Redis) -> tuple[int, int]:
    """Bytes in memory and in the log."""
    return (await redis.info("memory"))["used_memory_dataset"], (await redis.info("persistence"))["aof_current_size"]


async def test_an_append_of_more_than_its_bounds_is_refused_whole(served: Served) -> None:
    settings = gateway_settings()
    text = {"role": "user", "content": "a" * (settings.turn_max_bytes - 100)}
    for turns in (
        [text] * 5,
        [{"role": "user", "content": "a" * settings.turn_max_bytes}],
        [{"role": "user", "content": "a"}] * (settings.turns_per_request + 1),
        [calls(first) for first in range(settings.calls_per_request // 128 + 1)],
    ):
        answer = await served.client.post("/v1/sessions/s1/turns", content=orjson.dumps({"turns": turns}), headers=JSON)
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert (await served.client.get("/v1/sessions/s1")).status_code == 404
    most = [calls(first) for first in range(settings.calls_per_request // 128)]
    answer = await served.client.post("/v1/sessions/s1/turns", content=orjson.dumps({"turns": most}), headers=JSON)
    assert answer.status_code == 201


def test_every_call_that_stores_more_is_known_to_do_so() -> None:
    shrinking = {"/v1/sessions/{session}/rewind", "/v1/sessions/{session}/close", "/v1/search"}
    for operation in operations_of(MagicMock()):
        if 501 not in operation.refusals:  # not there yet
            is_growing = operation.method in ("POST", "PUT", "PATCH") and operation.path not in shrinking
            assert operation.grows is is_growing, f"{operation.method} {operation.path}"
