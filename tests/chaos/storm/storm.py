"""One storm from its first process to the verdict."""

import asyncio
import random
import tempfile
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from prefold.jobs.dead_letters import DeadLetters
from prefold.replay.recount import Recount
from prefold.storage import connect_sessions
from prefold.tokens import load_counter
from tests.chaos.storm.authors import Author
from tests.chaos.storm.doors import Doors, opened_doors
from tests.chaos.storm.figures import Figures
from tests.chaos.storm.memory import MemoryCheck
from tests.chaos.storm.oracle import Faults, Talk
from tests.chaos.storm.publishing import Assignment, Pacer, Progress, Publisher
from tests.chaos.storm.reading import ContextCheck, Reader
from tests.chaos.storm.scale import Scale
from tests.chaos.storm.settling import debts
from tests.chaos.storm.strikes import Striker, plan_strikes, strike_all
from tests.chaos.storm.town import Town
from tests.chaos.storm.verdict import Verdict
from tests.support.embedding_server import embedding_server
from tests.support.seeds import tell
from tests.support.waiting import wait_until_async


async def storm(scale: Scale, seed: int) -> None:
    """Raises AssertionError with every broken promise, each with seed, session, seq and the kills before it."""
    tell(str(scale))
    figures, faults = Figures(), Faults(seed)
    with (
        tempfile.TemporaryDirectory(prefix="prefold-storm-", ignore_cleanup_errors=True) as folder,
        embedding_server() as embedder_url,
    ):
        town = Town(Path(folder), scale.tenants, embedder_url)
        try:
            async with town:
                await _Storm(scale, seed, town, figures, faults).blow()
        except BaseException:
            tell(faults.report())
            raise
        finally:
            tell("\n".join(figures.lines()))
        town.check_nothing_is_left()
    assert not faults.count, faults.report()


class _Storm:
    def __init__(self, scale: Scale, seed: int, town: Town, figures: Figures, faults: Faults) -> None:
        self._scale = scale
        self._seed = seed
        self._town = town
        self._figures = figures
        self._faults = faults
        self._assignments = list(_assignments(scale, seed))
        self._talks = [assignment.talk for assignment in self._assignments]
        self._check = ContextCheck(Recount(load_counter()), faults)
        self._progress = Progress()

    async def blow(self) -> None:
        async with opened_doors(self._town, self._figures, self._random("network")) as doors:
            await self._publish_and_kill(doors)
        self._figures.drained_seconds = await self._settle()
        await self._judge()

    async def _publish_and_kill(self, doors: Doors) -> None:
        figures, stop = self._figures, asyncio.Event()
        strikes = plan_strikes(self._random("strikes"), self._scale)
        striker = Striker(self._town, figures, self._faults)
        figures.started_at = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for number, reader in enumerate(self._readers(doors)):
                tasks.create_task(reader.run(self._talks[number :: self._scale.readers], stop))
            killing = tasks.create_task(strike_all(strikes, striker, self._progress.reached))
            await asyncio.gather(*self._publishing(doors))
            self._progress.end()
            await killing
            stop.set()
        figures.publishing_seconds = time.monotonic() - figures.started_at

    def _publishing(self, doors: Doors) -> list[Coroutine[Any, Any, None]]:
        pacer = Pacer(self._scale.turns_per_second)
        publishers = [
            Publisher(self._random("publisher", n), doors, pacer, self._progress, self._figures, self._faults)
            for n in range(self._scale.publishers)
        ]
        return [one.run(self._assignments[n :: self._scale.publishers]) for n, one in enumerate(publishers)]

    def _readers(self, doors: Doors) -> list[Reader]:
        rate = self._scale.reads_per_second / self._scale.readers
        return [
            Reader(self._random("reader", n), doors, self._check, self._figures, self._faults, rate)
            for n in range(self._scale.readers)
        ]

    async def _settle(self) -> float:
        """Waits until nothing is owed any more; how many seconds that took."""
        began = time.monotonic()
        async with connect_sessions(self._town.redis_url) as sessions, Redis.from_url(self._town.queue_url) as queue:
            left: list[str] = []

            async def nothing_is_owed() -> bool:
                nonlocal left
                await asyncio.sleep(0.2)  # each look asks for much
                left = await debts(sessions, queue)
                self._figures.owed_last = left[-1] if left else self._figures.owed_last
                return not left

            try:
                await wait_until_async("nothing is owed", nothing_is_owed, timeout=self._scale.drained_within_seconds)
            except AssertionError:
                self._faults.tell(
                    f"not drained within {self._scale.drained_within_seconds:g} s:", None, "; ".join(left[:10])
                )
        return time.monotonic() - began

    async def _judge(self) -> None:
        async with connect_sessions(self._town.redis_url) as sessions:
            refs = [(talk, (await sessions.view(talk.tenant_name, talk.name)).ref) for talk in self._talks]
            for letter in await DeadLetters(sessions.client).letters():
                self._faults.tell("good work was set aside as poison:", None, str(letter))
        verdict = Verdict(self._town, self._check, self._faults)
        await asyncio.to_thread(verdict.on_sessions, self._talks)
        await self._settle()
        points = await asyncio.to_thread(verdict.stored_points)
        await asyncio.to_thread(verdict.on_turn_vectors, refs, points)
        async with connect_sessions(self._town.redis_url) as sessions:
            memory = MemoryCheck(sessions, self._faults)
            await memory.look(refs, points)
        self._figures.notes.update(verdict.totals | memory.totals)
        self._figures.notes.update(self._town.ended_by_themselves())
        for stray in self._town.strays():
            self._faults.tell("a process too many:", None, stray)

    def _random(self, *purpose: object) -> random.Random:
        return random.Random(f"{self._seed} {purpose}")


def _assignments(scale: Scale, seed: int) -> Sequence[Assignment]:
    """The sessions, spread over the tenants; some of them are erased early and begun anew."""
    rng = random.Random(f"{seed} sessions")
    made = []
    for place in range(scale.sessions):
        tenant, number = place % scale.tenants, place // scale.tenants
        author = Author(random.Random(f"{seed} author {place}"), tenant, number)
        made.append(Assignment(Talk(tenant, number, rng.randint(*scale.limits)), author, scale.turns_each))
    for assignment in rng.sample(made, scale.erasures):
        assignment.erased_after = max(1, scale.turns_each // 8)
    return made
