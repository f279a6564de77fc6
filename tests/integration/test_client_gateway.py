"""The rest of the API through the client: memory, a session's end, events, receipts, against a real gateway."""

import asyncio
import uuid
from collections.abc import Iterator

import pytest

from prefold.client import (
    AsyncPrefold,
    Degraded,
    DeletedFact,
    Erased,
    ErasedSession,
    ErasedUser,
    Fact,
    FactSource,
    Prefold,
    Proposal,
)
from prefold.errors import GoneError, NotFoundError
from prefold.pinned import Pinned, Proposed, change_state, with_proposals
from prefold.storage import connect_sessions
from prefold.storage.memory_types import StoredState
from prefold.tokens import load_counter
from tests.support.gateway_thread import gateway_thread
from tests.support.redis import RunningRedis, endless_keys, running_redis
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def redis() -> Iterator[RunningRedis]:
    with running_redis() as server:
        yield server
        assert endless_keys(server.url) == []


@pytest.fixture(scope="module")
def url(redis: RunningRedis) -> Iterator[str]:
    with gateway_thread(redis.url) as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[Prefold]:
    with Prefold(url) as prefold:
        yield prefold


@pytest.fixture
def name() -> str:
    return uuid.uuid4().hex[:12]


def test_facts_are_added_listed_corrected_and_deleted(client: Prefold, name: str) -> None:
    client.create_session(f"s-{name}", user=name)
    client.append(f"s-{name}", "user", "I live in Graz.", id="m1")
    added = client.add_fact(
        name, "lives_in", "Graz", is_entity=True, sources=[{"session": f"s-{name}", "turn_id": "m1"}]
    )
    assert isinstance(added, Fact)
    assert added.sources == (FactSource(f"s-{name}", "m1", 1),)
    client.add_fact(name, "likes", "tea")
    page = client.facts(name, limit=1)
    assert page.next_after is not None
    rest = client.facts(name, after=page.next_after)
    assert {one.object for one in (*page.facts, *rest.facts)} == {"Graz", "tea"}
    assert [one.object for one in client.facts(name, category=added.category).facts] == ["Graz"]

    corrected = client.correct_fact(name, added.id, object="Linz")
    assert [one.object for one in client.facts(name).facts if one.relation == "lives_in"] == ["Linz"]
    assert "Graz" in {one.object for one in client.facts(name, history=True).facts}
    graph = client.graph(name, entity="Linz", hops=1)
    assert [(edge.relation, edge.fact) for edge in graph.edges] == [("lives_in", corrected.id)]

    deleted = client.delete_fact(name, corrected.id)
    assert isinstance(deleted, DeletedFact)
    assert (deleted.facts_left, deleted.vectors_left) == (0, 0)
    assert "Linz" not in {one.object for one in client.facts(name).facts}


async def test_proposals_are_accepted_and_rejected(redis: RunningRedis, url: str, name: str) -> None:
    async with AsyncPrefold(url) as client, connect_sessions(redis.url) as sessions:
        await client.create_session(name)
        proposed = [Proposed("goal", "Ship", 1, "m1"), Proposed("decisions", "Red", 1, "m1")]

        def change(pinned: Pinned, stored: StoredState) -> Pinned:
            return with_proposals(pinned, proposed, apply=False, counter=load_counter(), cap_tokens=stored.cap_tokens)

        await change_state(sessions, "default", name, change)
        goal, decision = (await client.state(name)).proposals
        assert isinstance(goal, Proposal)
        assert (goal.value, goal.status, goal.sources) == ("Ship", "proposed", ({"turn_id": "m1", "seq": 1},))
        assert (await client.accept_proposal(name, goal.id)).state == {"goal": "Ship"}
        assert (await client.reject_proposal(name, decision.id)).proposals == ()


def test_a_session_is_closed_its_contexts_are_recorded_and_usage_is_told(client: Prefold, name: str) -> None:
    empty = client.create_session(name)
    assert empty.closed_at is None
    assert client.close_session(name).closed
    client.append(name, "user", "Hello")
    closing = client.close_session(name)
    assert (closing.closed, closing.turns_open) == (False, 1)

    served = client.context(name, budget_tokens=1000)
    (record,) = wait_until("the record is written", lambda: client.contexts(name, limit=1))
    assert (record.tokens, record.budget_tokens, record.format) == (served.tokens, 1000, "anthropic")
    days = client.usage(days=2)
    assert [day.calls for day in days] == [0, 0]


def test_erasures_give_typed_receipts(client: Prefold, name: str) -> None:
    for session in ("one", "two"):
        client.create_session(f"{session}-{name}", user=name)
        client.append(f"{session}-{name}", "user", "Hello")
    client.add_fact(name, "likes", "tea")

    receipt = client.erase_session(f"one-{name}")
    assert isinstance(receipt, ErasedSession)
    assert (receipt.turns, receipt.keys_left, receipt.not_checked) == (1, 0, ("jobs",))
    assert all(one.where and one.until for one in receipt.remains)
    user = client.erase_user(name)
    assert isinstance(user, ErasedUser)
    assert (user.facts, user.facts_left, user.sessions_left) == (1, 0, ())
    assert f"two-{name}" in user.sessions
    with pytest.raises(GoneError):
        client.context(f"two-{name}")
    with pytest.raises(NotFoundError):
        client.erase_session(f"never-{name}")


async def test_events_are_typed_and_end_with_the_session(url: str, name: str) -> None:
    async with AsyncPrefold(url) as client:
        await client.create_session(name, hard_limit_tokens=1000)
        for _ in range(3):
            await client.append(name, "user", "word " * 450)  # over the limit, and nobody writes summaries

        events = client.events(name)
        async with asyncio.timeout(20):
            told = [await anext(events)]
            await client.erase_session(name)
            told += [event async for event in events]
    assert [type(event) for event in told] == [Degraded, Erased]


def test_listening_to_a_session_that_is_not_there_is_refused(client: Prefold) -> None:
    with pytest.raises(NotFoundError):
        next(client.events("never-there"))
