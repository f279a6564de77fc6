"""Sessions erased at random moments, with turns, embeddings and summaries of them under way: nothing of them stays.

PREFOLD_SEED=7 ./run test tests/chaos/test_erasures.py      the same moments once more
./run test-long tests/chaos/test_erasures.py                500 erasures, and the grace in real time
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from prefold.client import AsyncPrefold
from prefold.errors import GoneError
from prefold.stack.embedded import EmbeddedStack, temporary_stack
from prefold.stack.redis_server import session_options, with_options
from prefold.storage.keys import SessionKeys
from prefold.storage.limits import ERASE_GRACE
from tests.support.canaries import in_command_logs, in_files, in_keys, in_readable_values, uncompressed
from tests.support.embedding_server import embedding_server
from tests.support.logged_roles import embedding_with
from tests.support.quiet import Stores, opened_stores
from tests.support.redis import RunningRedis, running_redis
from tests.support.seeds import seed_of_run, tell
from tests.support.waiting import wait_until, wait_until_async

LIMIT_TOKENS = 1_200
REFUSED = 410


@dataclass(frozen=True)
class Scale:
    erasures: int
    at_once: int
    """Sessions that are talked to at the same time."""
    waits_for_grace: bool


SHORT = Scale(erasures=16, at_once=9, waits_for_grace=False)
LONG = Scale(erasures=500, at_once=24, waits_for_grace=True)


@dataclass
class Life:
    """One life of a session, with a string that stands in all that was ever said in it."""

    session: str
    canary: str
    incarnation: str = ""
    is_erased: bool = False
    acked: list[str] = field(default_factory=list)
    """Ids of its turns."""


@dataclass
class Run:
    """What happens to the sessions of one run."""

    url: str
    stores: Stores
    scale: Scale
    rng: random.Random
    lives: list[Life] = field(default_factory=list)
    receipts: list[dict[str, Any]] = field(default_factory=list)

    async def all(self) -> None:
        places = asyncio.Semaphore(self.scale.at_once)
        async with AsyncPrefold(self.url) as prefold, httpx.AsyncClient(base_url=self.url, timeout=20) as plain:
            number = 0
            stories = []
            left = self.scale.erasures
            while left:
                # How it goes on after each erasure: begun anew at once, or never again.
                erasures = min(left, self.rng.choice((1, 1, 2)))
                ends_alive = self.rng.random() < 0.5
                left -= erasures
                rng = random.Random(f"{self.rng.random()} {number}")
                story = Story(f"s{number}", erasures, ends_alive, self, rng, prefold, plain)
                stories.append(story.run(places))
                number += 1
            await asyncio.gather(*stories)

    def canaries(self, *, erased: bool) -> list[bytes]:
        return [life.canary.encode() for life in self.lives if life.is_erased == erased]


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
                life = Life(self.session, f"CANARY-{self.session}-{number}-{self.rng.randrange(1 << 40):x}")
                self.whole.lives.append(life)
                await self.live(life, to_be_erased=number < self.erasures)

    async def live(self, life: Life, *, to_be_erased: bool) -> None:
        await self.prefold.create_session(
            self.session,
            user="u1",
            hard_limit_tokens=LIMIT_TOKENS,
            system=f"Speak of {life.canary}.",
            metadata={"about": life.canary},
        )
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
        answers = await asyncio.gather(*(self.plain.delete(f"/v1/sessions/{self.session}") for _ in range(times)))
        self.whole.receipts += [answer.raise_for_status().json() for answer in answers]
        await talking  # what was on its way is refused: else it would be said in the next life

    async def talk(self, life: Life, turns: int) -> None:
        """Turns and tool rounds until there are so many, or until the session is gone."""
        number = 0
        while len(life.acked) < turns:
            batch = self.speech(life, number)
            number += 1
            try:
                await self.prefold.append_many(self.session, batch)
            except GoneError:
                return
            life.acked += [turn["id"] for turn in batch]
            await asyncio.sleep(self.rng.random() * 0.02)

    def speech(self, life: Life, number: int) -> list[dict[str, Any]]:
        text = f"Order {number}: {life.canary} is what the parcel to Lyon is called. " * self.rng.randint(1, 5)
        name = f"{life.canary}-{number}"
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


@pytest.fixture
def server() -> Iterator[RunningRedis]:
    """A session server with a log, whose files show what they hold."""
    with running_redis(with_options(session_options("fast"), rdbcompression="no")) as running:
        yield running


@pytest.fixture
def stack(server: RunningRedis, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedStack]:
    """All roles as processes; the vector store tidies up within seconds."""
    monkeypatch.setenv("PREFOLD_VECTORS_FLUSH_SECONDS", "0.5")
    monkeypatch.setenv("PREFOLD_VECTORS_VACUUM_IDLE_SECONDS", "0.5")
    with embedding_server() as url:
        embedding: dict[str, Any] = embedding_with(url)
        with temporary_stack(redis_url=server.url, **embedding) as running:
            yield running


@pytest.fixture
def stores(stack: EmbeddedStack) -> Iterator[Stores]:
    with opened_stores(stack.redis_url, stack.queue_url, stack.qdrant_url, stack.qdrant_api_key) as opened:
        uncompressed(opened.queue)
        yield opened


@pytest.mark.parametrize(
    "scale",
    [
        pytest.param(SHORT, id="16", marks=pytest.mark.timeout(180)),
        pytest.param(LONG, id="500", marks=[pytest.mark.long, pytest.mark.timeout(1800)]),
    ],
)
def test_nothing_of_an_erased_life_is_left_in_any_store(
    server: RunningRedis, stack: EmbeddedStack, stores: Stores, scale: Scale
) -> None:
    run = Run(stack.gateway_url, stores, scale, random.Random(seed_of_run("these erasures")))
    asyncio.run(run.all())
    erased, living = run.canaries(erased=True), run.canaries(erased=False)
    assert len(erased) == scale.erasures
    check_receipts(run)

    # What the receipts promise of the files of the session store, before any worker looks again.
    files = server.server.directory
    wait_until("the rewrites have followed", lambda: not in_files(files, erased), timeout=12)
    wait_until("all work is done", stores.is_quiet, timeout=120)
    over = {life.incarnation for life in run.lives if life.is_erased}
    assert len(over) == scale.erasures
    follow_up(stores, run, at_once=not scale.waits_for_grace)

    # Everything that is stored, with what lives as the proof that one would find it.
    found = in_keys(stores.sessions, [*erased, *living])
    assert not set(found) & set(erased), found
    assert set(found) == set(living)
    assert not in_keys(stores.queue, erased)
    for redis in (stores.sessions, stores.queue):
        assert not in_command_logs(redis, erased)
    assert set(in_files(files, [*erased, *living])) == set(living)
    assert not in_files(stack.settings.data_dir, [*erased, *living])  # vectors without words, logs without text
    check_lives(stores, run)

    # Not even the names of those lives, but in the log of the vector store, as the receipts say.
    assert not in_readable_values(stores.stored("*"), over)
    names = [name.encode() for name in over]
    assert not in_keys(stores.queue, names)
    vectors = stack.settings.data_dir / "vectors"
    wait_until("the vector store has tidied up", lambda: not outside_of_logs(in_files(vectors, names)), timeout=60)
    tell_of_work_in_flight(stack)


def outside_of_logs(found: dict[bytes, list[str]]) -> list[str]:
    return [file for files in found.values() for file in files if "/wal/" not in file]


def tell_of_work_in_flight(stack: EmbeddedStack) -> None:
    """How often an erasure met workers at work, by their own word."""
    lines = [line for path in stack.folder.logs.glob("worker*") for line in path.read_text("utf-8").splitlines()]
    events = [json.loads(line) for line in lines if line.startswith("{")]
    embedding = sum(event["sessions_gone"] for event in events if event["event"] == "turns_embedded")
    building = Counter(
        event["event"] for event in events if event["event"] in ("build_gone", "build_lost", "build_stale")
    )
    tell(f"erased while being embedded: {embedding}; while a summary was written: {dict(building)}")


def check_receipts(run: Run) -> None:
    """They are honest: what a store could not be asked is not called gone."""
    for receipt in run.receipts:
        assert (receipt["keys_left"], receipt["events_left"], receipt["due_left"]) == (0, 0, 0), receipt
        assert receipt["dead_letters_left"] == 0
    unsure = sum(bool(receipt["not_checked"]) for receipt in run.receipts)
    assert unsure < len(run.receipts) / 2  # a store may be slow now and then
    busy = sum(bool(receipt["jobs_left"] or receipt["vectors_left"]) for receipt in run.receipts)
    turns = sum(receipt["turns"] for receipt in run.receipts)
    tell(
        f"{len(run.receipts)} receipts for {turns} turns; {busy} found work or vectors that had come in meanwhile, "
        f"{unsure} name a store that did not answer"
    )


def ended_lives(stores: Stores, run: Run) -> set[str]:
    """Incarnations whose end no worker has followed up."""
    ended = set()
    for session in {life.session for life in run.lives}:
        fields = stores.sessions.hgetall(SessionKeys.of("default", session).tomb)
        ended |= {name.decode().removeprefix("end:") for name in fields if name.startswith(b"end:")}
    return ended


def follow_up(stores: Stores, run: Run, *, at_once: bool) -> None:
    """Waits until workers have looked again, after the grace or, to save the time, as if it had passed."""
    if at_once:
        due = [entry for entry in stores.due("expire") if entry.rpartition(":")[2] in ended_lives(stores, run)]
        for entry in due:
            key = SessionKeys.of("default", entry.split(":")[2]).due
            stores.sessions.zadd(key, {entry: 1}, xx=True)
    wait_until(
        "workers have looked at every life that is over",
        lambda: not ended_lives(stores, run),
        timeout=60 + ERASE_GRACE.total_seconds(),
    )
    wait_until("all work is done", stores.is_quiet, timeout=60)


def check_lives(stores: Stores, run: Run) -> None:
    """What lives is whole, and nobody else has vectors or anything due."""
    living = {life.incarnation: len(life.acked) for life in run.lives if not life.is_erased}
    for life in run.lives:
        if not life.is_erased:
            assert stores.sessions.xlen(SessionKeys.of("default", life.session).turns) == len(life.acked)
    points = [point["payload"]["incarnation"] for point in stores.points().values()]
    assert {name: points.count(name) for name in set(points)} == living
    assert sorted(entry.split(":")[0] for entry in stores.due("embed", "compact", "expire")) == ["expire"] * len(living)
