"""Published turns that have to wait cost their tenant nothing."""

from collections.abc import AsyncIterator
from unittest.mock import AsyncMock

import pytest
from redis.asyncio import Redis

from prefold.access import Allowance, Allowances
from prefold.conversation.accepting import prepare_body
from prefold.dispatcher.ingesting import opened_ingest
from prefold.errors import UnavailableError
from prefold.gateway.settings import GatewaySettings
from prefold.quotas import Quotas
from prefold.storage import Sessions, connect_sessions
from prefold.storage.append import changing
from prefold.storage.keys import TenantKeys
from prefold.storage.quotas import QuotaCounts
from prefold.tokens import load_counter
from tests.support.publishing_turns import TENANT, publish_turns, settings, turn_json


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


@pytest.mark.parametrize("why", ["no session more", "the store is away", "the session is being changed"])
async def test_entries_that_have_to_wait_use_up_no_quota(
    redis: Redis, redis_url: str, sessions: Sessions, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    allowance = Allowance(sessions=0 if why == "no session more" else 9, tokens_per_day=100_000, turns_per_second=1_000)
    quotas = Quotas(QuotaCounts(redis), lambda: Allowances(of_tenants={TENANT: allowance}))
    if allowance.sessions:
        error = changing() if "changed" in why else UnavailableError("away")
        monkeypatch.setattr(sessions, "append", AsyncMock(side_effect=error))
    await publish_turns(redis, "s", range(9))
    async with opened_ingest(settings(redis_url)) as ingest:
        batches = ingest._batches
        batches._quotas, batches._sessions = quotas, sessions
        taken = await ingest._take(TENANT, "")
        assert isinstance(taken, list)
        for _ in range(30):
            outcome = await batches.apply(TENANT, taken, load_counter())
            assert outcome.held or outcome.failure
    await quotas.close()
    assert await redis.hget(TenantKeys.of(TENANT).quota, "used") == b"0"
    await redis.delete(TenantKeys.of(TENANT).ingest)


async def test_turns_of_an_erased_session_take_no_place_of_another(
    redis: Redis, redis_url: str, sessions: Sessions
) -> None:
    quotas = Quotas(QuotaCounts(redis), lambda: Allowances(of_tenants={TENANT: Allowance(sessions=1)}))
    await sessions.append(TENANT, "s", prepare_body(turn_json(0).encode(), load_counter(), GatewaySettings()))
    await sessions.erase(TENANT, "s")
    await publish_turns(redis, "s", range(2))
    async with opened_ingest(settings(redis_url)) as ingest:
        ingest._batches._quotas = quotas
        taken = await ingest._take(TENANT, "")
        assert isinstance(taken, list)
        outcome = await ingest._batches.apply(TENANT, taken, load_counter())
    await quotas.close()
    assert [error.code for _, error in outcome.refused] == ["session_erased"] * 2
    assert not await redis.zcard(TenantKeys.of(TENANT).quota_sessions)
