"""A memory worker killed in the middle of its work: nothing is lost, and nothing is there twice."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from prefold.jobs import DeadLetters, JobQueue, queue_connection
from prefold.storage import Sessions, connect_sessions
from tests.support.halting_memory import KILLED, POINTS, PROGRAM
from tests.support.remembering import Memory, talk
from tests.support.storage import TENANT
from tests.support.vectors import RunningVectors, running_vectors
from tests.support.waiting import wait_until_async
from tests.support.worker_jobs import environment

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]

SAID = (
    "I live in {} and I work as a nurse in a small hospital.",
    "The trip that we plan for the autumn should take about ten days, with some walking in it and a few museums.",
)
PLACES = dict(zip(POINTS, ("Germany", "Portugal", "Norway", "Chile", "Japan"), strict=True))


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path) as server:
        yield server


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


@contextmanager
def worker(log: Path, env: dict[str, str]) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen([*PROGRAM, "memory"], env=env, stderr=output)
        try:
            yield
        finally:
            process.kill()
            process.wait(10)


async def test_a_worker_killed_at_any_point_of_a_pass_leaves_each_fact_and_digest_once(
    sessions: Sessions, redis_url: str, queue_url: str, vectors: RunningVectors, tmp_path: Path
) -> None:
    refs = [
        await talk(sessions, point, *(one.format(place) for one in SAID), user=point) for point, place in PLACES.items()
    ]
    for ref in refs:
        await sessions.ask_close(TENANT, ref.session)
    env = environment(
        queue_url,
        redis_url,
        qdrant_url=vectors.url,
        odd_lives=str(len(POINTS) + 1),
        odd_lease="0.5",
        odd_execution="1",
    )
    with queue_connection(queue_url) as queue, worker(tmp_path / "worker.log", env):
        jobs = JobQueue(queue)
        rounds = iter(range(10_000))

        async def all_are_closed() -> bool:
            open_ones = [ref for ref in refs if not (await sessions.view(TENANT, ref.session)).closed_at_ms]
            if open_ones and not await asyncio.to_thread(jobs.depth, "memory"):
                await asyncio.to_thread(jobs.remember, open_ones, occasion=str(next(rounds)))
            return not open_ones and queue.llen(KILLED) == len(POINTS)

        await wait_until_async("all sessions are closed", all_are_closed, timeout=120)
    assert sorted(one.decode() for one in queue_items(queue_url)) == sorted(POINTS)
    assert await DeadLetters(sessions.client).letters() == []
    await each_is_there_once(sessions, vectors)


def queue_items(queue_url: str) -> list[bytes]:
    with queue_connection(queue_url) as queue:
        found: Any = queue.lrange(KILLED, 0, -1)
    return list(found)


async def each_is_there_once(sessions: Sessions, vectors: RunningVectors) -> None:
    memory = Memory(sessions)
    points = stored_points(vectors.url)
    for name, place in PLACES.items():
        facts = await memory.book.list(TENANT, name, history=True, now_ms=0)
        assert [(one.relation, one.object) for one in facts if one.relation == "lives_in"] == [("lives_in", place)]
        assert len({(one.relation, one.object) for one in facts}) == len(facts)
        digest = await sessions.read_digest(TENANT, name)
        assert digest is not None
        own = [one for one in points if one["user"] == name]
        assert [one["digest"] for one in own if one["kind"] == "summary"] == [digest.digest]
        assert sorted(one["key"] for one in own if one["kind"] == "fact") == sorted(one.id for one in facts)


def stored_points(url: str) -> list[dict[str, Any]]:
    import httpx

    with httpx.Client(base_url=url, timeout=10) as client:
        found = client.post("/collections/memory_odd_4/points/scroll", json={"limit": 256, "with_payload": True})
        return [one["payload"] for one in found.raise_for_status().json()["result"]["points"]]
