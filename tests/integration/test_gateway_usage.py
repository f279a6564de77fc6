"""``GET /v1/usage``."""

import hashlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from prefold.gateway.credentials import KeyRing
from prefold.gateway.guard import KeyGuard
from prefold.storage.spending import Held, Settlement
from prefold.storage.types import ModelUsage
from tests.support.gateway import Served, served_gateway

USED = ModelUsage(
    calls=2, input_tokens=10, cache_read_tokens=20, cache_write_tokens=30, output_tokens=40, micro_usd=1_500_000
)


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as served:
        yield served


async def spend(served: Served, tenant: str, days_ago: int = 0) -> None:
    day = (datetime.now(UTC) - timedelta(days=days_ago)).strftime("%Y%m%d")
    done, open_ = Held(tenant, day, "a" * 12, 1), Held(tenant, day, "b" * 12, 250_000)
    for held in (done, open_):
        assert await served.sessions.spending.reserve(held, 2_000_000)
    await served.sessions.spending.settle(done, Settlement(USED, failed=True, unclear=True, unpriced=True))


async def test_a_tenant_sees_its_days_newest_first_with_what_each_call_took(served: Served) -> None:
    await spend(served, "default", 1)
    answer = (await served.client.get("/v1/usage?days=3")).json()
    assert [day["calls"] for day in answer["days"]] == [0, 2, 0]
    assert answer["days"][1] == {
        "day": (datetime.now(UTC) - timedelta(days=1)).date().isoformat(),
        "calls": 2,
        "input_tokens": 10,
        "cache_read_tokens": 20,
        "cache_write_tokens": 30,
        "output_tokens": 40,
        "cost_usd": 1.5,
        "held_usd": 0.25,
        "failed_calls": 1,
        "estimated_calls": 1,
        "unpriced_calls": 1,
        "budget_usd": 2.0,
    }


async def test_a_week_is_told_unless_something_else_is_asked_for(served: Served) -> None:
    answer = (await served.client.get("/v1/usage")).json()
    assert len(answer["days"]) == 7
    assert all(day["calls"] == 0 and day["budget_usd"] is None for day in answer["days"])


@pytest.mark.parametrize("query", ["days=0", "days=93", "days=x", "days=-1", "days=", "days=1&days=2", "day=1"])
async def test_what_cannot_be_told_is_refused(served: Served, query: str) -> None:
    assert (await served.client.get(f"/v1/usage?{query}")).status_code in (400, 422)


async def test_a_tenant_sees_its_own_days_alone(redis_url: str, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    tenants = ("acme", "other")
    path.write_text(json.dumps({tenant: hashlib.sha256(f"k-{tenant}".encode()).hexdigest() for tenant in tenants}))
    keys = KeyRing(path)
    keys.load()
    async with served_gateway(redis_url, guard=KeyGuard(keys)) as served:
        await spend(served, "acme")
        calls = {}
        for key in ("k-acme", "k-other"):
            answer = await served.client.get("/v1/usage?days=1", headers={"authorization": f"Bearer {key}"})
            calls[key] = answer.json()["days"][0]["calls"]
        assert calls == {"k-acme": 2, "k-other": 0}
        assert (await served.client.get("/v1/usage")).status_code == 401
