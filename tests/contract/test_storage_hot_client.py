"""The lean client and redis-py answer alike, and the lean one rides through what a server does to it."""

import asyncio
import socket
import threading
import time
from contextlib import suppress
from typing import Any

import pytest
from redis import exceptions
from redis.asyncio import Redis

from prefold.storage import hot
from prefold.storage.hot import HotClient, connect_hot, serves
from prefold.storage.scripts import Script
from tests.support.redis import RunningRedis, running_redis
from tests.support.waiting import wait_until_async

COMMANDS: list[tuple[Any, ...]] = [
    ("SET", "a", "x" * 100_000),
    ("GET", "a"),
    ("GET", "nothing"),
    ("HSET", "h", "one", 1, "two", b"\x00\xff"),
    ("HMGET", "h", "one", "two", "three"),
    ("XADD", "s", "1-0", "f", "v"),
    ("XRANGE", "s", "-", "+"),
    ("EVAL", "return {1, 'two', false, {3}}", 0),
]


async def test_replies_are_those_of_redis_py(redis_url: str) -> None:
    async with connect_hot(redis_url) as client:
        assert client is not None
        lean = [await client.execute(command) for command in COMMANDS]
    async with Redis.from_url(redis_url) as general:
        await general.flushall()
        usual: list[Any] = [await general.execute_command(*command) for command in COMMANDS]  # type: ignore[no-untyped-call]
    assert lean[0] == b"OK" and usual[0] is True
    assert lean[1:4] == usual[1:4]
    assert lean[4] == usual[4]
    assert lean[5] == usual[5]
    assert lean[7] == usual[7]


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (("EVALSHA", "0" * 40, 0), exceptions.NoScriptError),
        (("HGET", "a"), exceptions.ResponseError),
        (("EVAL", "return redis.error_reply('OOM full')", 0), exceptions.OutOfMemoryError),
    ],
)
async def test_errors_are_those_of_redis_py(redis_url: str, command: tuple[Any, ...], error: type[Exception]) -> None:
    async with connect_hot(redis_url) as client:
        assert client is not None
        with pytest.raises(error):
            await client.execute(command)


async def test_many_callers_get_their_own_replies_over_one_connection(redis_url: str) -> None:
    async with connect_hot(redis_url) as client:
        assert client is not None
        calls = [client.execute(("EVAL", "return ARGV[1]", 0, str(number))) for number in range(500)]
        assert await asyncio.gather(*calls) == [str(number).encode() for number in range(500)]


async def test_commands_that_go_together_are_answered_together(redis_url: str) -> None:
    async with connect_hot(redis_url) as client:
        assert client is not None
        together = client.execute(("MULTI",), ("SET", "k", "1"), ("GET", "k"), ("EXEC",))
        alone = client.execute(("GET", "other"))
        answers: list[Any] = list(await asyncio.gather(together, alone))
        assert answers == [[b"OK", b"1"], None]
        with pytest.raises(exceptions.ResponseError):
            await client.execute(("MULTI",), ("NO SUCH",), ("EXEC",))
        assert await client.execute(("PING",)) == b"PONG"


async def test_a_caller_that_gives_up_does_not_shift_the_replies_of_the_others(redis_url: str) -> None:
    async with connect_hot(redis_url) as client:
        assert client is not None
        await client.execute(("PING",))
        lost = asyncio.ensure_future(client.execute(("EVAL", "return 'lost'", 0)))
        kept = asyncio.ensure_future(client.execute(("EVAL", "return 'kept'", 0)))
        await asyncio.sleep(0)
        lost.cancel()
        assert await kept == b"kept"


async def test_a_server_that_restarts_is_ridden_through_and_scripts_are_loaded_again() -> None:
    source = "return 'answer'"
    one = Script("x", source, "e5dda86ef4ea4d1c5eb7b6aa4a3d6a1bb86c4a1f")
    with running_redis() as server:
        async with connect_hot(server.url) as client:
            assert client is not None
            sha = (await client.script_load(source)).decode()
            loaded = Script(one.name, source, sha)
            assert await loaded.run(client, (), ()) == b"answer"
            await asyncio.to_thread(_restart, server)
            assert await loaded.run(client, (), ()) == b"answer"


def _restart(server: RunningRedis) -> None:
    server.kill()
    server.start()


async def test_a_server_that_is_gone_is_reported_soon() -> None:
    with running_redis() as server:
        url = server.url
    client = HotClient(url)
    with pytest.raises(OSError, match="No such file"):
        async with asyncio.timeout(5):
            await client.execute(("PING",))


async def test_a_server_that_hangs_up_as_soon_as_it_is_met_is_reported_and_not_waited_for() -> None:
    """As a load balancer does whose servers are away, or a server with too many clients."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            with suppress(OSError):
                while True:
                    listener.accept()[0].close()

        meeting = threading.Thread(target=hang_up, daemon=True)
        meeting.start()
        client = HotClient(f"redis://127.0.0.1:{listener.getsockname()[1]}", pauses=(0, 0))
        for _ in range(5):
            async with asyncio.timeout(5):
                with pytest.raises(exceptions.ConnectionError):
                    await client.execute(("GET", "a"))
        client.close()
        listener.shutdown(socket.SHUT_RDWR)
    meeting.join()


async def test_a_server_with_too_many_clients_is_away_and_not_broken() -> None:
    with running_redis() as server:
        async with Redis.from_url(server.url) as first:
            await first.config_set("requirepass", "secret")
            await first.config_set("maxclients", 1)
            client = HotClient(server.url.replace("//", "//:secret@"), pauses=(0, 0))
            for _ in range(5):
                with pytest.raises(exceptions.ConnectionError):
                    await client.execute(("GET", "a"))
            await first.config_set("maxclients", 100)
            assert await client.execute(("GET", "a")) is None
            client.close()


async def test_a_frozen_server_is_given_up_after_the_timeout() -> None:
    with running_redis() as server:
        client = HotClient(server.url, timeout_seconds=0.2)
        await client.execute(("PING",))
        server.freeze()
        try:
            with pytest.raises(exceptions.TimeoutError):
                await client.execute(("PING",))
        finally:
            server.thaw()
        assert await client.execute(("PING",)) == b"PONG"
        client.close()


async def test_callers_that_meet_a_frozen_server_with_a_password_give_up_together() -> None:
    with running_redis() as server:
        async with Redis.from_url(server.url) as admin:
            await admin.config_set("requirepass", "secret")
        client = HotClient(server.url.replace("unix://", "unix://:secret@"), timeout_seconds=0.3)
        server.freeze()
        started = time.monotonic()
        outcomes = await asyncio.gather(*(client.execute(("PING",)) for _ in range(20)), return_exceptions=True)
        took = time.monotonic() - started
        server.thaw()
        assert {type(one) for one in outcomes} == {exceptions.TimeoutError}
        assert took < 3, "they waited for one another's attempts: 20 times 0.3 s"
        assert await client.execute(("PING",)) == b"PONG"
        client.close()


async def test_a_connection_that_is_not_let_in_is_closed_again() -> None:
    with running_redis() as server:
        async with Redis.from_url(server.url) as admin:
            await admin.config_set("requirepass", "secret")
            client = HotClient(server.url.replace("unix://", "unix://:wrong@"))
            for _ in range(3):
                with pytest.raises(exceptions.ResponseError, match="WRONGPASS"):
                    await client.execute(("PING",))

            async def are_closed() -> bool:
                return bool((await admin.info("clients"))["connected_clients"] == 1)

            await wait_until_async("only the admin is connected", are_closed)


async def test_a_server_that_became_a_replica_is_left_for_what_its_address_names_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hot, "_SETTLED_SECONDS", 0.0)
    with running_redis() as server:
        async with connect_hot(server.url) as client, Redis.from_url(server.url) as admin:
            assert client is not None
            await client.execute(("SET", "a", "1"))
            await admin.replicaof("127.0.0.1", "1")
            with pytest.raises(exceptions.ReadOnlyError):
                await client.execute(("SET", "a", "2"))
            assert client.connections_made > 1
            await admin.replicaof("NO", "ONE")
            assert await client.execute(("SET", "a", "3")) == b"OK"


async def test_replies_of_an_exchange_come_with_what_was_refused_in_its_place(redis_url: str) -> None:
    async with connect_hot(redis_url) as client:
        assert client is not None
        first, refused, last = await client.exchange([("PING",), ("NO SUCH",), ("ECHO", "x")])
        assert (first, last) == (b"PONG", b"x")
        assert isinstance(refused, exceptions.ResponseError)


def test_urls_that_ask_for_more_are_left_to_the_general_client() -> None:
    assert serves("unix:///tmp/a.sock") and serves("redis://:secret@host:6379/2")
    assert not serves("rediss://host:6379") and not serves("redis://host?protocol=3")
