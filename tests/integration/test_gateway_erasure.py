"""``DELETE /v1/sessions/{session}`` on a real Redis."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from prefold.gateway.finding import Hit
from prefold.gateway.rewriting import opened_rewrites
from prefold.stack.redis_server import with_options
from prefold.storage import Sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.types import ErasedSession
from tests.support.gateway import Served, served_gateway
from tests.support.redis import IN_MEMORY, running_redis
from tests.support.waiting import wait_until_async

SESSION = "/v1/sessions/s1"
TURN = {"id": "m1", "role": "user", "content": "CANARY-7731 is my secret"}


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as running:
        yield running


async def embedded(served: Served) -> tuple[str, Hit]:
    """The vector of the first turn of the session as it lives now."""
    life = (await served.sessions.view("default", "s1")).ref.incarnation
    return "default", Hit("s1", life, 1, 0, 1.0)


async def test_an_erased_session_is_gone_and_the_receipt_says_what_was_looked_at(served: Served) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    served.index.hits.append(await embedded(served))
    answer = await served.client.delete(SESSION)
    receipt = answer.json()
    assert answer.status_code == 200
    assert (receipt["turns"], receipt["keys_left"], receipt["vectors_left"]) == (1, 0, 0)
    assert next(one["where"] for one in receipt["remains"]) == "redis append-only file"
    assert served.index.hits == []
    keys = [key async for key in served.sessions.client.scan_iter("*")]
    dumps = [await served.sessions.client.dump(key) or b"" for key in keys]
    assert not any(b"CANARY" in dump for dump in dumps)


@pytest.mark.parametrize("path", ["", "/context", "/turns"])
async def test_what_was_erased_reads_as_erased(served: Served, path: str) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    await served.client.delete(SESSION)
    answer = await served.client.get(SESSION + path)
    assert (answer.status_code, answer.json()["code"]) == (410, "session_erased")


async def test_an_append_is_refused_until_the_session_is_put_anew(served: Served) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    await served.client.delete(SESSION)
    refused = await served.client.post(f"{SESSION}/turns", json=TURN)
    assert (refused.status_code, refused.json()["code"]) == (410, "session_erased")
    assert (await served.client.put(SESSION, json={})).status_code == 200
    again = await served.client.post(f"{SESSION}/turns", json=TURN)
    assert again.json()["turns"] == [
        {"id": "m1", "seq": 1, "tokens": again.json()["turns"][0]["tokens"], "duplicate": False}
    ]


async def test_erasing_twice_is_safe_and_an_unknown_session_is_not_found(served: Served) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    await served.client.delete(SESSION)
    again = await served.client.delete(SESSION)
    assert (again.status_code, again.json()["turns"]) == (200, 0)
    unknown = await served.client.delete("/v1/sessions/never")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "session_not_found")


async def test_vectors_that_cannot_be_deleted_now_are_deleted_by_the_repeat(served: Served) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    served.index.hits.append(await embedded(served))
    served.index.is_down = True
    refused = await served.client.delete(SESSION)
    assert (refused.status_code, refused.json()["code"]) == (503, "erasure_incomplete")
    served.index.is_down = False
    assert (await served.client.delete(SESSION)).json()["vectors_left"] == 0
    assert served.index.hits == []


async def test_only_the_erased_life_loses_its_vectors(served: Served) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    served.index.hits += [await embedded(served), ("default", Hit("s1", "another-life", 1, 0, 1.0))]
    await served.client.delete(SESSION)
    assert [hit.incarnation for _, hit in served.index.hits] == ["another-life"]


async def test_a_repeat_that_meets_a_new_life_spares_its_vectors(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    served.index.hits += [await embedded(served), ("default", Hit("s1", "former-life", 1, 0, 1.0))]
    living = served.index.hits[0]

    async def erased_before(_sessions: Sessions, _tenant: str, session: str) -> ErasedSession:
        return ErasedSession(session, "", 0, 0)

    monkeypatch.setattr(Sessions, "erase", erased_before)
    assert (await served.client.delete(SESSION)).status_code == 200
    assert served.index.hits == [living]


async def test_an_erasure_stays_due_for_the_worker_to_look_again(served: Served) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    await served.client.delete(SESSION)
    due = await served.sessions.client.zrange(SessionKeys.of("default", "s1").due, 0, -1)
    assert [str(entry).startswith("b'expire:") for entry in due] == [True]


async def test_a_rewrite_under_way_is_followed_by_the_one_that_the_receipt_names(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Any] = [ResponseError("Background append only file rewriting already in progress")] * 2 + [True]

    async def bgrewriteaof(_redis: Redis) -> bool:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    monkeypatch.setattr(Redis, "bgrewriteaof", bgrewriteaof)

    async def has_started() -> bool:
        return not answers

    async with opened_rewrites(served.sessions.client, pause_seconds=0.01) as rewrites:
        assert await rewrites.ask() == "the rewrite that follows the one under way"
        await wait_until_async("the rewrite has been started", has_started)


async def test_the_server_says_what_a_rewrite_under_way_looks_like() -> None:
    slow = with_options(IN_MEMORY, appendonly="yes", rdb_key_save_delay="20000")
    with running_redis(slow) as server:
        async with Redis.from_url(server.url) as redis, opened_rewrites(redis) as rewrites:
            await wait_until_async("no first rewrite is under way", lambda: _is_idle(redis))
            await redis.mset({f"k{number}": "v" for number in range(200)})
            texts = [await rewrites.ask(), await rewrites.ask()]
    assert texts == ["the rewrite that was started now", "the rewrite that follows the one under way"]


async def _is_idle(redis: Redis) -> bool:
    return not (await redis.info("persistence"))["aof_rewrite_in_progress"]


async def test_a_full_store_is_unavailable_and_the_gateway_is_not_ready() -> None:
    with running_redis(with_options(IN_MEMORY, maxmemory="3mb")) as server:
        async with served_gateway(server.url) as served:
            assert (await served.client.get("/readyz")).status_code == 200
            text = "word " * 20_000
            answer = await served.client.get("/livez")
            for number in range(100):
                turn = {"id": f"m{number}", "role": "user", "content": text}
                answer = await served.client.post(f"/v1/sessions/s{number}/turns", json=turn)
                if answer.status_code != 201:
                    break
            assert (answer.status_code, answer.json()["code"]) == (503, "store_full")
            assert int(answer.headers["retry-after"]) >= 1
            ready = await served.client.get("/readyz")
            assert (ready.status_code, ready.json()["checks"]["sessions"]) == (503, "is full")
