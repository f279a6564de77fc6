"""Quotas on a real server: many processes share one, none asks for each request, and the server may be away."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest
from redis.asyncio import Redis

from prefold.access import Allowance, Allowances
from prefold.errors import UnavailableError
from prefold.quotas import BuildQuotas, QuotaError, Quotas, TenantLease
from prefold.quotas.leases import BATCH_SECONDS, BURST_SECONDS
from prefold.quotas.live import LiveSessions
from prefold.storage.keys import TenantKeys
from prefold.storage.quotas import Leased, Owed, QuotaCounts
from prefold.telemetry.metrics import REGISTRY

DAY_MS = 86_400_000


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_url) as client:
        yield client


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


class Counted(QuotaCounts):
    """Counts the round trips; away when a test says so."""

    def __init__(self, client: Redis) -> None:
        super().__init__(client)
        self.asked = 0
        self.is_away = False

    async def _run(self, name: str, key: str, *args: str | bytes | int) -> object:
        self.asked += 1
        if self.is_away:
            raise UnavailableError("away")
        return await super()._run(name, key, *args)


@dataclass
class Processes:
    """Gateways that share a tenant's quota."""

    redis: Redis
    allowance: Allowance
    count: int = 1
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.counts = [Counted(self.redis) for _ in range(self.count)]
        allowances = Allowances({"ann": self.allowance})
        self.quotas = [Quotas(counts, lambda: allowances, clock=self.clock) for counts in self.counts]

    def lease(self, number: int = 0) -> TenantLease:
        lease = self.quotas[number].of("ann")
        assert lease is not None
        return lease

    async def take(self, number: int = 0, turns: int = 1, tokens: int = 10) -> bool:
        try:
            await self.lease(number).take(turns, tokens)
        except QuotaError:
            return False
        return True

    async def until_refused(self, turns: int = 1, tokens: int = 10, most: int = 100_000) -> int:
        """How often all of them let in until all refuse, without time passing here."""
        let_in, open_ones = 0, set(range(self.count))
        while open_ones:
            for number in list(open_ones):
                if await self.take(number, turns, tokens):
                    let_in += 1
                else:
                    open_ones.discard(number)
            assert let_in < most
        return let_in


def test_whoever_has_no_quota_costs_a_look(redis_url: str) -> None:
    quotas = Quotas(QuotaCounts(Redis.from_url(redis_url)), lambda: Allowances({"ann": Allowance(sessions=1)}))
    assert quotas.of("bob") is None


@pytest.mark.parametrize("processes", [1, 5])
async def test_the_tokens_of_a_day_are_overrun_by_at_most_a_batch_and_a_request_a_process(
    redis: Redis, processes: int
) -> None:
    limit, request = 10_000, 30
    house = Processes(redis, Allowance(tokens_per_day=limit), processes)
    spent = request * await house.until_refused(tokens=request)
    assert limit - processes * (limit // 200) <= spent <= limit + processes * (limit // 200 + request)
    with pytest.raises(QuotaError) as refused:
        house.lease().check()
    assert refused.value.members == {"quota": "tokens_per_day"}
    assert refused.value.retry_after is not None and 0 < refused.value.retry_after.total_seconds() <= DAY_MS / 1000


@pytest.mark.parametrize("processes", [1, 5])
async def test_a_burst_of_turns_is_overrun_by_at_most_two_batches_and_a_request_a_process(
    redis: Redis, processes: int
) -> None:
    rate, request = 40, 3
    house = Processes(redis, Allowance(turns_per_second=rate), processes)
    start = asyncio.get_running_loop().time()
    spent = request * await house.until_refused(turns=request)
    passed = asyncio.get_running_loop().time() - start
    least = rate * BURST_SECONDS - processes * rate * BATCH_SECONDS
    most = rate * (BURST_SECONDS + passed) + processes * (2 * rate * BATCH_SECONDS + request)
    assert least <= spent <= most


async def test_what_was_too_much_is_owed_so_that_the_rate_holds_in_the_long_run(redis: Redis) -> None:
    house = Processes(redis, Allowance(turns_per_second=10))
    assert await house.take(turns=100)
    assert not await house.take()
    with pytest.raises(QuotaError) as refused:
        house.lease().check()
    wait = refused.value.retry_after
    assert wait is not None and 5 <= wait.total_seconds() <= 8.2  # 100 turns less a burst of 20, and the next one
    counted = await redis.hget(TenantKeys.of("ann").quota, "level")
    assert counted is not None and -81 <= float(counted) <= -50


async def test_within_a_quota_requests_ask_nobody(redis: Redis) -> None:
    house = Processes(redis, Allowance(turns_per_second=1000, tokens_per_day=100_000_000))
    assert await house.take()
    asked = house.counts[0].asked
    for _ in range(200):
        assert house.lease().take_now("s", 1, 10)
    assert house.counts[0].asked == asked == 1


async def test_a_request_never_waits_for_the_next_batch_while_this_one_lasts(redis: Redis) -> None:
    """All of it in one turn of the loop: what is asked for meanwhile cannot have been answered."""
    house = Processes(redis, Allowance(turns_per_second=20))
    assert await house.take()
    taken = 0
    while house.lease().take_now("s", 1, 10):
        taken += 1
    assert taken == 9 + 10  # the rest of the batch, and one that is not granted yet
    assert await house.take()


@pytest.mark.parametrize(
    "allowance", [Allowance(turns_per_second=0), Allowance(tokens_per_day=0), Allowance(sessions=0)]
)
async def test_a_quota_of_nothing_lets_nothing_in(redis: Redis, allowance: Allowance) -> None:
    lease = Processes(redis, allowance).lease()
    spending = lease.admit("s1", nowhere) if allowance.sessions == 0 else lease.take(1, 1)
    with pytest.raises(QuotaError):
        await spending


async def nowhere() -> bool:
    return False


async def there() -> bool:
    return True


async def test_when_the_counts_are_away_each_process_keeps_to_the_rate_alone(redis: Redis) -> None:
    house = Processes(redis, Allowance(turns_per_second=20))
    house.counts[0].is_away = True
    let_in = 0
    for _ in range(100):  # ten seconds, a tenth at a time
        for _ in range(50):
            let_in += await house.take()
        house.clock.now += 0.1
    assert 20 * 10 * 0.8 <= let_in <= 20 * 10 + 2 * 20 * BATCH_SECONDS + 2
    house.counts[0].is_away = False
    house.clock.now += 1
    asked = house.counts[0].asked
    await house.lease()._lease()
    assert await redis.exists(TenantKeys.of("ann").quota) == 1
    assert house.counts[0].asked == asked + 1


async def test_tokens_that_were_spent_while_the_counts_were_away_are_counted_afterwards(redis: Redis) -> None:
    house = Processes(redis, Allowance(tokens_per_day=10_000))
    assert await house.take(tokens=10)
    house.counts[0].is_away = True
    for _ in range(30):
        assert await house.take(tokens=1_000)
        house.clock.now += 1
    house.counts[0].is_away = False
    house.clock.now += 1
    await house.lease()._lease()
    assert not await house.take(tokens=1)
    used = await redis.hget(TenantKeys.of("ann").quota, "used")
    assert used is not None and int(used) >= 30_000


async def test_a_server_that_refuses_to_count_holds_up_nobody(redis: Redis) -> None:
    await redis.set(TenantKeys.of("ann").quota, "no hash", ex=60)
    await redis.set(TenantKeys.of("ann").quota_sessions, "no set", ex=60)
    house = Processes(redis, Allowance(turns_per_second=20, sessions=1, builds_per_hour=1))
    assert await house.take()
    await house.lease().admit("s1", nowhere)
    await house.quotas[0].forget_session("ann", "s1")
    await house.quotas[0].close()
    await BuildQuotas(QuotaCounts(redis), lambda: Allowances({"ann": house.allowance})).take("ann")


async def test_counts_that_hang_hold_up_nobody_for_longer_than_a_second(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = Processes(redis, Allowance(turns_per_second=20))

    async def never(*_: object, **__: object) -> Leased:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr("prefold.quotas.leases._ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(QuotaCounts, "lease", never)
    async with asyncio.timeout(5):
        assert await house.take()


async def test_what_was_leased_and_not_spent_is_given_back_at_the_end(redis: Redis) -> None:
    first = Processes(redis, Allowance(tokens_per_day=10_000))
    assert await first.take(tokens=10)
    await first.quotas[0].close()
    assert await redis.hget(TenantKeys.of("ann").quota, "used") == b"10"


async def test_another_day_has_tokens_of_its_own_and_an_earlier_one_does_not_come_back(redis: Redis) -> None:
    counts, key = QuotaCounts(redis), TenantKeys.of("ann").quota

    async def ask() -> int:
        leased = await counts.lease("ann", rate=None, burst=1, turns=Owed(0, 0), day_limit=100, tokens=Owed(0, 1_000))
        return leased.tokens

    assert (await ask(), await ask()) == (100, 0)
    today = int(await redis.hget(key, "day") or 0)
    await redis.hset(key, mapping={"day": today + 1, "used": 100})  # the server's clock was set back a day
    assert await ask() == 0
    await redis.hset(key, mapping={"day": today - 1, "used": 100})
    assert await ask() == 100
    await redis.hset(key, mapping={"day": today + 400, "used": 100})  # it had been wrong by a year
    assert await ask() == 100


async def test_a_clock_of_the_server_that_is_set_back_refills_nothing(redis: Redis) -> None:
    counts, key = QuotaCounts(redis), TenantKeys.of("ann").quota
    ask = dict[str, object](rate=1.0, burst=2, day_limit=None, tokens=Owed(0, 0))
    assert (await counts.lease("ann", turns=Owed(0, 5), **ask)).turns == 2  # type: ignore[arg-type]
    await redis.hset(key, "at", int(await redis.hget(key, "at") or 0) + 3_600_000)
    leased = await counts.lease("ann", turns=Owed(0, 5), **ask)  # type: ignore[arg-type]
    assert leased.turns == 0 and 0 < leased.turns_wait_ms <= 1_000


async def test_sessions_are_bounded_but_one_that_is_there_goes_on(redis: Redis) -> None:
    house = Processes(redis, Allowance(sessions=2), 2)
    for number, session in ((0, "s1"), (1, "s2"), (0, "s2"), (1, "s1")):
        await house.lease(number).admit(session, nowhere)
    with pytest.raises(QuotaError):
        await house.lease(1).admit("s3", nowhere)
    with pytest.raises(QuotaError) as refused:
        await house.lease().admit("s3", nowhere)
    assert refused.value.members == {"quota": "sessions"}
    await house.lease().admit("s3", there)  # stored before there was a quota
    await house.quotas[1].forget_session("ann", "s1")
    await house.quotas[1].forget_session("ann", "s2")
    await house.lease(1).admit("s4", nowhere)


async def test_a_refusal_is_counted_by_its_quota(redis: Redis) -> None:
    def counted(quota: str) -> float:
        return REGISTRY.get_sample_value("prefold_quota_refusals_total", {"quota": quota}) or 0.0

    before = {quota: counted(quota) for quota in ("sessions", "turns_per_second", "tokens_per_day")}
    with pytest.raises(QuotaError):
        await Processes(redis, Allowance(sessions=0)).lease().admit("s1", nowhere)
    for allowance in (Allowance(turns_per_second=0), Allowance(tokens_per_day=0)):
        assert not await Processes(redis, allowance).take()
    assert {quota: counted(quota) - count for quota, count in before.items()} == dict.fromkeys(before, 1.0)


async def test_a_session_is_asked_for_once_a_process(redis: Redis) -> None:
    house = Processes(redis, Allowance(sessions=2))
    for _ in range(3):
        await house.lease().admit("s1", nowhere)
    assert house.counts[0].asked == 1
    assert house.lease().take_now("s1", 1, 1)
    assert not house.lease().take_now("s2", 1, 1)


def test_the_sessions_that_a_process_remembers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prefold.quotas.live.MOST", 2)
    live = LiveSessions()
    for tenant, session in (("ann", "s1"), ("bob", "s1"), ("ann", "s1"), ("carl", "s1")):
        live.note(tenant, session, 0.0)
    assert [live.has(tenant, "s1", 1.0) for tenant in ("ann", "bob", "carl")] == [True, False, True]
    assert not live.has("ann", "s1", 12 * 3600.0)


async def test_no_name_of_a_session_stands_in_the_count(redis: Redis) -> None:
    await Processes(redis, Allowance(sessions=2)).lease().admit("secret-name", nowhere)
    [member] = await redis.zrange(TenantKeys.of("ann").quota_sessions, 0, -1)
    assert b"secret" not in member


async def test_only_one_of_many_gets_the_last_place(redis: Redis) -> None:
    house = Processes(redis, Allowance(sessions=3), 8)
    outcomes: Sequence[object] = await asyncio.gather(
        *(house.lease(number).admit(f"s{number}", nowhere) for number in range(8)), return_exceptions=True
    )
    assert sum(outcome is None for outcome in outcomes) == 3


async def test_a_changed_quota_counts_at_once(redis: Redis) -> None:
    allowances = [Allowances({"ann": Allowance(turns_per_second=0)})]
    quotas = Quotas(QuotaCounts(redis), lambda: allowances[0])
    lease = quotas.of("ann")
    assert lease is not None
    with pytest.raises(QuotaError):
        lease.check()
    allowances[0] = Allowances({"ann": Allowance(turns_per_second=5)})
    changed = quotas.of("ann")
    assert changed is not None
    await changed.take(1, 1)
    allowances[0] = Allowances()
    assert quotas.of("ann") is None


async def test_builds_of_an_hour_are_counted_and_the_rest_told_when_to_come_back(redis: Redis) -> None:
    quotas = BuildQuotas(QuotaCounts(redis), lambda: Allowances({"ann": Allowance(builds_per_hour=2)}))
    for _ in range(2):
        await quotas.take("ann")
    with pytest.raises(QuotaError) as refused:
        await quotas.take("ann")
    assert refused.value.code == "builds_per_hour"
    assert refused.value.retry_after is not None and 0 < refused.value.retry_after.total_seconds() <= 3_660
    await quotas.take("bob")
