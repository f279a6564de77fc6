"""When a build is wanted: the threshold that follows pace and build time, and sessions that rest."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from prefold.storage import Sessions, connect_sessions
from prefold.storage.append import Defaults
from prefold.storage.types import SessionOptions, SessionView
from tests.support.storage import LEASE_MS, SESSION, TENANT, append, begin, call, results, summary, turn

START_MS = 1_900_000_000_000
LIMIT = 20_000
WORDS = "word " * 93


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    defaults = Defaults(hard_limit_tokens=LIMIT, lead=timedelta(seconds=24))
    async with connect_sessions(redis_url, defaults=defaults) as opened:
        opened.now_ms = START_MS
        yield opened


async def talk(sessions: Sessions, turns: int, *, every_seconds: float) -> SessionView:
    """So many turns of a hundred tokens at that pace."""
    for number in range(turns):
        assert sessions.now_ms is not None
        sessions.now_ms += int(every_seconds * 1000)
        await append(sessions, turn("user" if number % 2 == 0 else "assistant", WORDS))
    return await sessions.view(TENANT, SESSION)


def pace_of(view: SessionView) -> tuple[float, float]:
    assert view.pace is not None
    return view.pace.tokens_per_minute, view.pace.ratio


async def test_a_slow_session_has_its_standby_built_late(sessions: Sessions) -> None:
    view = await talk(sessions, 30, every_seconds=60)
    per_minute, ratio = pace_of(view)
    assert 95 < per_minute < 130
    assert ratio == 0.85
    assert view.soft_threshold_tokens == LIMIT * 0.85


async def test_what_is_free_beyond_the_threshold_outlasts_a_build_at_the_sessions_pace(sessions: Sessions) -> None:
    view = await talk(sessions, 100, every_seconds=1)
    per_minute, ratio = pace_of(view)
    assert 5_500 < per_minute < 6_700
    assert ratio == pytest.approx(1 - per_minute / LIMIT, abs=0.002), "two and a half times 24 s"


@pytest.mark.parametrize(("lead_seconds", "ratio"), [(1, 0.85), (600, 0.4)])
async def test_the_threshold_stays_within_its_bounds(redis_url: str, lead_seconds: int, ratio: float) -> None:
    defaults = Defaults(hard_limit_tokens=LIMIT, lead=timedelta(seconds=lead_seconds))
    async with connect_sessions(redis_url, defaults=defaults) as sessions:
        sessions.now_ms = START_MS
        view = await talk(sessions, 40, every_seconds=1)
    assert view.pace is not None and view.pace.build_seconds == lead_seconds
    assert view.pace.ratio == ratio


async def test_a_burst_that_is_over_is_forgotten(sessions: Sessions) -> None:
    _, fast = pace_of(await talk(sessions, 100, every_seconds=1))
    assert sessions.now_ms is not None
    sessions.now_ms += 30 * 60_000
    _, slow = pace_of(await talk(sessions, 1, every_seconds=1))
    assert fast < 0.75 < slow == 0.85


async def test_the_pace_fades_although_the_backend_puts_the_session_before_each_turn(sessions: Sessions) -> None:
    for _ in range(30):
        assert sessions.now_ms is not None
        sessions.now_ms += 59_000
        await sessions.open(TENANT, SESSION, SessionOptions(model="m"))
        await talk(sessions, 1, every_seconds=1)
    per_minute, ratio = pace_of(await sessions.view(TENANT, SESSION))
    assert 95 < per_minute < 130
    assert ratio == 0.85


async def test_the_pace_fades_although_turns_are_taken_back(sessions: Sessions) -> None:
    await talk(sessions, 1, every_seconds=1)
    for _ in range(30):
        view = await talk(sessions, 1, every_seconds=1)
        assert sessions.now_ms is not None
        sessions.now_ms += 59_000
        await sessions.rewind(TENANT, SESSION, view.head_seq - 1)
    per_minute, _ = pace_of(await sessions.view(TENANT, SESSION))
    assert 80 < per_minute < 130


async def test_a_share_that_was_given_stays_until_it_is_given_up(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(soft_ratio=0.5))
    view = await talk(sessions, 20, every_seconds=60)
    assert view.pace is not None and (view.pace.adaptive, view.pace.ratio) == (False, 0.5)
    view = await sessions.open(TENANT, SESSION, SessionOptions(adaptive=True))
    assert view.pace is not None and (view.pace.adaptive, view.pace.ratio) == (True, 0.85)


async def test_turns_that_come_together_count_like_single_ones(sessions: Sessions) -> None:
    for number in range(50):
        assert sessions.now_ms is not None
        sessions.now_ms += 1000
        await append(sessions, turn("user", WORDS, id=f"a{number}"), turn("assistant", WORDS, id=f"b{number}"))
    per_minute, _ = pace_of(await sessions.view(TENANT, SESSION))
    assert 11_000 < per_minute < 14_500


async def test_measured_builds_of_the_tenant_replace_what_was_assumed(redis_url: str) -> None:
    async with connect_sessions(redis_url, lead=timedelta(seconds=180)) as sessions:
        for _ in range(30):
            await sessions.note_build_time(TENANT, "anthropic", 12.5)
        assert await sessions.build_times.lead_ms(TENANT, 180_000) == 12_500
        assert await sessions.build_times.lead_ms("other", 180_000) == 180_000
        assert sessions.leads is not None
        await append(sessions, turn("user", "Hello"))
        view = await sessions.view(TENANT, SESSION)
        assert view.pace is not None and view.pace.build_seconds == 180
        while sessions.leads.ms_of(TENANT) != 12_500:
            await sessions.client.ping()
        await append(sessions, turn("assistant", "Hello"))
        view = await sessions.view(TENANT, SESSION)
        assert view.pace is not None and view.pace.build_seconds == 12.5


async def test_build_times_end_and_are_bounded(redis_url: str) -> None:
    async with connect_sessions(redis_url) as sessions:
        for number in range(250):
            await sessions.note_build_time(TENANT, "extractive", number)
        (key,) = await sessions.client.keys("*build_times*")
        assert await sessions.client.llen(key) == 200
        assert await sessions.client.pttl(key) > 0


async def test_how_long_a_build_was_waited_for_counts_from_when_it_was_wanted(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(soft_ratio=0.4))
    answer = await append(sessions, *[turn("user", WORDS) for _ in range(90)])
    assert answer.status == "soft" and sessions.now_ms is not None
    sessions.now_ms += 7_000
    first = await begin(sessions, answer.ref)
    assert (first.wanted_at_ms, first.is_urgent, first.head_seq) == (START_MS, False, 90)
    await sessions.abandon_build(first, "failed", 1_000)
    sessions.now_ms += 5_000
    ticket = await begin(sessions, answer.ref)
    sessions.now_ms += 3_000
    assert (await sessions.commit_build(ticket, summary())).waited_ms == 15_000


async def test_the_time_in_which_there_was_no_cut_is_not_the_builds(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(soft_ratio=0.4))
    answer = await append(sessions, turn("user", WORDS), call("c1", text=WORDS * 85))
    assert answer.status == "soft" and sessions.now_ms is not None
    assert await sessions.begin_build(TENANT, SESSION, answer.ref.incarnation, LEASE_MS) == "no_cut"
    sessions.now_ms += 86_400_000
    await append(sessions, results("c1"), *[turn("user", WORDS * 5) for _ in range(6)])
    ticket = await begin(sessions, answer.ref)
    sessions.now_ms += 3_000
    assert (await sessions.commit_build(ticket, summary())).waited_ms == 3_000


@pytest.mark.parametrize(("reason", "begins"), [("model_overloaded, 2 in a row", True), ("no_gain", False)])
async def test_a_pause_for_a_model_ends_where_turns_are_left_out(
    sessions: Sessions, reason: str, *, begins: bool
) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(soft_ratio=0.4))
    answer = await append(sessions, *[turn("user", WORDS) for _ in range(90)])
    await sessions.abandon_build(await begin(sessions, answer.ref), reason, 300_000)
    incarnation = answer.ref.incarnation
    assert await sessions.begin_build(TENANT, SESSION, incarnation, LEASE_MS) == "backoff"
    assert (await append(sessions, *[turn("user", WORDS) for _ in range(120)])).status == "degraded"
    ticket = await sessions.begin_build(TENANT, SESSION, incarnation, LEASE_MS)
    assert (ticket != "backoff") is begins


async def test_a_build_that_met_no_model_begins_again_at_once_where_turns_are_left_out(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(soft_ratio=0.4))
    answer = await append(sessions, *[turn("user", WORDS) for _ in range(90)])
    ticket = await begin(sessions, answer.ref)
    assert (await append(sessions, *[turn("user", WORDS) for _ in range(120)])).status == "degraded"
    await sessions.abandon_build(ticket, "model_timeout", 300_000)
    assert (await begin(sessions, answer.ref)).is_urgent


async def test_a_degraded_session_is_urgent(sessions: Sessions) -> None:
    answer = await append(sessions, *[turn("user", WORDS) for _ in range(90)])
    answer = await append(sessions, *[turn("user", WORDS) for _ in range(90)])
    answer = await append(sessions, *[turn("user", WORDS) for _ in range(90)])
    assert answer.status == "degraded"
    assert (await begin(sessions, answer.ref)).is_urgent


async def test_a_session_without_gain_rests_until_its_log_has_grown(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(soft_ratio=0.4))
    answer = await append(sessions, *[turn("user", WORDS) for _ in range(90)])
    await sessions.rest_build(await begin(sessions, answer.ref), "no_gain, 3 in a row")
    view = await sessions.view(TENANT, SESSION)
    assert view.last_build_error == "no_gain, 3 in a row"
    step = round(LIMIT * 0.05)
    assert view.resting_until_tokens == view.log_tokens + step
    assert not await compact_due(sessions)
    for _ in range(step // 100):
        assert await sessions.begin_build(TENANT, SESSION, answer.ref.incarnation, LEASE_MS) == "not_due"
        await append(sessions, turn("user", WORDS))
    await append(sessions, turn("user", WORDS))
    assert await compact_due(sessions)
    await begin(sessions, answer.ref)


async def test_a_change_of_turns_or_limit_ends_the_rest(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(soft_ratio=0.4))
    answer = await append(sessions, *[turn("user", WORDS) for _ in range(90)])
    await sessions.rest_build(await begin(sessions, answer.ref), "no_gain")
    await sessions.rewind(TENANT, SESSION, 89)
    await sessions.rest_build(await begin(sessions, answer.ref), "no_gain")
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=LIMIT - 1000))
    await begin(sessions, answer.ref)


async def compact_due(sessions: Sessions) -> bool:
    return any(item.kind == "compact" for item in await sessions.due_sets.due(START_MS + 1_000_000, 10))
