"""Sixteen writers on one session, with retries, through a gateway that is a process of its own.

./run test-long tests/chaos/test_writers.py      more turns of each writer
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from prefold.client import AsyncPrefold, RetryPolicy
from prefold.conversation import check_anthropic, check_openai
from tests.support.cutting_proxy import Cuts, cutting_proxy
from tests.support.logged_roles import gateway_process
from tests.support.seeds import seed_of_run, tell

SESSION = "shared"
WRITERS = 16
LIMIT_TOKENS = 3_000
PATIENT = RetryPolicy(deadline_seconds=120, first_pause_seconds=0.02, longest_pause_seconds=0.5)


@dataclass
class Writer:
    """One producer: whatever it publishes, in its own order."""

    name: str
    prefold: AsyncPrefold
    rng: random.Random
    published: list[dict[str, Any]] = field(default_factory=list)
    seqs: dict[str, int] = field(default_factory=dict)
    """As acknowledged, by id."""

    async def publish(self, *turns: dict[str, Any]) -> None:
        """Stores turns; the same call once more every now and then, as a producer that lost its memory."""
        for turn in turns:
            turn["id"] = f"{self.name}-{len(self.published)}"
            self.published.append(turn)
        for _ in range(2 if self.rng.random() < 0.2 else 1):
            for answer in (await self.prefold.append_many(SESSION, turns)).turns:
                assert self.seqs.setdefault(answer.id, answer.seq) == answer.seq

    async def speak(self) -> None:
        await self.publish(self._words("user"))

    async def speak_much(self) -> None:
        await self.publish(*(self._words(role) for role in ("user", "assistant", "assistant", "user")))

    async def work_at_once(self) -> None:
        """A call and its result in one batch: nobody comes between them."""
        await self.publish(*self._round())

    async def work_in_steps(self) -> None:
        """Others may speak before the result: it is late then, or another writer's round is open."""
        for turn in self._round():
            await self.publish(turn)

    def _words(self, role: str) -> dict[str, Any]:
        return {"role": role, "content": f"{self.name} says: " + "word " * self.rng.randint(1, 30)}

    def _round(self) -> list[dict[str, Any]]:
        call = f"{self.name}_{len(self.published)}"
        use = {"type": "tool_use", "id": call, "name": "look", "input": {"for": self.name}}
        result = {"type": "tool_result", "tool_use_id": call, "content": "found " * self.rng.randint(1, 40)}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]

    async def run(self, acts: int) -> None:
        ways: list[Callable[[], Awaitable[None]]] = [
            self.speak,
            self.speak,
            self.speak_much,
            self.work_at_once,
            self.work_in_steps,
        ]
        for _ in range(acts):
            await self.rng.choice(ways)()


async def read_all_the_while(prefold: AsyncPrefold, stop: asyncio.Event) -> int:
    """Contexts that are within the limit and that a provider takes; how many were read."""
    reads = 0
    while not stop.is_set():
        await asyncio.sleep(0.01)
        context = await prefold.context(SESSION, format="openai" if reads % 4 == 3 else "anthropic")
        messages = list(context.messages)
        assert context.tokens <= LIMIT_TOKENS
        found = check_openai(messages) if reads % 4 == 3 else check_anthropic(messages, context.system)
        if reads or messages:  # nobody has spoken yet
            assert found == []
            reads += 1
    return reads


@pytest.mark.parametrize(
    "acts", [8, pytest.param(250, marks=[pytest.mark.long, pytest.mark.timeout(900)])], ids=["short", "long"]
)
async def test_sixteen_writers_get_dense_numbers_and_each_keeps_its_order(
    redis_url: str, queue_url: str, tmp_path: Path, acts: int
) -> None:
    seed = seed_of_run("these writers")
    stop = asyncio.Event()
    cuts = Cuts(after=0.1, before=0.02, concerns=lambda request: request.startswith(b"POST"))
    with gateway_process(tmp_path, redis_url, queue_url) as url:
        async with AsyncPrefold(url) as direct, cutting_proxy(url, seed, cuts) as proxy:
            await direct.create_session(SESSION, hard_limit_tokens=LIMIT_TOKENS)
            clients = [AsyncPrefold(proxy.url, retry=PATIENT) for _ in range(WRITERS)]
            writers = [
                Writer(f"w{number}", client, random.Random(f"{seed} {number}")) for number, client in enumerate(clients)
            ]
            proxy.is_cutting = True
            reading = asyncio.create_task(read_all_the_while(direct, stop))
            await asyncio.gather(*(writer.run(acts) for writer in writers))
            proxy.is_cutting = False
            stop.set()
            reads = await reading
            log: list[dict[str, Any]] = []
            while page := await direct.turns(SESSION, after_seq=len(log)):
                log += page
            for client in clients:
                await client.aclose()
    total = sum(len(writer.published) for writer in writers)
    tell(f"{total} turns of {WRITERS} writers, {proxy.lost_replies} replies lost, {reads} contexts read")
    assert [turn["seq"] for turn in log] == list(range(1, total + 1))
    for writer in writers:
        own = [turn for turn in log if turn["id"].startswith(f"{writer.name}-")]
        assert [{"seq": writer.seqs[turn["id"]], **turn} for turn in writer.published] == [
            {**turn, "seq": turn["seq"]} for turn in own
        ]
    assert reads > 3 and proxy.lost_replies > 0
