"""Facts that the gateway keeps decoded: never other than what is stored, and not for long."""

from collections.abc import AsyncIterator
from unittest.mock import AsyncMock

import pytest

from prefold.facts import FactBook
from prefold.gateway.known_facts import KnownFacts
from prefold.storage import Sessions, connect_sessions
from tests.support.remembered import add_fact

NOW_MS = 1_796_000_000_000


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as sessions:
        yield sessions


async def names(known: KnownFacts, tenant: str = "default", user: str = "dana") -> list[str]:
    facts = await known.of(tenant, user)
    return sorted(fact.object for fact in facts.facts.values())


async def test_facts_are_read_anew_when_somebody_has_written(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = AsyncMock(side_effect=sessions.users.snapshot)
    monkeypatch.setattr(sessions.users, "snapshot", reads)
    known, book = KnownFacts(sessions.users), FactBook(sessions.users)
    assert await names(known) == []
    fact = await add_fact(sessions, "dana", subject="user", relation="lives_in", object="Porto", is_entity=True)
    assert await names(known) == ["Porto"]
    before = reads.await_count
    assert await names(known) == ["Porto"]
    assert (await known.of("default", "dana")).graph.edges
    assert reads.await_count == before
    await book.delete("default", "dana", fact.id)
    assert await names(known) == []
    await add_fact(sessions, "dana", subject="user", relation="lives_in", object="Berlin")
    assert await names(known) == ["Berlin"]
    await sessions.users.erase("default", "dana")
    assert await names(known) == []


async def test_each_user_of_each_tenant_is_another(sessions: Sessions) -> None:
    known = KnownFacts(sessions.users)
    await add_fact(sessions, "dana", subject="user", relation="likes", object="tea")
    await add_fact(sessions, "dana", tenant="acme", subject="user", relation="likes", object="rum")
    assert await names(known) == ["tea"]
    assert await names(known, "acme") == ["rum"]
    assert await names(known, user="eve") == []


async def test_what_nobody_asks_for_is_not_kept(sessions: Sessions) -> None:
    now = 0.0
    known = KnownFacts(sessions.users, clock=lambda: now)
    await add_fact(sessions, "dana", subject="user", relation="likes", object="tea")
    assert await names(known) == ["tea"]
    assert len(known._kept) == 1
    now = 61.0
    assert await names(known, user="eve") == []
    assert list(known._kept) == [("default", "eve")]


async def test_a_fact_whose_time_has_come_is_not_live(sessions: Sessions) -> None:
    fact = await add_fact(
        sessions, "dana", subject="user", relation="likes", object="tea", expires_at_ms=4_000_000_000_000
    )
    facts = await KnownFacts(sessions.users).of("default", "dana")
    assert facts.live(fact.id, NOW_MS) == fact
    assert facts.live(fact.id, 4_000_000_000_000) is None
