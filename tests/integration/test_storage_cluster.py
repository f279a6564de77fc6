"""Sessions on a real cluster of three primaries: the same as on one server, and while slots move."""

import asyncio
import functools
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from redis.exceptions import DataError, ResponseError

from prefold.errors import ConfigurationError, UnavailableError
from prefold.stack.places import free_port
from prefold.stack.redis_server import with_options
from prefold.storage import Sessions, connect_sessions
from prefold.storage.client import connect
from prefold.storage.cluster import servers_of
from prefold.storage.keys import PARTITIONS, PartitionKeys, SessionKeys, slot_of_key
from prefold.storage.types import SessionOptions, SessionRef, TurnEvent
from tests.support.cluster import Node, RunningCluster, home, one_at, one_of_each
from tests.support.gateway import served_gateway
from tests.support.redis import IN_MEMORY, running_redis
from tests.support.storage import TENANT, append, begin, summary, turn
from tests.support.waiting import wait_until_async


@pytest.fixture
async def sessions(cluster_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(cluster_url) as opened:
        yield opened


async def live(sessions: Sessions, session: str) -> list[Any]:
    """A session's whole life; all that can be read on the way, but for what is random or a time."""
    seen: list[Any] = []

    async def note() -> None:
        context = await sessions.read_context(TENANT, session)
        view = await sessions.view(TENANT, session)
        seen.append(replace(context, ref=SessionRef(TENANT, session, "")))
        seen.append((view.version, view.swaps, view.tokens, view.covers_to, view.log_tokens, view.head_seq))
        seen.append([one.verbatim_json for one in await sessions.read_turns(TENANT, session, 0, 500)])

    # A threshold of its own, because the adaptive one follows the pace, and no two lives go on as fast.
    options = SessionOptions(hard_limit_tokens=1_500, soft_ratio=0.7, user="u", system="Be brief.")
    await sessions.open(TENANT, session, options)
    ref = (await sessions.view(TENANT, session)).ref
    number = 0
    while (await sessions.view(TENANT, session)).status == "ok":
        number += 1
        await append(sessions, turn("user", f"Question {number} " * 30, id=f"q{number}"), session=session)
        asked = [{"type": "tool_use", "id": f"c{number}", "name": "lookup", "input": {}}]
        found = [{"type": "tool_result", "tool_use_id": f"c{number}", "content": "found"}]
        await append(sessions, turn("assistant", asked, id=f"c{number}"), session=session)
        await append(sessions, turn("user", found, id=f"r{number}"), session=session)
        await append(sessions, turn("assistant", f"Answer {number}.", id=f"a{number}"), session=session)
    await note()
    ticket = await begin(sessions, ref)
    assert await sessions.renew_build(ticket)
    seen.append((await sessions.commit_build(ticket, summary())).outcome)
    while not (await sessions.view(TENANT, session)).swaps:
        number += 1
        await append(sessions, turn("user", f"More {number} " * 40, id=f"m{number}"), session=session)
    await note()
    seen.append((await sessions.edit_turn(TENANT, session, f"m{number}", turn("user", "Less.", id="x"))).changed)
    seen.append((await sessions.rewind(TENANT, session, number)).turns)
    await note()
    fork = await sessions.fork(TENANT, session, f"{session}-fork", None)
    seen.append((fork.head_seq, fork.tokens, fork.covers_to))
    seen.append(await sessions.mark_embedded(ref, number, "c"))
    seen.append(await sessions.embedded_to(ref, "c"))
    seen.append((await sessions.erase(TENANT, session)).keys_left)
    return seen


@pytest.mark.parametrize("options", ["", "?client_name=general"])
async def test_a_session_lives_on_each_server_of_a_cluster_as_on_one_server(
    cluster: RunningCluster, cluster_url: str, redis_url: str, options: str
) -> None:
    """With options in the URL the general client does what the lean one does without."""
    async with connect_sessions(redis_url) as alone, connect_sessions(cluster_url + options) as sessions:
        for session in one_of_each(cluster):
            assert await live(sessions, session) == await live(alone, session)


async def test_every_key_lies_with_the_server_of_its_partition_and_all_servers_have_their_share(
    cluster: RunningCluster, sessions: Sessions
) -> None:
    for number in range(120):
        await append(sessions, turn("user", "Hi", id="t"), session=f"s{number}")
    owners = cluster.owners()
    for node in cluster.primaries():
        for key in node.ask("KEYS", "*"):
            assert owners[slot_of_key(key)] is node
    partitions = Counter(owners[slot_of_key(PartitionKeys.of(number).events)].port for number in range(PARTITIONS))
    assert len(partitions) == 3 and max(partitions.values()) < 96  # other tests move some slots


async def test_events_and_due_entries_of_all_partitions_are_found_once(sessions: Sessions) -> None:
    written = {(f"s{number}", number % 3 + 1) for number in range(90)}
    await sessions.events.ensure_groups()
    for session, turns in written:
        await append(sessions, *(turn("user", f"Hi {n}", id=f"t{n}") for n in range(turns)), session=session)
    read = await sessions.events.read("d1", 64, 2_000)
    assert {(event.ref.session, event.last_seq) for event in read} == written
    assert await sessions.events.read("d1", 64, 0) == []
    assert await sessions.events.read("d2", 64, 0) == []
    assert by_session(await sessions.events.pending("d1")) == by_session(read)
    assert by_session(await sessions.events.claim("d2", 0)) == by_session(read)
    assert await sessions.events.pending("d1") == []
    await sessions.events.ack(read)
    assert await sessions.events.pending("d2") == []
    items = await sessions.due_sets.due(2**52, 100)
    assert {item.ref.session for item in items if item.kind == "embed"} == {session for session, _ in written}


def by_session(events: list[TurnEvent]) -> dict[str, str]:
    return {event.ref.session: event.entry_id for event in events}


async def test_a_wait_for_events_ends_when_one_comes(sessions: Sessions) -> None:
    await sessions.events.ensure_groups()
    waiting = asyncio.create_task(sessions.events.read("d", 64, 5_000))
    await asyncio.sleep(0)
    await append(sessions, turn("user", "Hi"), session="late")
    (event,) = await asyncio.wait_for(waiting, 3)
    assert event.ref.session == "late"


async def test_groups_that_were_lost_are_made_again(cluster: RunningCluster, sessions: Sessions) -> None:
    await sessions.events.ensure_groups()
    session = one_of_each(cluster)[0]
    home(cluster, session).flush()
    assert await sessions.events.read("d", 64, 0) == []
    await append(sessions, turn("user", "Hi"), session=session)
    assert [event.ref.session for event in await sessions.events.read("d", 64, 0)] == [session]


@pytest.mark.parametrize("lean", [True, False])
async def test_scripts_that_one_server_forgot_are_loaded_there_again(
    cluster: RunningCluster, sessions: Sessions, *, lean: bool
) -> None:
    if not lean:
        sessions = Sessions(sessions.client)
    await sessions.load_scripts()
    for session in one_of_each(cluster):
        home(cluster, session).ask("SCRIPT", "FLUSH")
        placed = await asyncio.gather(
            *(append(sessions, turn("user", f"Hi {n}", id=f"{session}-{n}"), session=session) for n in range(8))
        )
        assert sorted(one.turns[0].seq for one in placed) == list(range(1, 9))


async def test_a_command_or_a_transaction_over_two_slots_is_never_sent(sessions: Sessions) -> None:
    one, other = SessionKeys.of(TENANT, "s1").meta, SessionKeys.of(TENANT, "s2").meta
    with pytest.raises(DataError):
        await sessions.client.exists(one, other)
    async with sessions.client.pipeline(transaction=True) as pipe:
        pipe.hget(one, "state")
        pipe.hget(other, "state")
        with pytest.raises(DataError):
            await pipe.execute()
    with pytest.raises(DataError, match="say which"):
        await sessions.client.info()


async def test_a_pipeline_over_slots_gives_replies_in_order_and_failures_in_their_place(sessions: Sessions) -> None:
    client = sessions.client
    keys = [f"{PartitionKeys.of(number).due}:test" for number in range(0, PARTITIONS, 20)]
    async with client.pipeline(transaction=False) as pipe:
        for number, key in enumerate(keys):
            pipe.set(key, number, px=60_000)
            pipe.hget(key, "not a hash")
            pipe.get(key)
        replies = await pipe.execute(raise_on_error=False)
        assert replies[::3] == [True] * len(keys)
        assert all(isinstance(reply, ResponseError) for reply in replies[1::3])
        assert replies[2::3] == [str(number).encode() for number in range(len(keys))]
        pipe.hget(keys[0], "x")
        with pytest.raises(ResponseError, match="WRONGTYPE"):
            await pipe.execute()
    assert {key async for key in client.scan_iter("*:test")} == {key.encode() for key in keys}


async def test_a_client_that_knows_one_node_only_finds_the_others(cluster: RunningCluster, cluster_url: str) -> None:
    everyone, primaries = ({one.address for one in nodes} for nodes in (cluster.living(), cluster.primaries()))

    async def finds(address: str) -> bool:
        async with connect(f"redis+cluster://{address}") as client:
            names = {server.name for server in await servers_of(client, replicas=True)}
            return (names, {server.name for server in await servers_of(client)}) == (everyone, primaries)

    for node in cluster.living():  # a young node hears of the others within moments
        await wait_until_async("all others are found", functools.partial(finds, node.address))


async def test_every_connection_gives_the_urls_credentials(cluster: RunningCluster, cluster_url: str) -> None:
    for node in cluster.nodes:
        node.ask("ACL", "SETUSER", "app", "on", ">s@cret", "~pf1:*", "+@all")
    scheme, _, nodes = cluster_url.partition("://")
    async with connect_sessions(f"{scheme}://app:s%40cret@{nodes}") as sessions:
        for session in one_of_each(cluster):
            await append(sessions, turn("user", "Hi"), session=session)
            await sessions.view(TENANT, session)
            users = {line["user"] for line in connections(home(cluster, session))}
            assert "app" in users and users <= {"app", "default", "replication-user", "(superuser)"}
    with pytest.raises(UnavailableError):
        async with connect_sessions(f"{scheme}://app:wrong@{nodes}") as sessions:
            await append(sessions, turn("user", "Hi"))
    for node in cluster.nodes:
        node.ask("ACL", "DELUSER", "app")


def connections(node: Node) -> list[dict[str, str]]:
    found: list[dict[str, str]] = node.ask("CLIENT LIST")
    return found


async def test_a_server_that_is_no_cluster_is_said_to_be_none() -> None:
    with running_redis(with_options(IN_MEMORY, port=str(port := free_port("127.0.0.1")))):
        async with connect_sessions(f"redis+cluster://127.0.0.1:{port}") as sessions:
            with pytest.raises(ConfigurationError, match="no cluster"):
                await append(sessions, turn("user", "Hi"))


async def test_a_url_of_one_node_without_the_word_cluster_is_said_to_be_wrong(cluster: RunningCluster) -> None:
    other = next(node for node in cluster.primaries() if node is not home(cluster, "s1"))
    for general in (False, True):
        async with connect_sessions(f"redis://{other.address}") as sessions:
            with pytest.raises(UnavailableError, match="redis\\+cluster://"):
                await append(Sessions(sessions.client) if general else sessions, turn("user", "Hi"), session="s1")


# The gateway.


async def test_the_gateway_serves_sessions_on_a_cluster(cluster: RunningCluster, cluster_url: str) -> None:
    async with served_gateway(cluster_url, watched=True) as served:
        for here in cluster.primaries():
            name = one_at(cluster, here, tenant="default")
            path = f"/v1/sessions/{name}"
            assert (await served.client.put(path, json={"user": "u"})).status_code == 200
            turns = {"turns": [{"id": "t1", "role": "user", "content": "Hello"}]}
            assert (await served.client.post(f"{path}/turns", json=turns)).status_code == 201
            context = (await served.client.get(f"{path}/context?format=openai")).json()
            assert context["messages"] == [{"role": "user", "content": "Hello"}]
            before = {node.port: rewrites(node) for node in cluster.primaries()}
            assert (await served.client.delete(path)).status_code == 200
            assert {node.port for node in cluster.primaries() if rewrites(node) > before[node.port]} == {here.port}
            assert (await served.client.get(path)).status_code == 410
        assert (await served.client.get("/readyz")).json()["checks"]["sessions"] == "ok"


def rewrites(node: Node) -> int:
    """How often its log was begun anew."""
    state = node.state("persistence")
    return int(state["aof_rewrites"]) + int(state["aof_rewrite_in_progress"])
