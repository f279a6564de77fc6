"""What model calls took: sums on a real server."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import date

import pytest
from redis.asyncio import Redis

from prefold.storage import Sessions, connect_sessions
from prefold.storage.spending import DaySpending, Held, Settlement, Spending, day_of
from prefold.storage.types import ModelUsage, SessionOptions, SessionRef
from tests.support.storage import SESSION, TENANT, append, turn

DAY, DATE = "20261130", date(2026, 11, 30)
USED = ModelUsage(
    calls=1, input_tokens=10, cache_read_tokens=20, cache_write_tokens=30, output_tokens=40, micro_usd=500
)


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with Redis.from_url(redis_url) as client:
        yield Sessions(client)


@pytest.fixture
def spending(sessions: Sessions) -> Spending:
    return sessions.spending


def held(name: str, micro_usd: int = 1_000, tenant: str = TENANT) -> Held:
    return Held(tenant, DAY, f"{name:>012}", micro_usd)


async def today(spending: Spending, tenant: str = TENANT) -> DaySpending:
    return (await spending.days(tenant, DATE, 1))[0]


def times(number: int) -> ModelUsage:
    return ModelUsage(1 * number, 10 * number, 20 * number, 30 * number, 40 * number, 500 * number)


async def test_what_is_set_aside_counts_until_it_is_settled_and_then_what_was_used(spending: Spending) -> None:
    assert await spending.reserve(held("1"), 10_000)
    before = await today(spending)
    assert (before.held_micro_usd, before.usage, before.budget_micro_usd) == (1_000, ModelUsage(), 10_000)
    assert await spending.settle(held("1"), Settlement(USED))
    after = await today(spending)
    assert (after.held_micro_usd, after.usage) == (0, USED)


async def test_the_same_call_is_set_aside_once_and_settled_once(spending: Spending) -> None:
    for _ in range(3):
        assert await spending.reserve(held("1"), 1_000)
    assert (await today(spending)).held_micro_usd == 1_000
    assert [await spending.settle(held("1"), Settlement(USED)) for _ in range(3)] == [True, False, False]
    assert (await today(spending)).usage == USED


async def test_a_budget_is_never_passed_by_calls_at_the_same_time(spending: Spending) -> None:
    allowed = await asyncio.gather(*(spending.reserve(held(str(number)), 10_000) for number in range(64)))
    assert sum(allowed) == 10
    assert (await today(spending)).held_micro_usd == 10_000


async def test_what_settling_frees_can_be_spent_again(spending: Spending) -> None:
    assert await spending.reserve(held("1", 900), 1_000)
    assert not await spending.reserve(held("2", 900), 1_000)
    await spending.settle(held("1", 900), Settlement(ModelUsage(calls=1, micro_usd=100)))
    assert await spending.reserve(held("3", 900), 1_000)
    assert not await spending.reserve(held("4", 1), 1_000)


async def test_a_budget_of_nothing_allows_nothing_and_no_budget_everything(spending: Spending) -> None:
    assert not await spending.reserve(held("1", 1), 0)
    assert await spending.reserve(held("2", 1_000_000_000_000), None)


async def test_a_day_a_tenant_and_their_marks_stand_apart(spending: Spending) -> None:
    await spending.reserve(held("1"), None)
    await spending.settle(held("1"), Settlement(USED, failed=True, unclear=True, unpriced=True))
    days = await spending.days(TENANT, date(2026, 12, 1), 3)
    assert [(day.day, day.usage.calls) for day in days] == [
        (date(2026, 12, 1), 0),
        (DATE, 1),
        (date(2026, 11, 29), 0),
    ]
    assert (days[1].failed, days[1].unclear, days[1].unpriced, days[1].budget_micro_usd) == (1, 1, 1, None)
    assert (await today(spending, "other")).usage == ModelUsage()


async def test_tenants_with_odd_names_are_found_again(spending: Spending) -> None:
    names = ["acme", "a:b{c}*?[x]", "日本", "x y"]
    for name in names:
        await spending.reserve(held("1", tenant=name), None)
        assert (await today(spending, name)).held_micro_usd == 1_000
    assert await spending.tenants() == sorted(names)


async def test_a_session_adds_up_its_calls_each_once(sessions: Sessions) -> None:
    ref = (await append(sessions, turn("user", "Hello."))).ref
    noted = [await sessions.spending.note(ref, f"{number:012x}", USED) for number in (1, 2, 2, 3, 1)]
    assert noted == [True, True, False, True, False]
    assert (await sessions.view(TENANT, SESSION)).usage == times(3)
    assert await sessions.spending.sessions(TENANT) == [(SESSION, times(3))]


async def test_calls_of_one_session_at_the_same_time_all_count(sessions: Sessions) -> None:
    ref = (await append(sessions, turn("user", "Hello."))).ref
    await asyncio.gather(*(sessions.spending.note(ref, f"{number:012x}", USED) for number in range(64)))
    assert (await sessions.view(TENANT, SESSION)).usage == times(64)


async def test_a_sum_of_millions_of_calls_stays_exact(sessions: Sessions, redis: Redis) -> None:
    ref = (await append(sessions, turn("user", "Hello."))).ref
    large = ModelUsage(10**9, 10**15, 10**15, 10**15, 10**15, 9 * 10**15)
    await sessions.spending.note(ref, "0" * 12, large)
    await sessions.spending.note(ref, "1" * 12, USED)
    assert (await sessions.view(TENANT, SESSION)).usage.micro_usd == 9 * 10**15 + 500


async def test_an_erased_session_is_not_brought_back_and_another_life_of_it_pays_nothing(
    sessions: Sessions, redis: Redis
) -> None:
    ref = (await append(sessions, turn("user", "Hello."))).ref
    await sessions.erase(TENANT, SESSION)
    before = set(await redis.keys("*"))
    assert not await sessions.spending.note(ref, "0" * 12, USED)
    assert not await sessions.spending.note(SessionRef(TENANT, "never", "0" * 12), "1" * 12, USED)
    assert set(await redis.keys("*")) == before
    assert await sessions.spending.sessions(TENANT) == []
    await sessions.open(TENANT, SESSION, SessionOptions())
    assert not await sessions.spending.note(ref, "2" * 12, USED)
    assert (await sessions.view(TENANT, SESSION)).usage == ModelUsage()


async def test_the_money_of_a_killed_process_stays_set_aside_and_what_it_settled_is_kept(
    spending: Spending, redis_url: str
) -> None:
    program = f"""
import asyncio, os
from redis.asyncio import Redis
from prefold.storage.spending import Held, Settlement, Spending
from prefold.storage.types import ModelUsage

async def work():
    spending = Spending(Redis.from_url({redis_url!r}))
    done, lost = (Held("acme", "{DAY}", one * 12, 1_000) for one in "ab")
    await spending.reserve(done, 2_500)
    await spending.reserve(lost, 2_500)
    await spending.settle(done, Settlement(ModelUsage(calls=1, micro_usd=500)))
    os.kill(os.getpid(), 9)

asyncio.run(work())
"""
    ended = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", program], check=False)
    assert ended.returncode == -9
    left = await today(spending)
    assert (left.usage.micro_usd, left.held_micro_usd) == (500, 1_000)
    assert not await spending.reserve(held("1", 1_001), 2_500)
    assert await spending.reserve(held("2", 1_000), 2_500)


async def test_a_day_ends_and_is_named_in_utc(spending: Spending, redis: Redis) -> None:
    await spending.reserve(held("1"), None)
    (key,) = await redis.keys("*spending*")
    assert 399 * 86_400 < await redis.ttl(key) <= 400 * 86_400
    assert day_of(1_796_083_199_999) == "20261130"
    assert day_of(1_796_083_200_000) == "20261201"


async def test_on_a_cluster_all_of_it_is_the_same(cluster_url: str) -> None:
    async with connect_sessions(cluster_url) as sessions:
        spending = sessions.spending
        for number in range(8):
            ref = (await sessions.append(TENANT, f"s{number}", [turn("user", "Hello.")])).ref
            assert await spending.note(ref, "0" * 12, times(number + 1))
            name = f"tenant-{number}"
            assert await spending.reserve(held("1", tenant=name), 1_500)
            assert not await spending.reserve(held("2", tenant=name), 1_500)
            assert await spending.settle(held("1", tenant=name), Settlement(USED))
            assert (await today(spending, name)).usage == USED
        assert await spending.tenants() == [f"tenant-{number}" for number in range(8)]
        assert await spending.sessions(TENANT) == [(f"s{number}", times(number + 1)) for number in range(7, -1, -1)]
