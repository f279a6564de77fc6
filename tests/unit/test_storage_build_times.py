"""How long a build takes, as appends are told."""

import asyncio
from datetime import timedelta

import pytest

from prefold.storage.build_times import BuildLeads, _p95
from tests.support.waiting import wait_until_async


@pytest.mark.parametrize(
    ("measured", "told"),
    [
        ([], 180_000),
        ([1_000] * 18, 180_000),
        ([1_000] * 19, 1_000),
        ([1_000] * 19 + [90_000], 1_000),
        ([1_000] * 18 + [90_000] * 2, 90_000),
        ([*range(1, 201)], 190),
    ],
    ids=["none", "too few", "enough", "one slow of twenty", "two slow of twenty", "two hundred"],
)
def test_the_prior_counts_until_enough_is_measured(measured: list[int], told: int) -> None:
    assert _p95(measured, 180_000) == told


class Times:
    def __init__(self) -> None:
        self.reads = 0
        self.lead = 700
        self.may = asyncio.Event()

    async def lead_ms(self, tenant: str, prior_ms: int) -> int:
        self.reads += 1
        await self.may.wait()
        return self.lead


async def told(leads: BuildLeads, lead_ms: int) -> bool:
    return leads.ms_of("a") == lead_ms


async def test_an_append_is_told_at_once_what_is_known_and_news_come_in_the_background() -> None:
    times, now = Times(), [100.0]
    leads = BuildLeads(times, timedelta(seconds=180), monotonic=lambda: now[0])  # type: ignore[arg-type]
    assert [leads.ms_of("a"), leads.ms_of("a")] == [180_000, 180_000]
    await asyncio.sleep(0)
    assert times.reads == 1
    times.may.set()
    await wait_until_async("the first reading is in", lambda: told(leads, 700))
    assert times.reads == 1
    now[0] += 11
    times.lead = 900
    assert leads.ms_of("a") == 700
    await wait_until_async("the second reading is in", lambda: told(leads, 900))
    assert times.reads == 2
    await leads.close()
