"""What an acknowledged turn survives, on real servers that are set up well, badly, and otherwise while we run."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
import structlog
from httpx import Response
from redis.asyncio import Redis

from prefold.errors import ConfigurationError, UnavailableError
from prefold.stack.redis_server import session_options, with_options
from prefold.storage import connect_sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.watching import watched_store
from tests.support.gateway import Served, gateway_settings, served_gateway
from tests.support.redis import RunningRedis, running_redis
from tests.support.replicas import Pair, replicated_pair
from tests.support.storage import append, turn
from tests.support.waiting import wait_until_async

LOOK_MS = 50
RARELY_MS = 60_000


@pytest.fixture(scope="module")
def server() -> Iterator[RunningRedis]:
    """As the embedded stack runs it."""
    with running_redis(session_options("durable")) as running:
        yield running


@pytest.fixture(scope="module")
def joined() -> Iterator[Pair]:
    with replicated_pair() as pair:
        yield pair


@pytest.fixture
def pair(joined: Pair) -> Iterator[Pair]:
    """A replica that follows, whatever the test before did to it."""
    joined.primary.flush()
    yield joined
    joined.replica.thaw()
    joined.join()


@pytest.fixture
async def admin(server: RunningRedis) -> AsyncIterator[Redis]:
    """Changes the server's settings; they are as they were afterwards."""
    server.flush()
    async with Redis.from_url(server.url, decode_responses=True) as client:
        names = ("appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory", "maxmemory-policy")
        before = await client.config_get(*names)
        yield client
        await client.replicaof("NO", "ONE")
        await client.config_set("maxmemory", "0")
        for name, value in before.items():
            await client.config_set(str(name), str(value))


async def start(url: str, **given: object) -> None:
    """Raises what a gateway of these settings would not start with."""
    async with connect_sessions(url) as sessions, watched_store(sessions, gateway_settings(**given)):
        pass


async def publish(served: Served, turn_id: str, session: str = "s1") -> Response:
    turn = {"id": turn_id, "role": "user", "content": "Where is my parcel?"}
    return await served.client.post(f"/v1/sessions/{session}/turns", json=turn)


def outcome(answer: Response) -> tuple[int, str]:
    """Status, and the class or the code."""
    body: dict[str, Any] = answer.json()
    return answer.status_code, body.get("durability") or body["code"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("appendonly", "no"),
        ("appendfsync", "everysec"),
        ("no-appendfsync-on-rewrite", "yes"),
        ("maxmemory-policy", "allkeys-lru"),
        ("maxmemory-policy", "volatile-ttl"),
    ],
)
async def test_a_gateway_that_shall_be_durable_does_not_start_on_a_server_that_is_not(
    server: RunningRedis, admin: Redis, name: str, value: str
) -> None:
    await admin.config_set("maxmemory", "1gb")
    await start(server.url)
    await admin.config_set(name, value)
    with pytest.raises(ConfigurationError) as refused:
        await start(server.url)
    assert f"{name} is {value}: CONFIG SET {name} " in refused.value.detail
    assert "PREFOLD_DURABILITY=fast" in refused.value.detail
    await start(server.url, durability="fast")


async def test_no_gateway_starts_on_a_replica(server: RunningRedis, admin: Redis) -> None:
    await admin.replicaof("127.0.0.1", "1")
    for durability in ("durable", "fast"):
        with pytest.raises(ConfigurationError, match="role is replica: let PREFOLD_REDIS_URL name the primary"):
            await start(server.url, durability=durability)


async def test_settings_that_cannot_be_read_are_no_promise(server: RunningRedis, admin: Redis) -> None:
    await admin.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", "-config")  # type: ignore[no-untyped-call]
    url = f"{server.url}?username=app&password=pw"
    with pytest.raises(ConfigurationError, match="appendfsync is not readable: let our user ask"):
        await start(url)
    await start(url, durability="fast")


async def test_a_fast_gateway_says_loudly_that_its_server_may_evict_conversations(
    server: RunningRedis, admin: Redis
) -> None:
    await admin.config_set("maxmemory", "1gb")
    await admin.config_set("maxmemory-policy", "allkeys-lru")
    with structlog.testing.capture_logs() as logs:
        await start(server.url, durability="fast")
    (warning,) = [event for event in logs if event["event"] == "store_not_as_promised"]
    assert (warning["what"], warning["found"], warning["log_level"]) == ("maxmemory-policy", "allkeys-lru", "warning")


async def test_a_setting_changed_at_run_time_ends_the_promise_until_it_is_set_back(
    server: RunningRedis, admin: Redis
) -> None:
    async with served_gateway(server.url, durability="durable", watched=True, store_check_ms=LOOK_MS) as served:
        assert outcome(await publish(served, "a")) == (201, "durable")
        await admin.config_set("appendfsync", "everysec")

        async def is_refused() -> bool:
            return (await publish(served, "b")).status_code == 503

        await wait_until_async("turns are refused", is_refused)
        refused = await publish(served, "c")
        assert (outcome(refused), refused.headers["retry-after"]) == ((503, "not_durable"), "1")
        assert "appendfsync everysec" in refused.json()["detail"]
        assert (await served.client.put("/v1/sessions/s2", json={})).json()["code"] == "not_durable"
        assert (await served.client.get("/v1/sessions/s1/context")).status_code == 200
        rewound = await served.client.post("/v1/sessions/s1/rewind", json={"to_seq": 0})
        assert outcome(rewound) == (200, "fast"), "a removal is never refused, and says what holds"
        assert (await served.client.delete("/v1/sessions/s1")).status_code == 200
        await admin.config_set("appendfsync", "always")

        async def is_taken() -> bool:
            return outcome(await publish(served, "d", "s3")) == (201, "durable")

        await wait_until_async("turns are taken again", is_taken)


async def come_back_less_durable(server: RunningRedis) -> None:
    await asyncio.to_thread(server.kill)
    server.server = replace(server.server, options=with_options(server.server.options, appendfsync="everysec"))
    await asyncio.to_thread(server.start)


async def test_a_server_that_comes_back_set_up_otherwise_is_not_called_durable_even_once() -> None:
    with running_redis(session_options("durable")) as server:
        async with served_gateway(server.url, durability="durable", watched=True, store_check_ms=RARELY_MS) as served:
            assert outcome(await publish(served, "a")) == (201, "durable")
            await come_back_less_durable(server)
            assert outcome(await publish(served, "b")) == (503, "not_durable")


async def test_a_turn_that_was_let_in_before_the_server_came_back_otherwise_is_not_called_durable() -> None:
    with running_redis(session_options("durable")) as server:
        settings = gateway_settings(store_check_ms=RARELY_MS)
        async with connect_sessions(server.url) as sessions, watched_store(sessions, settings) as store:
            await append(sessions, turn("user", "one"))
            await store.admit()
            await come_back_less_durable(server)
            await append(sessions, turn("user", "two"))
            with pytest.raises(UnavailableError) as refused:
                await store.promised()
            assert refused.value.code == "not_durable"
            assert await store.held() == "fast"


async def count_on(server: RunningRedis, session: str = "s1") -> int:
    async with Redis.from_url(server.url) as client:
        length: int = await client.xlen(SessionKeys.of("default", session).turns)
        return length


async def test_an_acknowledged_turn_is_on_the_replica(pair: Pair) -> None:
    async with served_gateway(pair.primary.url, durability="durable", watched=True) as served:
        for number in range(5):
            assert outcome(await publish(served, f"t{number}")) == (201, "durable")
            assert await count_on(pair.replica) == number + 1


async def test_turns_that_come_together_share_one_wait(pair: Pair) -> None:
    async with (
        served_gateway(pair.primary.url, durability="durable", watched=True) as served,
        Redis.from_url(pair.primary.url) as client,
    ):
        await publish(served, "first")
        await client.config_resetstat()
        answers = await asyncio.gather(*(publish(served, f"t{number}", f"s{number}") for number in range(60)))
        assert {outcome(answer) for answer in answers} == {(201, "durable")}
        stats = await client.info("commandstats")
        assert 1 <= stats["cmdstat_wait"]["calls"] < 30


async def test_a_turn_that_no_replica_confirms_is_not_acknowledged_and_neither_is_its_repeat(pair: Pair) -> None:
    given: dict[str, Any] = {"store_check_ms": RARELY_MS, "replicas_within_ms": 300}
    async with served_gateway(pair.primary.url, durability="durable", watched=True, **given) as served:
        assert outcome(await publish(served, "a")) == (201, "durable")
        pair.replica.freeze()
        # What another connection wrote is what a repeat must wait for: a WAIT of its own would have nothing to say.
        for _ in range(2):
            refused = await publish(served, "b")
            assert (outcome(refused), refused.headers["retry-after"]) == ((503, "not_replicated"), "1")
        waiting = asyncio.create_task(publish(served, "c"))
        await asyncio.sleep(0)
        started = time.monotonic()
        assert (await served.client.get("/v1/sessions/s1/context")).status_code == 200
        assert time.monotonic() - started < 0.25, "the read queued behind a wait"
        assert outcome(await waiting) == (503, "not_replicated")
        pair.replica.thaw()
        again = await publish(served, "b")
        assert outcome(again) == (201, "durable")
        assert again.json()["turns"][0]["duplicate"] is True
        log = (await served.client.get("/v1/sessions/s1/turns")).json()["turns"]
        assert [turn["id"] for turn in log] == ["a", "b", "c"]
        assert await count_on(pair.replica) == 3


async def test_what_takes_away_and_what_copies_waits_for_replicas_too(pair: Pair) -> None:
    given: dict[str, Any] = {"store_check_ms": RARELY_MS, "replicas_within_ms": 100}
    async with served_gateway(pair.primary.url, durability="durable", watched=True, **given) as served:
        await publish(served, "a")
        await publish(served, "b")
        pair.replica.freeze()
        session = "/v1/sessions/s1"
        calls: list[tuple[str, str, dict[str, Any] | None]] = [
            ("POST", f"{session}/fork", {"session": "s2"}),
            ("PUT", f"{session}/turns/a", {"role": "user", "content": "corrected"}),
            ("POST", f"{session}/rewind", {"to_seq": 1}),
            ("DELETE", f"{session}/turns/a", None),
            ("DELETE", session, None),
        ]
        for method, path, body in calls:
            assert outcome(await served.client.request(method, path, json=body)) == (503, "not_replicated"), path
        pair.replica.thaw()
        assert (await served.client.delete(session)).status_code == 200
        assert (await served.client.get("/v1/sessions/s2")).status_code == 200


async def test_a_repeat_through_another_gateway_waits_for_the_turn_that_the_first_one_stored(pair: Pair) -> None:
    given: dict[str, Any] = {"store_check_ms": RARELY_MS, "replicas_within_ms": 300}
    async with (
        served_gateway(pair.primary.url, durability="durable", watched=True, **given) as one,
        served_gateway(pair.primary.url, durability="durable", watched=True, **given) as other,
    ):
        assert outcome(await publish(other, "a")) == (201, "durable")
        pair.replica.freeze()
        assert outcome(await publish(one, "b")) == (503, "not_replicated")
        assert outcome(await publish(other, "b")) == (503, "not_replicated")


async def test_a_replica_that_joins_has_to_confirm_from_then_on_and_one_that_vanishes_stops_the_turns() -> None:
    with replicated_pair(joined=False) as pair:
        given: dict[str, Any] = {"store_check_ms": LOOK_MS, "replicas_within_ms": 300}
        async with served_gateway(pair.primary.url, durability="durable", watched=True, **given) as served:
            assert outcome(await publish(served, "a")) == (201, "durable")
            await asyncio.to_thread(pair.join)

            async def must_confirm() -> bool:
                assert served.sessions.replicated is not None
                return served.sessions.replicated.needed == 1

            await wait_until_async("the replica has to confirm", must_confirm)
            assert outcome(await publish(served, "b")) == (201, "durable")
            assert await count_on(pair.replica) == 2
            await asyncio.to_thread(pair.part)

            async def is_refused() -> bool:
                return outcome(await publish(served, "c")) == (503, "not_replicated")

            await wait_until_async("turns are refused", is_refused)
            assert (await served.client.get("/v1/sessions/s1/context")).status_code == 200
            await asyncio.to_thread(pair.join)

            async def is_taken() -> bool:
                return outcome(await publish(served, "c")) == (201, "durable")

            await wait_until_async("turns are taken again", is_taken)


async def test_replicas_that_are_asked_for_and_not_there_let_the_gateway_start_and_no_turn_in(
    server: RunningRedis, admin: Redis
) -> None:
    async with served_gateway(server.url, durability="durable", watched=True, replicas=1) as served:
        assert outcome(await publish(served, "a")) == (503, "not_replicated")
        assert (await served.client.get("/v1/sessions/s1")).status_code == 404
    async with served_gateway(server.url, durability="fast", watched=True, replicas=1) as served:
        assert outcome(await publish(served, "a")) == (201, "fast")


async def test_a_general_client_waits_for_replicas_too(pair: Pair) -> None:
    url = f"{pair.primary.url}?db=0"  # options in a query are more than the lean client takes
    async with served_gateway(url, durability="durable", watched=True, replicas_within_ms=300) as served:
        assert outcome(await publish(served, "a")) == (201, "durable")
        assert await count_on(pair.replica) == 1
        pair.replica.freeze()
        assert outcome(await publish(served, "b")) == (503, "not_replicated")
