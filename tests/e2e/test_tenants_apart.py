"""Twenty tenants with the same names for everything, in one deployment: nobody ever meets a word of another."""

import asyncio
import time
from pathlib import Path

import httpx
import pytest

from prefold.storage import connect_sessions
from tests.support.seeds import seed_of_run, tell
from tests.support.tenants.people import everyone
from tests.support.tenants.stores import (
    JobsSeen,
    left_aside,
    look_into_jobs,
    look_into_keys,
    look_into_logs,
    look_into_vectors,
)
from tests.support.tenants.town import Town, running_town
from tests.support.tenants.walk import Figures, Walk
from tests.support.waiting import wait_until_async

TENANTS = 20
READ = {
    "GET /sessions/{session}/turns",
    "GET /sessions/{session}/context",
    "POST /search",
    "GET /sessions/{session}/state",
    "GET /users/{user}/facts",
    "GET /users/{user}/graph",
}
"""Routes whose answers must have had the asker's own words in them: else that others' are missing says nothing."""
_JOBS_LOOKED_AT_EVERY = 10


async def walked(town: Town, seed: int, operations: int) -> tuple[Figures, JobsSeen]:
    """All tenants walk at once, each one operation after the other."""
    figures, jobs, people = Figures(), JobsSeen(), everyone(TENANTS)
    limits = httpx.Limits(max_connections=TENANTS, max_keepalive_connections=TENANTS)
    async with httpx.AsyncClient(base_url=town.stack.gateway_url, timeout=30, limits=limits) as client:
        walks = []
        for number in range(TENANTS):
            mine = [one for one in people if one.tenant_number == number]
            walks.append(Walk(client, mine, [one for one in people if one not in mine], figures))
        with town.queue() as queue:

            async def walk(one: Walk) -> None:
                await one.begin(f"{seed} {one.tenant}")
                for number in range(operations // TENANTS):
                    await one.step()
                    if number % _JOBS_LOOKED_AT_EVERY == 0:
                        look_into_jobs(queue, jobs)

            await asyncio.gather(*map(walk, walks))
        await wait_until_async("what is owed is done", lambda: nothing_is_owed(town), timeout=900)
        await asyncio.gather(*(one.finish() for one in walks))
    return figures, jobs


async def nothing_is_owed(town: Town) -> bool:
    """Nothing but what has its time later: ends of sessions, idle times, second looks."""
    async with connect_sessions(town.stack.redis_url) as sessions:
        return await sessions.due_sets.due(int(time.time() * 1000), 1) == []


def check(town: Town, figures: Figures, jobs: JobsSeen) -> None:
    """Nothing of anybody in a place of another, and enough looked at to say so."""
    with town.redis() as sessions, town.queue() as queue:
        keys, aside = look_into_keys(sessions), left_aside(sessions, queue)
    points = look_into_vectors(town.vectors_url, town.embedded)
    logs = look_into_logs(town.stack.folder.logs)
    tell(
        f"{figures.operations} operations, {figures.answers.total()} answers, not there yet: {sorted(figures.missing())}"
    )
    tell(f"own words in answers: {dict(figures.own_words)}")
    tell(f"statuses: {figures.statuses()}")
    tell(f"keys: {keys.looked_at}, with words {keys.with_words}; jobs: {jobs.looked_at} {sorted(jobs.names)}")
    tell(f"points: { {name: (seen.looked_at, seen.with_words) for name, seen in points.items()} }")
    tell(f"calls of the vector store: {dict(town.asked.calls)}")
    assert keys.faults + jobs.faults + logs.faults + [one for seen in points.values() for one in seen.faults] == []
    assert town.asked.unscoped == []
    assert aside == []
    there = READ - figures.missing()
    assert {route for route in there if not figures.own_words[route]} == set()
    assert keys.with_words > TENANTS and sum(seen.looked_at for seen in points.values()) > TENANTS
    assert jobs.looked_at


@pytest.mark.timeout(120)
async def test_no_answer_job_key_or_vector_of_a_tenant_has_a_word_of_another(tmp_path: Path) -> None:
    seed = seed_of_run("this walk of twenty tenants")
    with running_town(tmp_path, TENANTS) as town:
        check(town, *await walked(town, seed, 300))


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_ten_thousand_operations_of_twenty_tenants_cross_no_border(tmp_path: Path) -> None:
    seed = seed_of_run("these ten thousand operations")
    with running_town(tmp_path, TENANTS) as town:
        check(town, *await walked(town, seed, 10_000))
