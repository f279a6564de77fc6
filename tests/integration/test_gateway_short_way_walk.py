"""Whatever happens to sessions, the short way serves the context of the general one, which knows nothing beforehand.

`PREFOLD_SEED=…` repeats a walk.
"""

import json
import random
from collections.abc import Awaitable, Callable

import pytest

from prefold.storage.types import BuildTicket, BuiltSummary, HeadFragment
from tests.integration.test_gateway_short_way import Gateway, get, post, short_way
from tests.support.seeds import seed_of_run

STEPS = 900


class Walk:
    """Two sessions, and what is done to them at random."""

    def __init__(self, gateway: Gateway, chance: random.Random) -> None:
        self.gateway, self.chance, self.client = gateway, chance, gateway.served.client
        self.number = 0
        self.turns: dict[str, list[str]] = {"a": [], "b": []}
        self.calls: dict[str, list[str]] = {"a": [], "b": []}
        self.builds = 0
        self.steps: dict[Callable[[str, str], Awaitable[object]], int] = {
            self.say: 30, self.report: 6, self.lead: 2, self.call: 6, self.answer: 8, self.change: 3, self.rewind: 2,
            self.pin: 3, self.set: 4, self.build: 6, self.erase: 1, self.own: 1, self.tell: 2, self.rest: 8,
        }  # fmt: skip

    async def step(self) -> None:
        self.number += 1
        session = self.chance.choice("ab")
        path = f"/v1/sessions/{session}"
        does = self.chance.choices([*self.steps], [*self.steps.values()])[0]
        await does(session, path)
        if self.chance.random() < 0.6:
            for _ in range(2):
                await self.compare(path + "/context")

    async def compare(self, path: str) -> None:
        (short,) = await self.gateway.send(get(path))
        general = await self.client.get(path)
        assert (short.status, short.body) == (general.status_code, general.content), f"step {self.number}"
        assert short.headers.get("etag") == general.headers.get("etag")

    def text(self) -> str:
        return f"word{self.number} " * self.chance.choice([1, 5, 60, 300])

    async def append(self, session: str, path: str, role: str, content: object, **members: object) -> bool:
        turn = {"id": f"t{self.number}", "role": role, "content": content, **members}
        (answer,) = await self.gateway.send(post(json.dumps(turn).encode(), path + "/turns"))
        if answer.status == 201:
            self.turns[session].append(f"t{self.number}")
        return answer.status == 201

    async def say(self, session: str, path: str) -> None:
        blocks = [{"type": "text", "text": self.text()}, {"type": "text", "text": "b"}]
        content = self.chance.choice([self.text(), blocks])
        await self.append(session, path, self.chance.choice(["user", "assistant"]), content)

    async def report(self, session: str, path: str) -> None:
        usage = {"input_tokens": self.chance.randint(1, 9_000), "output_tokens": 3}
        await self.append(session, path, "assistant", self.text(), usage=usage)

    async def lead(self, session: str, path: str) -> None:
        await self.append(session, path, "system", self.text()[:100])

    async def call(self, session: str, path: str) -> None:
        ids = [f"c{self.number}_{index}" for index in range(self.chance.randint(1, 3))]
        content = [{"type": "tool_use", "id": one, "name": "f", "input": {"q": self.text()[:50]}} for one in ids]
        if self.chance.random() < 0.3:
            content.insert(0, {"type": "thinking", "thinking": "hm", "signature": "s"})
        if await self.append(session, path, "assistant", content):
            self.calls[session] += ids

    async def answer(self, session: str, path: str) -> None:
        open_calls = self.calls[session]
        call_id = open_calls.pop(0) if open_calls and self.chance.random() < 0.8 else "of nobody"
        result = {"type": "tool_result", "tool_use_id": call_id, "content": self.text()}
        await self.append(session, path, "user", [result])

    async def change(self, session: str, path: str) -> None:
        if not self.turns[session]:
            return
        turn = f"{path}/turns/{self.chance.choice(self.turns[session])}"
        if self.chance.random() < 0.5:
            await self.client.put(turn, json={"role": "user", "content": self.text()})
        else:
            await self.client.delete(turn)

    async def rewind(self, session: str, path: str) -> None:  # as all steps
        head = (await self.client.get(path)).json().get("head_seq", 0)
        await self.client.post(path + "/rewind", json={"to_seq": max(0, head - self.chance.randint(0, 3))})

    async def pin(self, session: str, path: str) -> None:
        await self.client.put(path + "/state", json={"goal": self.text()[:200]})

    async def set(self, session: str, path: str) -> None:
        limit = self.chance.choice([1_500, 3_000, 8_000])
        system = self.chance.choice(["", "Be brief.", 'x","messages":[{"'])
        await self.client.put(path, json={"hard_limit_tokens": limit, "keep_recent_turns": 2, "system": system})

    async def build(self, session: str, path: str) -> None:
        sessions = self.gateway.served.sessions
        if (await self.client.get(path)).status_code != 200:
            return
        life = (await sessions.view("default", session)).ref.incarnation
        ticket = await sessions.begin_build("default", session, life, 20_000)
        if isinstance(ticket, BuildTicket):
            self.builds += 1
            summary = HeadFragment("summary", b'{"type":"text","text":"Summary %d"}' % self.number, 20)
            await sessions.commit_build(ticket, BuiltSummary((summary,), "{}", 1.0))

    async def erase(self, session: str, path: str) -> None:
        await self.client.delete(path)
        if self.chance.random() < 0.7:
            await self.client.put(path, json={})
        self.turns[session].clear()

    async def own(self, session: str, path: str) -> None:
        await self.client.put(path, json={"user": self.chance.choice("uv")})

    async def tell(self, session: str, path: str) -> None:
        fact = {"relation": "lives_in", "object": self.chance.choice(["Lisbon", "Oslo"]), "category": "location"}
        await self.client.post("/v1/users/u/facts", json=fact)
        if self.chance.random() < 0.6:
            await self.client.delete("/v1/users/u")

    async def rest(self, session: str, path: str) -> None:
        """Nothing."""


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_on_a_long_walk_both_ways_serve_the_same_contexts(redis_url: str) -> None:
    chance = random.Random(seed_of_run("the walk"))
    async with short_way(redis_url) as gateway:
        walk = Walk(gateway, chance)
        for _ in range(STEPS):
            await walk.step()
        assert gateway.spied.taken[True] > STEPS / 2 and walk.builds
        assert gateway.in_flight == 0
