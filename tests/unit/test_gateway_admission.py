"""Whose request is next, by a clock that a test moves."""

import asyncio
import heapq
import itertools
from collections import deque

import pytest

from prefold.errors import OverloadedError
from prefold.gateway.admission import ACTIVE_SECONDS, LEAST_SHARE, Admission, TenantQueue


class House:
    """Requests that each take a tenth of a second, in a process that works on one at a time."""

    def __init__(self, places: int, most: int = 1000) -> None:
        self.now = 0.0
        self.admission = Admission(places=places, most_of_tenant=most, clock=lambda: self.now)
        self.inside: deque[tuple[str, TenantQueue, float]] = deque()
        self.entered: list[str] = []
        self._waiters: list[asyncio.Task[None]] = []

    async def come(self, tenant: str) -> None:
        queue = self.admission.arrive(tenant)
        if self.admission.try_enter(queue, self.now):
            self._in(tenant, queue)
        else:
            self._waiters.append(asyncio.create_task(self._wait(tenant, queue)))
        await settled()

    async def _wait(self, tenant: str, queue: TenantQueue) -> None:
        await self.admission.enter(queue)
        self._in(tenant, queue)

    def _in(self, tenant: str, queue: TenantQueue) -> None:
        self.inside.append((tenant, queue, self.now))
        self.entered.append(tenant)

    async def serve(self, seconds: float = 0.1) -> str:
        """Ends the request that is inside longest; whose it was."""
        self.now += seconds
        tenant, queue, since = self.inside.popleft()
        self.admission.leave(queue, self.now - since)
        self.admission.depart(queue)
        await settled()
        return tenant

    async def close(self) -> None:
        for task in self._waiters:
            task.cancel()
        await asyncio.gather(*self._waiters, return_exceptions=True)


async def settled() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


async def test_a_tenant_alone_has_half_the_places_and_waits_for_nobody() -> None:
    house = House(places=16)
    for _ in range(8):
        await house.come("ann")
    assert (len(house.inside), house.admission.waiting) == (8, 0)


async def test_what_a_tenant_does_for_long_leaves_places_to_whoever_comes() -> None:
    house = House(places=16)
    for number in range(40):
        await house.come("slow")
        if number == 20:
            await house.come("second")
    assert [tenant for tenant, _, _ in house.inside].count("slow") == 8
    for tenant in ("second", "third", "fourth"):
        await house.come(tenant)
        assert house.entered[-1] == tenant
    await house.close()


async def test_a_newcomer_is_next_however_many_of_another_wait() -> None:
    house = House(places=4)
    for _ in range(100):
        await house.come("flood")
    await house.come("quiet")
    assert await house.serve() == "flood"
    assert house.entered[-1] == "quiet"
    await house.close()


async def test_tenants_that_wait_take_turns_each_in_its_own_order() -> None:
    house = House(places=LEAST_SHARE)
    for tenant in ("ann", "ann", "ann", "ann", "ann", "ann", "bob", "bob", "carl", "carl"):
        await house.come(tenant)
    for _ in range(10):
        await house.serve()
    assert house.entered[:6] == ["ann"] * 4 + house.entered[4:6]
    assert {*house.entered[4:6]} == {"bob", "carl"}
    assert sorted(house.entered) == ["ann"] * 6 + ["bob"] * 2 + ["carl"] * 2


async def test_whoever_takes_longer_waits_longer() -> None:
    house = House(places=LEAST_SHARE)
    for tenant in itertools.islice(itertools.cycle(("slow", "fast")), 80):
        await house.come(tenant)
    for _ in range(40):
        await house.serve(1.0 if house.inside[0][0] == "slow" else 0.05)
    served = house.entered[LEAST_SHARE:]
    assert served.count("fast") > 2 * served.count("slow")
    await house.close()


async def test_while_others_ask_a_tenant_leaves_places_free_for_them() -> None:
    house = House(places=64)
    for number in range(20):
        await house.come(f"quiet{number}")
        await house.serve()
    for _ in range(100):
        await house.come("flood")
    assert len(house.inside) == LEAST_SHARE
    await house.come("quiet0")
    assert house.entered[-1] == "quiet0"
    await house.close()


async def test_when_the_others_have_gone_a_tenant_has_half_the_places_again() -> None:
    house = House(places=32)
    for tenant in ("ann", "bob", "carl", "dora"):
        await house.come(tenant)
        await house.serve()
    house.now += 2 * ACTIVE_SECONDS
    for _ in range(20):
        await house.come("ann")
    assert len(house.inside) == 16
    await house.close()


async def test_whoever_comes_back_after_a_rest_has_saved_up_nothing() -> None:
    house = House(places=LEAST_SHARE)
    await house.come("late")
    await house.serve()
    for _ in range(50):
        await house.come("busy")
    for _ in range(30):
        await house.serve()
    for _ in range(20):
        await house.come("late")
        await house.come("busy")
    before = len(house.entered)
    for _ in range(20):
        await house.serve()
    served = house.entered[before:]
    assert 6 <= served.count("late") <= 14
    await house.close()


async def test_of_one_tenant_only_so_many_may_be_there_and_the_others_come_in_all_the_same() -> None:
    house = House(places=4, most=6)
    for _ in range(6):
        await house.come("flood")
    with pytest.raises(OverloadedError) as refused:
        await house.come("flood")
    assert refused.value.retry_after is not None
    await house.come("quiet")
    await house.serve()
    assert house.entered[-1] == "quiet"
    await house.come("flood")
    await house.close()


async def test_in_a_full_house_only_those_with_hardly_a_request_are_let_in() -> None:
    admission = Admission(places=4, most_of_tenant=100, most_when_crowded=2)
    for _ in range(5):
        admission.arrive("flood")
    with pytest.raises(OverloadedError):
        admission.arrive("flood", crowded=True)
    for _ in range(2):
        admission.arrive("quiet", crowded=True)
    with pytest.raises(OverloadedError):
        admission.arrive("quiet", crowded=True)


async def test_a_request_that_gives_up_leaves_no_hole() -> None:
    house = House(places=1)
    for tenant in ("ann", "bob", "carl"):
        await house.come(tenant)
    house._waiters[0].cancel()
    await settled()
    await house.serve()
    assert house.entered == ["ann", "carl"]
    await house.serve()
    assert (house.admission.waiting, house.admission._free) == (0, 1)


async def test_a_request_that_gives_up_as_it_is_let_in_passes_its_place_on() -> None:
    house = House(places=1)
    for tenant in ("ann", "bob", "carl"):
        await house.come(tenant)
    house.now += 0.1
    _, queue, _ = house.inside.popleft()
    house.admission.leave(queue, 0.1)
    house._waiters[0].cancel()  # before it has run again
    await settled()
    assert house.entered == ["ann", "carl"]


async def test_a_flood_at_a_hundred_times_leaves_the_waits_of_twenty_quiet_tenants_as_they_were() -> None:
    """A process that does a request in 1 ms, one at a time: quiet tenants at 5/s each, then a flood of 2,000/s beside."""
    alone, flooded = await waits_of_the_quiet(0), await waits_of_the_quiet(2_000)
    assert p95(flooded) <= p95(alone) + (LEAST_SHARE + 2) * 0.001
    assert len(flooded) == len(alone)


async def waits_of_the_quiet(flood: int, seconds: float = 2.0) -> list[float]:
    house = House(places=64, most=256)
    coming = [(number / 100, f"quiet{number % 20}") for number in range(int(seconds * 100))]
    coming += [(number / flood, "flood") for number in range(int(seconds * flood))]
    heapq.heapify(coming)
    waits: list[float] = []
    came: dict[str, deque[float]] = {}
    while coming or house.inside:
        while coming and coming[0][0] <= house.now:
            at, tenant = heapq.heappop(coming)
            try:
                await house.come(tenant)
            except OverloadedError:
                continue
            came.setdefault(tenant, deque()).append(at)
        if house.inside:
            tenant = await house.serve(0.001)
            since = came[tenant].popleft()
            if tenant != "flood":
                waits.append(house.now - since)
        else:
            house.now = coming[0][0]
    return waits


def p95(waits: list[float]) -> float:
    return sorted(waits)[int(len(waits) * 0.95)]
