"""``XADD`` and dispatchers as processes: as the page on the protocol says it, and killed in the middle."""

import asyncio
import random
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.exceptions import NoPermissionError

from prefold.storage.keys import SessionKeys, TenantKeys
from tests.support.logged_roles import LoggedRole, logged_role
from tests.support.publishing_turns import STREAM, TENANT, entry, reading, turn_json, until_empty
from tests.support.redis import running_redis
from tests.support.seeds import seed_of_run
from tests.support.waiting import wait_until

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
INGEST = {"ingest_tenants": TENANT, "durability": "fast", "ingest_lease_ms": "500"}


@pytest.fixture
def store(redis_url: str) -> Iterator[Redis]:
    with Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


def commands_of_the_page() -> list[list[str]]:
    """Every line of the section that calls ``redis-cli``, as the words that a shell would hand over."""
    section = PAGE.read_text("utf-8").split("## Publishing turns\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines() if line.startswith("redis-cli ")]


def run(client: Redis, words: list[str]) -> Any:
    return client.execute_command(*words)  # type: ignore[no-untyped-call]  # as it is


def texts_of(store: Redis, session: str, tenant: str = TENANT) -> str:
    return str(store.get(SessionKeys.of(tenant, session).context) or "")


def stored(store: Redis, session: str) -> list[str]:
    """Producers' ids in the order of the log."""
    log: Any = store.xrange(SessionKeys.of(TENANT, session).turns)
    return [fields["r"].split("\n")[0].rpartition(" ")[2] for _, fields in log]


async def apply_all(redis_url: str) -> None:
    async with AsyncRedis.from_url(redis_url) as client, reading(redis_url):
        await until_empty(client)


def test_the_lines_of_the_page_publish_turns_and_the_user_that_it_makes_may_do_nothing_else(
    redis_url: str, store: Redis
) -> None:
    lines = commands_of_the_page()
    assert [line[0] for line in lines] == ["XADD", "XADD", "XLEN", "ACL"]
    *published, length, user = lines
    for line in published:
        run(store, line)
    assert run(store, length) == 2
    asyncio.run(apply_all(redis_url))
    assert run(store, length) == 0
    context = texts_of(store, "s1")
    assert context.index("Where is my parcel?") < context.index("In Leipzig.")
    run(store, user)
    try:
        with Redis.from_url(redis_url, username="acme-backend", password="secret") as backend:
            run(backend, published[0])
            for refused in (["XRANGE", STREAM, "-", "+"], ["XADD", "pf1:{t:other}:ingest", "*", "v", "1"]):
                with pytest.raises(NoPermissionError):
                    run(backend, refused)
    finally:
        run(store, ["ACL", "DELUSER", "acme-backend"])
        store.delete(STREAM)


def publish(store: Redis, sessions: int, turns: range) -> None:
    pipe = store.pipeline(transaction=False)
    for number in turns:
        for session in range(sessions):
            pipe.xadd(STREAM, entry(f"s{session}", turn_json(number, f"s{session}")))
    pipe.execute()


def holder(store: Redis, roles: list[LoggedRole]) -> LoggedRole | None:
    name = str(store.get(TenantKeys.of(TENANT).ingest_lease) or "").partition(":")[0]
    return roles["ab".index(name)] if name in ("a", "b") else None


def test_a_dispatcher_killed_while_it_stores_loses_and_doubles_nothing_and_another_goes_on(
    redis_url: str, queue_url: str, store: Redis, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        roles = []
        for name in "ab":
            (tmp_path / name).mkdir()
            given = {**INGEST, "dispatcher_name": name}
            roles.append(stack.enter_context(logged_role(tmp_path / name, "dispatcher", redis_url, queue_url, **given)))
        for role in roles:
            wait_until("it reads", lambda role=role: role.said("ingest_started"), timeout=30)  # type: ignore[misc]
        publish(store, 5, range(400))
        wait_until("some turns are stored", lambda: len(stored(store, "s0")) > 20)
        reader = wait_until("somebody has the lease", lambda: holder(store, roles))
        assert reader is not None
        reader.process.kill()
        publish(store, 5, range(400, 420))
        wait_until("the other has done the rest", lambda: not store.exists(STREAM), timeout=30)
    for session in range(5):
        assert stored(store, f"s{session}") == [f"t{number}" for number in range(420)]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_no_turn_is_lost_or_doubled_however_often_a_dispatcher_is_killed(queue_url: str, tmp_path: Path) -> None:
    chance = random.Random(seed_of_run("where it is killed"))
    with running_redis() as server, Redis.from_url(server.url, decode_responses=True) as store:
        published = 0
        for life in range(12):
            folder = tmp_path / str(life)
            folder.mkdir()
            given = {**INGEST, "dispatcher_name": f"d{life}"}
            with logged_role(folder, "dispatcher", server.url, queue_url, **given) as role:
                wait_until("it reads", lambda role=role: role.said("ingest_started"), timeout=60)  # type: ignore[misc]
                publish(store, 4, range(published, published + 150))
                published += 150
                least = chance.randrange(published * 4)
                wait_until("it has come so far", lambda least=least: all_stored(store) >= least, timeout=60)  # type: ignore[misc]
                role.process.kill()
        with logged_role(tmp_path, "dispatcher", server.url, queue_url, **INGEST):
            wait_until("the rest is done", lambda: not store.exists(STREAM), timeout=60)
        for session in range(4):
            assert stored(store, f"s{session}") == [f"t{number}" for number in range(published)]


def all_stored(store: Redis) -> int:
    return sum(store.xlen(SessionKeys.of(TENANT, f"s{session}").turns) for session in range(4))
