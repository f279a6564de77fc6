"""The direct client tells what the store keeps, refuses when it keeps less than was asked, and rides out an outage."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from redis import Redis

from prefold.client import AsyncPrefold, Prefold, RetryPolicy
from prefold.client.direct.blocking_redis import connect_blocking
from prefold.errors import (
    ConfigurationError,
    InvalidInputError,
    RefusedError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedError,
)
from prefold.stack.redis_server import session_options
from tests.support.base_only import REFUSING
from tests.support.redis import RunningRedis, running_redis
from tests.support.replicas import replicated_pair

SOON = RetryPolicy(deadline_seconds=0.3, attempt_seconds=0.2, first_pause_seconds=0.01)


@pytest.fixture(scope="module")
def durable() -> Iterator[RunningRedis]:
    with running_redis(session_options("durable")) as server:
        yield server


def classes_told(url: str) -> set[str]:
    """What both clients say of an append now."""

    async def publish() -> str:
        async with AsyncPrefold.direct(url) as client:
            return (await client.append("s", "user", "Hello")).durability

    with Prefold.direct(url) as client:
        return {client.append("s", "user", "Hello").durability, asyncio.run(publish())}


def test_a_store_that_syncs_each_write_is_durable_and_one_that_does_not_is_not(durable: RunningRedis) -> None:
    durable.flush()
    with Redis.from_url(durable.url) as admin:
        assert classes_told(durable.url) == {"durable"}
        admin.config_set("appendfsync", "everysec")
        try:
            assert classes_told(durable.url) == {"fast"}
            with Prefold.direct(durable.url, durability="durable", retry=SOON) as client:
                with pytest.raises(UnavailableError) as caught:
                    client.append("strict", "user", "Hello")
                assert caught.value.code == "not_durable"
                assert "appendfsync" in caught.value.detail
        finally:
            admin.config_set("appendfsync", "always")
        with Prefold.direct(durable.url, durability="durable") as client:
            assert client.append("strict", "user", "Hello").turns[0].seq == 1
        with Prefold.direct(durable.url, durability="fast") as client:
            assert client.append("strict", "user", "Hello").durability == "fast"


async def test_what_was_seen_of_the_store_holds_for_the_connection_that_it_was_seen_over(durable: RunningRedis) -> None:
    durable.flush()
    async with AsyncPrefold.direct(durable.url) as client:
        with Prefold.direct(durable.url) as blocking, Redis.from_url(durable.url) as admin:
            before = [
                (await client.append("s", "user", "Hello")).durability,
                blocking.append("s", "user", "x").durability,
            ]
            admin.config_set("appendfsync", "everysec")
            try:
                admin.execute_command("CLIENT KILL TYPE normal SKIPME yes")
                after = [
                    (await client.append("s", "user", "Hello")).durability,
                    blocking.append("s", "user", "x").durability,
                ]
            finally:
                admin.config_set("appendfsync", "always")
    assert (before, after) == (["durable"] * 2, ["fast"] * 2)


def test_a_store_that_does_not_let_us_ask_is_never_called_durable(durable: RunningRedis) -> None:
    durable.flush()
    with Redis.from_url(durable.url) as admin:
        admin.acl_setuser("shy", enabled=True, passwords=["+secret"], keys=["*"], commands=["+@all", "-config"])
        assert classes_told(durable.url.replace("unix://", "unix://shy:secret@")) == {"fast"}
        admin.acl_setuser("mute", enabled=True, passwords=["+secret"], keys=["*"], commands=["+@all", "-info"])
        assert classes_told(durable.url.replace("unix://", "unix://mute:secret@")) == {"fast"}


async def test_an_outage_is_told_within_the_deadline_and_a_repeat_after_it_is_one() -> None:
    with running_redis(session_options("durable")) as server:
        async with AsyncPrefold.direct(server.url, retry=SOON) as client:
            with Prefold.direct(server.url, retry=SOON) as blocking:
                await client.append("s", "user", "Hello", id="a")
                server.kill()
                with pytest.raises(UnavailableError):
                    await client.append("s", "user", "Still there?", id="b")
                with pytest.raises(UnavailableError):
                    blocking.append("s", "user", "Still there?", id="b")
                server.start()
                assert (await client.append("s", "user", "Hello", id="a")).turns[0].duplicate
                assert (await client.append("s", "user", "Still there?", id="b")).turns[0].seq == 2
                assert blocking.append("s", "user", "Still there?", id="b").turns[0].duplicate


def test_a_store_of_another_layout_is_not_written_to(redis_url: str) -> None:
    with Redis.from_url(redis_url) as admin:
        admin.set("pf1:layout", "999", px=60_000)
        with Prefold.direct(redis_url) as client, pytest.raises(ConfigurationError, match="999"):
            client.append("s", "user", "Hello")
        admin.delete("pf1:layout")


@pytest.mark.parametrize("read", ["session", "context", "turns", "state"])
def test_a_store_of_another_layout_is_not_read_either(redis_url: str, read: str) -> None:
    with Redis.from_url(redis_url) as admin:
        with Prefold.direct(redis_url) as client:
            client.append("s", "user", "Hello")
        admin.set("pf1:layout", "999", px=60_000)
        with Prefold.direct(redis_url) as client, pytest.raises(ConfigurationError, match="999"):
            getattr(client, read)("s")
        admin.delete("pf1:layout")


def test_a_client_under_which_the_layout_changes_stops_writing_once_it_looks_again(redis_url: str) -> None:
    with Redis.from_url(redis_url) as admin, Prefold.direct(redis_url) as client:
        client.append("s", "user", "Hello")
        admin.set("pf1:layout", "999", px=60_000)
        admin.execute_command("CLIENT KILL TYPE normal SKIPME yes")  # behind a new connection may be another server
        with pytest.raises(ConfigurationError, match="999"):
            client.append("s", "user", "Hello")
        before = admin.dbsize()
        with pytest.raises(ConfigurationError, match="999"):
            client.append("another", "user", "Hello")
        assert admin.dbsize() == before
        admin.delete("pf1:layout")
        assert client.append("s", "user", "Hello").turns


async def test_a_client_that_was_closed_opens_no_connection_again(redis_url: str) -> None:
    client, blocking = AsyncPrefold.direct(redis_url), Prefold.direct(redis_url)
    await client.append("s", "user", "Hello")
    blocking.append("s", "user", "Hello")
    for _ in range(2):
        await client.aclose()
        blocking.close()
    with pytest.raises(RefusedError, match="closed"):
        await client.append("s", "user", "Hello")
    with pytest.raises(RefusedError, match="closed"):
        await client.context("s")
    with pytest.raises(RefusedError, match="closed"):
        blocking.append("s", "user", "Hello")
    with pytest.raises(RefusedError, match="closed"):
        blocking.context("s")


def test_an_asyncio_client_in_another_event_loop_says_that_it_belongs_to_the_first(redis_url: str) -> None:
    client = AsyncPrefold.direct(redis_url)
    with asyncio.Runner() as runner:
        runner.run(client.append("s", "user", "Hello"))
        for call in (lambda: client.append("s", "user", "Hello"), lambda: client.session("s"), client.aclose):
            with pytest.raises(RefusedError) as caught, asyncio.Runner() as other:
                other.run(call())
            assert caught.value.code == "other_loop"
        runner.run(client.aclose())


def test_tenants_are_apart_and_their_names_are_checked(redis_url: str) -> None:
    with Prefold.direct(redis_url, tenant="acme") as acme, Prefold.direct(redis_url, tenant="other") as other:
        acme.append("s", "user", "Hello", id="a")
        assert other.append("s", "user", "Goodbye", id="a").turns[0].seq == 1
        assert len(acme.turns("s")) == 1
    with pytest.raises(InvalidInputError):
        Prefold.direct(redis_url, tenant="a:b")


def test_a_cluster_is_only_for_the_asyncio_client() -> None:
    with pytest.raises(UnsupportedError, match="AsyncPrefold"):
        Prefold.direct("redis+cluster://127.0.0.1:1")


async def test_the_asyncio_client_serves_a_cluster(cluster_url: str) -> None:
    async with AsyncPrefold.direct(cluster_url) as client:
        for number in range(3):
            assert (await client.append(f"s{number}", "user", "Hello")).turns[0].seq == 1
            assert (await client.context(f"s{number}")).tokens > 0


async def test_an_append_is_one_script_and_nothing_else(redis_url: str) -> None:
    async with AsyncPrefold.direct(redis_url) as client:
        with Prefold.direct(redis_url) as blocking, Redis.from_url(redis_url) as admin, admin.monitor() as monitor:
            for number in range(2):  # the first ones look at the server and load the script
                admin.echo(f"round {number}")
                await client.append("s", "user", "Hello")
                blocking.append("s", "user", "Hello")
            admin.echo("end")
            seen: list[str] = []
            while not seen or seen[-1] != "ECHO end":
                command = monitor.next_command()
                if command["client_type"] != "lua":
                    seen.append(str(command["command"]))
    sent = [command.split(" ")[0] for command in seen[seen.index("ECHO round 1") + 1 : -1]]
    assert sent == ["EVALSHA", "EVALSHA"]


def test_threads_share_a_client_and_every_turn_gets_a_number_of_its_own(redis_url: str) -> None:
    with Prefold.direct(redis_url) as client, ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda n: client.append("s", "user", f"turn {n}"), range(80)))
    assert sorted(answer.turns[0].seq for answer in answers) == list(range(1, 81))


def test_threads_draw_incarnations_of_their_own(redis_url: str) -> None:
    """A generator would refuse a second thread while one is in it."""
    often, before = 1e-6, sys.getswitchinterval()
    _, sessions = connect_blocking(redis_url, 1.0, timedelta(seconds=1))
    sys.setswitchinterval(often)
    try:
        with ThreadPoolExecutor(4) as threads:
            drawn = list(threads.map(lambda _: [next(sessions._incarnations) for _ in range(2_000)], range(8)))
    finally:
        sys.setswitchinterval(before)
    found = [one for part in drawn for one in part]
    assert len(set(found)) == len(found) == 16_000
    assert {len(one) for one in found} == {12}


def test_a_forked_process_goes_on_with_the_client_that_it_inherits(redis_url: str) -> None:
    program = f"""
import os
from prefold.client import Prefold

client = Prefold.direct({redis_url!r})
client.append("s", "user", "before", id="a")
child = os.fork()
for number in range(20):
    client.append("s", "user", "x", id=f"{{bool(child)}}-{{number}}")
if child:
    assert os.waitpid(child, 0)[1] == 0
    print(len(client.turns("s")))
"""
    done = subprocess.run([sys.executable, "-c", REFUSING + program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("41", 0), done.stderr


async def test_durable_with_a_replica_means_that_it_has_the_turn_or_nobody_says_so() -> None:
    with replicated_pair() as pair:
        url = pair.primary.url
        with Prefold.direct(url) as blocking:
            assert blocking.append("s", "user", "Hello", id="a").durability == "fast"
        with Prefold.direct(url, durability="durable", retry=SOON) as strict, pytest.raises(UnavailableError) as caught:
            strict.append("s", "user", "Hello", id="a")
        assert caught.value.code == "not_durable"
        async with (
            AsyncPrefold.direct(url) as telling,
            AsyncPrefold.direct(url, durability="durable", retry=SOON) as waiting,
        ):
            assert (await telling.append("s", "user", "Hello", id="a")).durability == "fast"
            assert (await waiting.append("s", "user", "Hello", id="a")).durability == "durable"
            pair.replica.freeze()
            with pytest.raises(UnavailableError):
                await waiting.append("s", "user", "Anybody?", id="b")
            pair.replica.thaw()
            assert (await waiting.append("s", "user", "Anybody?", id="b")).turns[0].seq == 2


async def test_a_user_that_may_not_is_told_so_at_once(durable: RunningRedis) -> None:
    durable.flush()
    with Redis.from_url(durable.url) as admin:
        admin.acl_setuser(
            "narrow", enabled=True, passwords=["+secret"], keys=["pf1:{p*}:s:acme:*", "pf1:layout"], commands=["+@all"]
        )
    for user in ("narrow:secret", "narrow:wrong", "nobody:secret"):
        url = durable.url.replace("unix://", f"unix://{user}@")
        with Prefold.direct(url, tenant="other") as blocking, pytest.raises(UnauthenticatedError) as caught:
            blocking.append("s", "user", "Hello")
        assert caught.value.code == "store_refuses"
        async with AsyncPrefold.direct(url, tenant="other") as client:
            with pytest.raises(UnauthenticatedError):
                await client.append("s", "user", "Hello")
