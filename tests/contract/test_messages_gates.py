"""The gate in front of a provider's key: the one of a process, and the one that all workers share."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from itertools import count
from typing import Protocol

import pytest
from redis.asyncio import Redis

from prefold.messages.gate import Admission, Gate, GateLimits, GateRules, Noted, Report
from prefold.messages.local_gate import LocalGate
from prefold.messages.shared_gate import RedisGate

MODEL = "claude-haiku-5-5"
OTHER = "claude-sonnet-5-5"
RULES = GateRules(failures_to_open=3)
WELL = Report("well")
TROUBLE = Report("trouble", "model_unavailable")
PARKED = Report("parked", "model_credentials")
UNKNOWN = Report("useless_model", "model_unknown")
BARE = Report("busy", "model_spend_limit", timedelta(seconds=3), is_bare=True)
_ids = count(1)


class Clock:
    """Both gates' clock."""

    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def forward(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)


class MakeGate(Protocol):
    def __call__(self, limits: GateLimits | None = None, rules: GateRules = RULES) -> Gate: ...


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["local", "redis"])
async def make_gate(request: pytest.FixtureRequest, clock: Clock) -> AsyncIterator[MakeGate]:
    async with AsyncExitStack() as stack:
        client: Redis | None = None
        if request.param == "redis":
            client = await stack.enter_async_context(Redis.from_url(request.getfixturevalue("redis_url")))

        def make(limits: GateLimits | None = None, rules: GateRules = RULES) -> Gate:
            if client is None:
                return LocalGate(limits, rules, monotonic=lambda: clock.ms / 1000)
            return RedisGate(client, "c0ffee", limits, rules, now_ms=lambda: clock.ms)

        yield make


async def admitted(gate: Gate, tokens: int = 100, model: str = MODEL) -> tuple[str, Admission]:
    call_id = f"{next(_ids):012x}"
    return call_id, await gate.admit(model, call_id, tokens)


async def verdict(gate: Gate, tokens: int = 100, model: str = MODEL) -> str:
    return (await admitted(gate, tokens, model))[1].verdict


async def told(gate: Gate, report: Report, model: str = MODEL) -> Noted:
    """One call that is let in, and what came of it."""
    call_id, admission = await admitted(gate, model=model)
    assert admission.verdict == "go", admission
    return await gate.note(model, call_id, report)


async def broken(gate: Gate, model: str = MODEL) -> Noted:
    """A breaker that has just opened."""
    for _ in range(RULES.failures_to_open - 1):
        assert (await told(gate, TROUBLE, model)).event == ""
    noted = await told(gate, TROUBLE, model)
    assert noted.event == "opened"
    return noted


async def test_without_limits_and_failures_every_call_goes_at_once(make_gate: MakeGate) -> None:
    gate = make_gate()
    admissions = [(await admitted(gate))[1] for _ in range(100)]
    assert set(admissions) == {Admission("go")}


async def test_a_minute_never_sees_more_than_twice_the_limit_and_an_hour_no_more_than_the_limit(
    make_gate: MakeGate, clock: Clock
) -> None:
    gate = make_gate(GateLimits(requests_per_minute=6), GateRules(most_wait=timedelta(0)))
    gone = []
    for _ in range(600):
        clock.forward(1)
        gone.append(await verdict(gate) == "go")
    assert max(sum(gone[at : at + 60]) for at in range(540)) <= 12
    assert 60 <= sum(gone) <= 66


async def test_a_call_waits_for_a_near_share_and_is_sent_away_from_a_far_one(make_gate: MakeGate) -> None:
    gate = make_gate(GateLimits(requests_per_minute=60))
    waits = [(await admitted(gate))[1] for _ in range(63)]
    assert [one.wait.total_seconds() for one in waits[:60]] == [0] * 60
    assert [(one.verdict, one.wait.total_seconds()) for one in waits[60:]] == [("go", 1), ("go", 2), ("busy", 3)]


async def test_input_tokens_have_a_limit_of_their_own(make_gate: MakeGate) -> None:
    gate = make_gate(GateLimits(input_tokens_per_minute=1_000))
    assert await verdict(gate, 900) == "go"
    assert await verdict(gate, 900) == "busy"
    assert await verdict(gate, 100) == "go"


async def test_a_call_larger_than_the_limit_goes_when_nothing_else_has_gone_and_holds_up_the_next(
    make_gate: MakeGate, clock: Clock
) -> None:
    gate = make_gate(GateLimits(input_tokens_per_minute=1_000))
    assert await verdict(gate, 5_000) == "go"
    assert await verdict(gate, 5_000) == "busy"
    clock.forward(4 * 60)
    assert await verdict(gate, 10) == "go"


async def test_tokens_that_were_not_used_are_given_back(make_gate: MakeGate) -> None:
    gate = make_gate(GateLimits(input_tokens_per_minute=1_000))
    call_id, _ = await admitted(gate, 1_000)
    assert await verdict(gate, 500) == "busy"
    await gate.note(MODEL, call_id, Report("well", refund_tokens=600))
    assert await verdict(gate, 500) == "go"


async def test_a_rate_limit_keeps_every_call_of_its_model_away_for_as_long_as_it_says_and_no_others(
    make_gate: MakeGate, clock: Clock
) -> None:
    gate = make_gate()
    await told(gate, Report("busy", "model_rate_limited", timedelta(seconds=30)))
    _, kept = await admitted(gate)
    assert (kept.verdict, kept.wait) == ("busy", timedelta(seconds=30))
    assert (await admitted(gate, model=OTHER))[1] == Admission("go")
    clock.forward(29)
    _, near = await admitted(gate)
    assert (near.verdict, near.wait) == ("go", timedelta(seconds=1))


async def test_a_shorter_wait_never_shortens_a_longer_one(make_gate: MakeGate) -> None:
    gate = make_gate()
    (first, _), (second, _) = await admitted(gate), await admitted(gate)
    await gate.note(MODEL, first, Report("busy", "model_rate_limited", timedelta(seconds=60)))
    await gate.note(MODEL, second, Report("busy", "model_rate_limited", timedelta(seconds=10)))
    assert (await admitted(gate))[1].wait == timedelta(seconds=60)


async def test_failures_in_a_row_open_the_breaker_of_their_model_only(make_gate: MakeGate) -> None:
    gate = make_gate()
    noted = await broken(gate)
    assert noted.failures == RULES.failures_to_open
    _, kept = await admitted(gate)
    assert (kept.verdict, kept.why) == ("open", "model_unavailable")
    assert timedelta(seconds=3.7) <= kept.wait <= RULES.open_pause
    assert await verdict(gate, model=OTHER) == "go"


async def test_a_success_in_between_begins_the_count_anew(make_gate: MakeGate) -> None:
    gate = make_gate()
    for report in (TROUBLE, TROUBLE, WELL, TROUBLE, TROUBLE):
        assert (await told(gate, report)).event == ""
    assert await verdict(gate) == "go"


async def test_an_open_breaker_lets_one_probe_through_and_closes_when_it_comes_back_well(
    make_gate: MakeGate, clock: Clock
) -> None:
    gate = make_gate()
    await broken(gate)
    clock.forward(RULES.open_pause.total_seconds())
    probe, admission = await admitted(gate)
    assert (admission.verdict, admission.probes) == ("go", "model")
    assert [await verdict(gate) for _ in range(3)] == ["open"] * 3
    assert (await gate.note(MODEL, probe, WELL)).event == "closed"
    assert [await verdict(gate) for _ in range(3)] == ["go"] * 3


async def test_a_breaker_whose_probes_fail_stays_open_longer_each_time_up_to_its_most(
    make_gate: MakeGate, clock: Clock
) -> None:
    gate = make_gate()
    pauses = [(await broken(gate)).left]
    for _ in range(9):
        clock.forward(RULES.most_open_pause.total_seconds())
        noted = await told(gate, TROUBLE)
        assert noted.event == "opened"
        pauses.append(noted.left)
    assert all(
        min(RULES.open_pause * 2**times, RULES.most_open_pause) * 0.74 <= pause <= RULES.most_open_pause
        for times, pause in enumerate(pauses)
    )
    assert pauses[0] <= RULES.open_pause
    assert await verdict(gate) == "open"


async def test_late_answers_to_calls_that_began_before_neither_open_nor_shut_anything(
    make_gate: MakeGate, clock: Clock
) -> None:
    gate = make_gate()
    (early, _), (earlier, _) = await admitted(gate), await admitted(gate)
    await broken(gate)
    clock.forward(1)
    before = (await admitted(gate))[1].wait
    assert (await gate.note(MODEL, early, TROUBLE)).event == ""
    assert (await gate.note(MODEL, earlier, WELL)).event == ""
    assert (await admitted(gate))[1] == Admission("open", before, "model_unavailable")


async def test_a_probe_whose_process_died_is_forgotten(make_gate: MakeGate, clock: Clock) -> None:
    gate = make_gate()
    await broken(gate)
    clock.forward(RULES.open_pause.total_seconds())
    await admitted(gate)
    assert await verdict(gate) == "open"
    clock.forward(RULES.probe_ends.total_seconds())
    assert (await admitted(gate))[1].probes == "model"


async def test_a_probe_that_was_broken_off_makes_room_for_the_next(make_gate: MakeGate, clock: Clock) -> None:
    gate = make_gate()
    await broken(gate)
    clock.forward(RULES.open_pause.total_seconds())
    probe, _ = await admitted(gate)
    await gate.note(MODEL, probe, Report("none"))
    assert (await admitted(gate))[1].probes == "model"


async def test_a_refused_key_is_parked_for_every_model_with_pauses_that_grow(make_gate: MakeGate, clock: Clock) -> None:
    gate = make_gate()
    noted = await told(gate, PARKED)
    assert noted.event == "parked"
    for model in (MODEL, OTHER):
        _, kept = await admitted(gate, model=model)
        assert (kept.verdict, kept.why) == ("parked", "model_credentials")
    pauses = [noted.left]
    for _ in range(7):
        clock.forward(RULES.most_park_pause.total_seconds())
        pauses.append((await told(gate, PARKED)).left)
    assert RULES.park_pause * 0.74 <= pauses[0] <= RULES.park_pause
    assert RULES.most_park_pause * 0.74 <= pauses[-1] <= RULES.most_park_pause
    assert pauses[2] > pauses[0]


async def test_many_calls_that_a_refused_key_meets_at_once_park_it_once(make_gate: MakeGate, clock: Clock) -> None:
    gate = make_gate()
    calls = [(await admitted(gate))[0] for _ in range(20)]
    events = [(await gate.note(MODEL, call, PARKED)).event for call in calls]
    assert events == ["parked", *[""] * 19]
    clock.forward(RULES.park_pause.total_seconds())
    assert (await admitted(gate))[1].probes == "key"


async def test_a_parked_key_stays_parked_until_its_one_probe_succeeds(make_gate: MakeGate, clock: Clock) -> None:
    gate = make_gate()
    straggler, _ = await admitted(gate)
    await told(gate, PARKED)
    assert (await gate.note(MODEL, straggler, WELL)).event == ""
    assert await verdict(gate) == "parked"
    clock.forward(RULES.park_pause.total_seconds())
    probe, admission = await admitted(gate)
    assert (admission.verdict, admission.probes) == ("go", "key")
    assert [await verdict(gate, model=model) for model in (MODEL, OTHER)] == ["parked"] * 2
    assert (await gate.note(MODEL, probe, WELL)).event == "released"
    assert [await verdict(gate, model=model) for model in (MODEL, OTHER)] == ["go"] * 2


async def test_a_probe_of_a_parked_key_that_meets_a_failing_server_is_soon_followed_by_another(
    make_gate: MakeGate, clock: Clock
) -> None:
    gate = make_gate()
    await told(gate, PARKED)
    clock.forward(RULES.park_pause.total_seconds())
    await told(gate, TROUBLE)
    assert await verdict(gate) == "parked"
    clock.forward(RULES.open_pause.total_seconds())
    assert (await told(gate, WELL)).event == "released"


async def test_a_model_that_is_not_known_shuts_itself_out_and_no_other(make_gate: MakeGate, clock: Clock) -> None:
    gate = make_gate()
    assert (await told(gate, UNKNOWN)).event == "opened"
    _, kept = await admitted(gate)
    assert (kept.verdict, kept.why) == ("open", "model_unknown")
    assert kept.wait > RULES.open_pause
    assert await verdict(gate, model=OTHER) == "go"
    clock.forward(RULES.park_pause.total_seconds())
    assert (await told(gate, WELL)).event == "closed"


async def test_a_rate_limit_that_names_no_time_is_waited_for_once_and_then_shuts_its_model_out_and_no_other(
    make_gate: MakeGate, clock: Clock
) -> None:
    gate = make_gate()
    calls = [(await admitted(gate))[0] for _ in range(5)]
    events = [(await gate.note(MODEL, call, BARE)).event for call in calls]
    assert events == [""] * 5
    clock.forward(BARE.wait.total_seconds() + 0.1)
    noted = await told(gate, BARE)
    assert noted.event == "opened"
    _, kept = await admitted(gate)
    assert (kept.verdict, kept.why) == ("open", "model_spend_limit")
    assert kept.wait > RULES.open_pause
    assert await verdict(gate, model=OTHER) == "go"
    clock.forward(RULES.park_pause.total_seconds())
    assert (await told(gate, BARE)).event == "opened", "its probe met the same"
    clock.forward(2 * RULES.park_pause.total_seconds())
    assert (await told(gate, WELL)).event == "closed"


async def test_a_success_after_a_rate_limit_that_names_no_time_forgets_it(make_gate: MakeGate, clock: Clock) -> None:
    gate = make_gate()
    for _ in range(3):
        assert (await told(gate, BARE)).event == ""
        clock.forward(BARE.wait.total_seconds() + 0.1)
        await told(gate, WELL)


async def test_a_rate_limit_met_by_a_probe_shows_that_the_key_is_good_again(make_gate: MakeGate, clock: Clock) -> None:
    gate = make_gate()
    await told(gate, PARKED)
    clock.forward(RULES.park_pause.total_seconds())
    assert (await told(gate, Report("busy", "model_rate_limited", timedelta(seconds=1)))).event == "released"
    clock.forward(1)
    assert await verdict(gate) == "go"


async def test_many_calls_at_the_same_time_get_one_probe(make_gate: MakeGate, clock: Clock) -> None:
    gate = make_gate()
    await broken(gate)
    clock.forward(RULES.open_pause.total_seconds())
    verdicts = await asyncio.gather(*(verdict(gate) for _ in range(50)))
    assert sorted(verdicts) == ["go", *["open"] * 49]
