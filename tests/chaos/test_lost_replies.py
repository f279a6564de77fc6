"""Replies that never arrive: the client asks again, and every turn is there once.

A proxy cuts 30 % of the exchanges after the server has done the work, and a few before it.

    PREFOLD_SEED=7 ./run test tests/chaos/test_lost_replies.py      the same cuts once more
    ./run test-long tests/chaos/test_lost_replies.py                10,000 turns
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from prefold.client import AppendedTurn, AsyncPrefold, RetryPolicy
from tests.support.cutting_proxy import Cuts, CuttingProxy, cutting_proxy
from tests.support.logged_roles import gateway_process
from tests.support.seeds import seed_of_run, tell

PATIENT = RetryPolicy(deadline_seconds=120, first_pause_seconds=0.02, longest_pause_seconds=0.5)


@dataclass(frozen=True)
class Load:
    sessions: int
    turns: int
    """A session."""

    @property
    def total(self) -> int:
        return self.sessions * self.turns


SHORT = Load(sessions=20, turns=15)
LONG = Load(sessions=40, turns=250)
LOADS = [
    pytest.param(SHORT, id="300"),
    pytest.param(LONG, id="10000", marks=[pytest.mark.long, pytest.mark.timeout(900)]),
]


def turn_of(session: str, number: int) -> dict[str, str]:
    role = "assistant" if number % 2 else "user"
    return {"id": f"{session}-{number}", "role": role, "content": f"Turn {number} of {session}."}


async def publish(prefold: AsyncPrefold, session: str, count: int) -> list[AppendedTurn]:
    """One turn after the other, each tried until it is acknowledged."""
    acked: list[AppendedTurn] = []
    for number in range(count):
        answer = await prefold.append_many(session, [turn_of(session, number)])
        acked += answer.turns
    return acked


async def publish_all(url: str, load: Load, cutting: CuttingProxy) -> dict[str, list[AppendedTurn]]:
    names = [f"s{number}" for number in range(load.sessions)]
    cutting.is_cutting = True
    async with AsyncPrefold(url, retry=PATIENT) as prefold:
        acked = await asyncio.gather(*(publish(prefold, name, load.turns) for name in names))
    cutting.is_cutting = False
    return dict(zip(names, acked, strict=True))


async def log_of(prefold: AsyncPrefold, session: str) -> list[dict[str, object]]:
    turns: list[dict[str, object]] = []
    while page := await prefold.turns(session, after_seq=len(turns)):
        turns += page
    return turns


async def check_logs(url: str, load: Load, acked: dict[str, list[AppendedTurn]]) -> int:
    """Every turn once, in order, verbatim, under the number that was acknowledged; how many there are."""
    stored = 0
    async with AsyncPrefold(url) as prefold:
        for session, answers in acked.items():
            log = await log_of(prefold, session)
            assert log == [{"seq": number + 1, **turn_of(session, number)} for number in range(load.turns)]
            assert [answer.seq for answer in answers] == list(range(1, load.turns + 1))
            assert (await prefold.session(session)).head_seq == load.turns
            stored += len(log)
    return stored


@pytest.mark.parametrize("load", LOADS)
async def test_turns_whose_replies_are_lost_on_the_way_to_the_client_are_stored_once(
    redis_url: str, queue_url: str, tmp_path: Path, load: Load
) -> None:
    seed = seed_of_run("these cuts")
    appends = Cuts(concerns=lambda request: request.startswith(b"POST"))
    with gateway_process(tmp_path, redis_url, queue_url) as url:
        async with cutting_proxy(url, seed, appends) as proxy:
            acked = await publish_all(proxy.url, load, proxy)
        assert await check_logs(url, load, acked) == load.total
    known = sum(answer.duplicate for answers in acked.values() for answer in answers)
    tell(
        f"{load.total} turns, {proxy.exchanges} requests, {proxy.lost_replies} replies and "
        f"{proxy.lost_requests} requests lost, {known} turns asked for again after they were stored"
    )
    assert proxy.lost_replies > 0.2 * proxy.exchanges
    assert known > 0.15 * load.total


@pytest.mark.parametrize("load", LOADS)
async def test_turns_whose_replies_are_lost_between_gateway_and_store_are_stored_once(
    redis_url: str, queue_url: str, tmp_path: Path, load: Load
) -> None:
    seed = seed_of_run("these cuts")
    scripts = Cuts(concerns=lambda request: b"EVALSHA" in request)
    async with cutting_proxy(redis_url, seed, scripts) as proxy:
        gateway = gateway_process(tmp_path, proxy.url, queue_url)
        url = await asyncio.to_thread(gateway.__enter__)  # it connects through this loop
        try:
            acked = await publish_all(url, load, proxy)
            assert await check_logs(url, load, acked) == load.total
        finally:
            await asyncio.to_thread(gateway.__exit__, None, None, None)
    tell(
        f"{load.total} turns, {proxy.exchanges} exchanges, {proxy.lost_replies} replies and "
        f"{proxy.lost_requests} requests lost"
    )
    assert proxy.lost_replies > 0.1 * proxy.exchanges  # each of them takes the replies of many calls with it
