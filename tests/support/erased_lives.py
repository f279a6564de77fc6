"""Sessions that are talked to, closed, read and erased in the middle of it, each life with a word of its own."""

import asyncio
import random
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from prefold.client import AsyncPrefold
from prefold.errors import GoneError
from prefold.storage.keys import SessionKeys
from tests.support.quiet import Stores
from tests.support.waiting import wait_until_async

LIMIT_TOKENS = 1_200
UNAVAILABLE = 503
ERASE_TRIES = 4


@dataclass(frozen=True)
class Scale:
    """How much of it."""

    erasures: int
    at_once: int
    """Sessions that are talked to at the same time."""
    waits_for_grace: bool
    users: int


@dataclass
class Life:
    """One life of a session, with a string that stands in all that was ever said in it."""

    session: str
    canary: str
    user: str
    incarnation: str = ""
    is_erased: bool = False
    acked: list[str] = field(default_factory=list)
    """Ids of its turns."""
    batches: int = 0


@dataclass
class Run:
    """What happens to the sessions of one run."""

    url: str
    stores: Stores
    scale: Scale
    rng: random.Random
    lives: list[Life] = field(default_factory=list)
    receipts: list[dict[str, Any]] = field(default_factory=list)
    stories: list["Story"] = field(default_factory=list)
    late_receipts: int = 0

    async def all(self) -> None:
        places = asyncio.Semaphore(self.scale.at_once)
        async with AsyncPrefold(self.url) as prefold, httpx.AsyncClient(base_url=self.url, timeout=20) as plain:
            number = 0
            stories = []
            left = self.scale.erasures
            while left:
                # How it goes on after each erasure: begun anew at once, or never again.
                erasures = min(left, self.rng.choice((1, 1, 2)))
                ends_alive = number < self.scale.users or self.rng.random() < 0.5
                left -= erasures
                rng = random.Random(f"{self.rng.random()} {number}")
                story = Story(f"s{number}", erasures, ends_alive, self, rng, prefold, plain)
                self.stories.append(story)
                stories.append(story.run(places))
                number += 1
            await asyncio.gather(*stories)

    @property
    def users(self) -> list[str]:
        """Each has a session that lives on."""
        return [f"u{number}" for number in range(self.scale.users)]

    def canaries(self, *, erased: bool) -> list[bytes]:
        return [life.canary.encode() for life in self.lives if life.is_erased == erased]

    def living(self, user: str | None = None) -> list[Life]:
        return [life for life in self.lives if not life.is_erased and user in (None, life.user)]

    def incarnations(self, *, erased: bool) -> set[str]:
        return {life.incarnation for life in self.lives if life.is_erased == erased}


@dataclass
class Story:
    """One session: talked to, erased in the middle of it, perhaps begun anew."""

    session: str
    erasures: int
    ends_alive: bool
    whole: Run
    rng: random.Random
    prefold: AsyncPrefold
    plain: httpx.AsyncClient

    async def run(self, places: asyncio.Semaphore) -> None:
        async with places:
            for number in range(self.erasures + self.ends_alive):
                canary = f"CANARY-{self.session}-{number}-{self.rng.randrange(1 << 40):x}"
                life = Life(self.session, canary, self.whole.users[int(self.session[1:]) % self.whole.scale.users])
                self.whole.lives.append(life)
                await self.live(life, to_be_erased=number < self.erasures)

    async def live(self, life: Life, *, to_be_erased: bool) -> None:
        await self.prefold.create_session(
            self.session,
            user=life.user,
            hard_limit_tokens=LIMIT_TOKENS,
            system=f"Speak of {life.canary}.",
            metadata={"about": life.canary},
        )
        await self.plain.put(f"/v1/sessions/{self.session}", json={"proposals": "apply"})
        await self.plain.put(f"/v1/sessions/{self.session}/state", json={"goal": f"To find {life.canary}."})
        incarnation = self.whole.stores.sessions.hget(SessionKeys.of("default", self.session).meta, "incarnation")
        life.incarnation = (incarnation or b"").decode()
        turns = self.rng.randint(1, 24)
        if not to_be_erased:
            await self.talk(life, turns)
            return
        life.is_erased = True
        talking = asyncio.create_task(self.talk(life, 10_000))
        await wait_until_async("enough was said", lambda: has_said(life, turns), timeout=60)
        await asyncio.sleep(self.rng.random() * 0.3)
        times = self.rng.choice((1, 1, 1, 2))  # two at once, as a retry that overtakes
        self.whole.receipts += await asyncio.gather(*(self.erase() for _ in range(times)))
        await talking  # what was on its way is refused: else it would be said in the next life

    async def erase(self) -> dict[str, Any]:
        """The receipt. Where the machine is too busy for an answer in time, the call is made again."""
        answer = await self.plain.delete(f"/v1/sessions/{self.session}")
        for _ in range(ERASE_TRIES):
            if answer.status_code != UNAVAILABLE:
                break
            assert answer.json()["code"] == "timeout"
            self.whole.late_receipts += 1
            answer = await self.plain.delete(f"/v1/sessions/{self.session}")
        receipt: dict[str, Any] = answer.raise_for_status().json()
        return receipt

    async def talk(self, life: Life, turns: int) -> None:
        """Turns and tool rounds until there are so many, or until the session is gone."""
        while len(life.acked) < turns:
            batch = self.speech(life, life.batches)
            life.batches += 1
            try:
                await self.prefold.append_many(self.session, batch)
            except GoneError:
                return
            life.acked += [turn["id"] for turn in batch]
            if self.rng.random() < 0.1:  # a digest is written, and read beside the facts
                await self.plain.post(f"/v1/sessions/{self.session}/close", json={})
                await self.plain.get(f"/v1/sessions/{self.session}/context", params={"query": "What is my dog called?"})
            await asyncio.sleep(self.rng.random() * 0.02)

    def speech(self, life: Life, number: int) -> list[dict[str, Any]]:
        text = f"Order {number}: {life.canary} is what the parcel to Lyon is called. " * self.rng.randint(1, 5)
        name = f"{life.canary}-{number}"
        if number % 5 == 0:
            text = f"By the way. My dog is called {name}. I am allergic to {life.canary}."
            return [{"id": name, "role": "user", "content": text}]
        if self.rng.random() < 0.8:
            return [{"id": name, "role": "assistant" if number % 2 else "user", "content": text}]
        use = {"type": "tool_use", "id": f"call_{number}", "name": "find", "input": {"what": life.canary}}
        result = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": text * 3}
        return [
            {"id": f"{name}-call", "role": "assistant", "content": [use]},
            {"id": f"{name}-result", "role": "user", "content": [result]},
        ]


async def has_said(life: Life, turns: int) -> bool:
    return len(life.acked) >= turns


async def erase_user_who_talks(run: Run, user: str) -> None:
    """All their sessions that live are talked to, and closed, at that moment."""
    lives = {life.session: life for life in run.living(user)}
    async with AsyncPrefold(run.url) as prefold, httpx.AsyncClient(base_url=run.url, timeout=20) as plain:
        stories = [replace(story, prefold=prefold, plain=plain) for story in run.stories if story.session in lives]
        talking = [asyncio.create_task(story.talk(lives[story.session], 10_000)) for story in stories]
        said = {name: len(life.acked) for name, life in lives.items()}
        for name, life in lives.items():
            await wait_until_async("more was said", lambda: has_said(life, said[name] + 3), timeout=60)  # noqa: B023
            life.is_erased = True
        receipt = (await plain.delete(f"/v1/users/{user}")).raise_for_status().json()
        await asyncio.gather(*talking)
    assert set(lives) <= set(receipt["sessions"])  # what was erased before is looked at again
    left = ("sessions_left", "facts_left", "keys_left", "events_left", "due_left", "dead_letters_left")
    assert {name: receipt[name] or 0 for name in left} == dict.fromkeys(left, 0), receipt
