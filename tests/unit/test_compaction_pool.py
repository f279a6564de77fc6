"""The builds of one process, side by side."""

import asyncio
import threading
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from prefold.compaction.build import Failed, Undecided
from prefold.compaction.pool import BuildPool
from prefold.compaction.reading import door
from prefold.errors import UnavailableError
from prefold.worker.verdicts import Ended
from prefold.worker.waiting import waiting
from tests.support.builds import FakeBuilds, hangs, ref, told_by
from tests.support.waiting import wait_until_async

SAID = "my password is hunter2"


@pytest.fixture
def builds() -> FakeBuilds:
    return FakeBuilds()


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
async def pool(builds: FakeBuilds, stop: threading.Event) -> AsyncIterator[BuildPool]:
    made = BuildPool(builds, stop)
    yield made
    await made.cancel()


async def let_run() -> None:
    """Lets the loop do all that can be done now."""
    for _ in range(20):
        await asyncio.sleep(0)


async def until_left(pool: BuildPool, count: int) -> None:
    async def left() -> bool:
        return len(pool) == count

    await wait_until_async(f"{count} builds are under way", left)


async def test_a_job_ends_when_its_sessions_have_their_tickets_however_long_the_builds_take(
    pool: BuildPool, builds: FakeBuilds
) -> None:
    builds.does = hangs
    refs = [ref(f"s{number}") for number in range(64)]
    handed = [await pool.hand_over(refs[start : start + 8]) for start in range(0, 64, 8)]
    assert [one for ended in handed for one in ended.ongoing] == refs
    await until_left(pool, 64)
    assert builds.most_at_work == 64


async def test_one_quick_build_is_not_delayed_by_63_that_hang(pool: BuildPool, builds: FakeBuilds) -> None:
    builds.does = hangs
    await pool.hand_over([ref(f"s{number}") for number in range(63)])
    builds.of["quick"] = lambda _session: asyncio.sleep(0, "standby")
    told = told_by((await pool.hand_over([ref("quick")])).ongoing[ref("quick")])
    await until_left(pool, 63)
    assert told == [Ended()]


async def test_a_session_that_is_under_way_is_not_claimed_again(pool: BuildPool, builds: FakeBuilds) -> None:
    builds.does = hangs
    await pool.hand_over([ref("a"), ref("a")])
    again = await pool.hand_over([ref("a"), ref("b")])
    assert set(again.ongoing) == {ref("b")}
    assert again.undecided == frozenset({ref("a")})
    assert builds.begun == {"a": 1, "b": 1}


async def test_what_needs_no_build_ends_with_the_job(pool: BuildPool, builds: FakeBuilds) -> None:
    builds.claims = {"done": "not_due", "busy": Undecided("busy")}
    ended = await pool.hand_over([ref("done"), ref("busy"), ref("a")])
    assert ended == Ended(undecided=frozenset({ref("busy")}), ongoing=ended.ongoing)
    assert set(ended.ongoing) == {ref("a")}


async def test_each_end_is_told_as_it_comes_with_its_outcome(pool: BuildPool, builds: FakeBuilds) -> None:
    async def raises(_session: str) -> str:
        raise ValueError(SAID)

    async def is_away(_session: str) -> str:
        raise UnavailableError("away")

    outcomes = {"good": "standby", "bad": Failed("summary_empty"), "lost": Undecided("lost")}
    for name, outcome in outcomes.items():
        builds.of[name] = lambda _session, said=outcome: asyncio.sleep(0, said)  # type: ignore[misc]
    builds.of |= {"fault": raises, "away": is_away, "slow": hangs}
    refs = [ref(name) for name in builds.of]
    with capture_logs() as logs:
        told = {one.session: told_by(of) for one, of in (await pool.hand_over(refs)).ongoing.items()}
        await until_left(pool, 1)
    ends = {name: what[-1] for name, what in told.items() if what}
    assert set(ends) == {"good", "bad", "lost", "fault", "away"}
    failed = {name: dict(end.failed) for name, end in ends.items() if isinstance(end, Ended) and end.failed}
    assert failed["bad"] == {ref("bad"): "summary_empty"}
    assert failed["fault"][ref("fault")].startswith("ValueError in ")
    assert set(failed) == {"bad", "fault"}
    undecided = {name for name, end in ends.items() if isinstance(end, Ended) and end.undecided}
    assert undecided == {"lost", "away"}
    assert SAID not in str(logs)


async def test_a_storage_that_is_away_for_some_does_not_keep_the_others_from_being_built(
    pool: BuildPool, builds: FakeBuilds
) -> None:
    builds.claims = {"away": UnavailableError("away"), "odd": ValueError(SAID)}
    ended = await pool.hand_over([ref("away"), ref("odd"), ref("a")])
    assert set(ended.ongoing) == {ref("a")}
    assert isinstance(ended.away, UnavailableError)
    assert ended.undecided == {ref("away")}
    assert ended.failed[ref("odd")].startswith("ValueError in ")


async def test_after_the_stop_nothing_begins(pool: BuildPool, builds: FakeBuilds, stop: threading.Event) -> None:
    stop.set()
    ended = await pool.hand_over([ref("a")])
    assert ended == Ended(undecided=frozenset({ref("a")}))
    assert not builds.begun


async def test_builds_that_the_stop_cuts_short_are_given_back_and_said_to_be(
    pool: BuildPool, builds: FakeBuilds
) -> None:
    builds.does = hangs
    refs = [ref(f"s{number}") for number in range(20)]
    told = [told_by(one) for one in (await pool.hand_over(refs)).ongoing.values()]
    settling = asyncio.create_task(pool.settle())
    await let_run()
    settling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await settling
    assert sorted(builds.given_back) == sorted(one.session for one in refs)
    assert all(isinstance(what[-1], Ended) and what[-1].handed_back for what in told)
    assert len(pool) == 0


async def test_settling_waits_for_the_builds_to_end_by_themselves(pool: BuildPool, builds: FakeBuilds) -> None:
    go = asyncio.Event()

    async def waits(_session: str) -> str:
        await go.wait()
        return "standby"

    builds.does = waits
    told = told_by((await pool.hand_over([ref("a")])).ongoing[ref("a")])
    settling = asyncio.create_task(pool.settle())
    await let_run()
    assert not settling.done()
    go.set()
    await settling
    assert told == [Ended()]


async def test_a_job_that_is_ended_by_force_leaves_no_build_behind(pool: BuildPool, builds: FakeBuilds) -> None:
    builds.does = hangs
    handing = asyncio.create_task(pool.hand_over([ref("a")], alone=True))
    await until_left(pool, 1)
    handing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await handing
    assert len(pool) == 0


async def test_a_build_that_takes_too_long_counts_as_failed(builds: FakeBuilds, stop: threading.Event) -> None:
    pool = BuildPool(builds, stop, longest=timedelta(milliseconds=20))
    builds.does = hangs
    told = told_by((await pool.hand_over([ref("a")])).ongoing[ref("a")])
    await until_left(pool, 0)
    assert told == [Ended(failed={ref("a"): "timeout"})]
    assert builds.given_back == ["a"]


async def test_a_build_says_when_it_waits_for_another_part(pool: BuildPool, builds: FakeBuilds) -> None:
    go = asyncio.Event()

    async def asks(_session: str) -> str:
        async with waiting():
            await go.wait()
        return "standby"

    builds.does = asks
    told = told_by((await pool.hand_over([ref("a")])).ongoing[ref("a")])
    await let_run()
    assert told == [True]
    go.set()
    await until_left(pool, 0)
    assert told == [True, False, Ended()]


async def test_a_build_with_several_strands_waits_from_the_first_to_the_last(
    pool: BuildPool, builds: FakeBuilds
) -> None:
    gates = [asyncio.Event(), asyncio.Event()]

    async def ask(gate: asyncio.Event) -> None:
        async with waiting():
            await gate.wait()

    async def asks(_session: str) -> str:
        await asyncio.gather(*map(ask, gates))
        return "standby"

    builds.does = asks
    told = told_by((await pool.hand_over([ref("a")])).ongoing[ref("a")])
    gates[0].set()
    await let_run()
    assert told == [True]
    gates[1].set()
    await until_left(pool, 0)
    assert told == [True, False, Ended()]


async def test_a_suspect_works_while_nobody_else_does_and_others_go_on_waiting(
    pool: BuildPool, builds: FakeBuilds
) -> None:
    working: list[str] = []
    answers, over = asyncio.Event(), asyncio.Event()

    async def asks(session: str) -> str:
        async with waiting():
            await answers.wait()
        working.append(session)
        return "standby"

    async def works(session: str) -> str:
        working.append(session)
        answers.set()  # the others' models answer now
        await over.wait()
        working.append(f"{session} ends")
        return "standby"

    builds.of = {"a": asks, "b": asks, "suspect": works}
    await pool.hand_over([ref("a"), ref("b")])
    handing = asyncio.create_task(pool.hand_over([ref("suspect")], alone=True))

    async def works_now() -> bool:
        return working == ["suspect"]

    await wait_until_async("the suspect works", works_now)
    late = asyncio.create_task(pool.hand_over([ref("late")]))
    await let_run()
    assert (working, handing.done(), late.done()) == (["suspect"], False, False)
    over.set()
    assert set((await handing).ongoing) == {ref("suspect")}
    await late
    await until_left(pool, 0)
    assert working[:2] == ["suspect", "suspect ends"]
    assert sorted(working[2:]) == ["a", "b"]


async def test_a_suspect_that_waits_for_its_model_lets_the_others_work(pool: BuildPool, builds: FakeBuilds) -> None:
    async def asks(session: str) -> str:
        async with waiting():
            return await hangs(session)

    builds.of = {"suspect": asks}
    await pool.hand_over([ref("suspect")], alone=True)
    await pool.hand_over([ref("a")])
    await until_left(pool, 1)


async def test_nobody_is_held_up_for_long_by_a_suspect_nor_a_suspect_by_the_others(
    pool: BuildPool, builds: FakeBuilds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "ALONE_SECONDS", 0.05)
    builds.does = hangs
    await pool.hand_over([ref("a")])
    first = await pool.hand_over([ref("suspect")], alone=True)  # among others, though `a` never ends
    assert set(first.ongoing) == {ref("suspect")}
    second = await pool.hand_over([ref("another")], alone=True)
    assert set(second.ongoing) == {ref("another")}
    await pool.hand_over([ref("b")])
    assert builds.at_work == {"a", "suspect", "another", "b"}


async def test_two_suspects_work_one_after_the_other(pool: BuildPool, builds: FakeBuilds) -> None:
    async def works(_session: str) -> str:
        await let_run()
        return "standby"

    builds.does = works
    await asyncio.gather(*(pool.hand_over([ref(name)], alone=True) for name in "abc"))
    await until_left(pool, 0)
    assert builds.most_at_work == 1
