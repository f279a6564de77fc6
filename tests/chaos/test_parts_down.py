"""The model, the vector store or both away for a whole run: appends and reads go on, and the backlog drains afterwards.

./run test-long tests/chaos/test_parts_down.py      each by itself, for longer, the model with a worker that calls it
"""

import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from prefold.client import AsyncPrefold, Context, Session
from prefold.conversation import check_anthropic
from prefold.stack.places import free_port
from tests.support.embedding_server import embedding_server
from tests.support.logged_roles import LoggedRole, embedding_with, gateway_process, logged_program, logged_role
from tests.support.quiet import opened_stores
from tests.support.seeds import seed_of_run, tell
from tests.support.vectors import running_vectors
from tests.support.waiting import wait_until

LIMIT_TOKENS = 1_500
WITH_DEAD_MODEL = (sys.executable, "-m", "tests.support.failing_summarizer")


@dataclass(frozen=True)
class Outage:
    """What is away, and how much is said meanwhile."""

    model: bool = False
    vectors: bool = False
    sessions: int = 5
    turns: int = 22
    drained_within_seconds: float = 60
    worker_calls: bool = False
    """A worker is there, and its model does not answer."""


BOTH = Outage(model=True, vectors=True)
MODEL = Outage(model=True, sessions=30, turns=120, drained_within_seconds=240, worker_calls=True)
VECTORS = Outage(vectors=True, sessions=30, turns=120, drained_within_seconds=240)


@dataclass
class Tally:
    """What was seen from outside."""

    appends: int = 0
    reads: int = 0
    degraded: int = 0
    swapped: int = 0
    most_tokens: int = 0


async def talk(prefold: AsyncPrefold, session: str, outage: Outage, rng: random.Random, tally: Tally) -> None:
    """A session in which every append and every read has to succeed at the first attempt."""
    await prefold.create_session(session, hard_limit_tokens=LIMIT_TOKENS, system="Be brief.")
    for number in range(outage.turns):
        appended = await prefold.append_many(session, speech(rng, session, number))
        tally.appends += 1
        tally.degraded += appended.context.status == "degraded"
        tally.swapped += appended.context.status == "swapped"
        query = "Where is the parcel?" if number % 8 == 7 else None
        check_context(await prefold.context(session, query=query), outage, has_query=query is not None)
        tally.reads += 1
        tally.most_tokens = max(tally.most_tokens, appended.context.tokens)


def speech(rng: random.Random, session: str, number: int) -> list[dict[str, Any]]:
    name, text = f"{session}-{number}", f"Parcel {number} went to Lyon on day {number}. " * rng.randint(1, 16)
    if rng.random() < 0.75:
        return [{"id": name, "role": "assistant" if number % 2 else "user", "content": text}]
    use = {"type": "tool_use", "id": f"call_{number}", "name": "find", "input": {"parcel": number}}
    result = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": text}
    return [
        {"id": f"{name}-call", "role": "assistant", "content": [use]},
        {"id": f"{name}-result", "role": "user", "content": [result]},
    ]


def check_context(context: Context, outage: Outage, *, has_query: bool) -> None:
    assert context.tokens <= LIMIT_TOKENS
    assert check_anthropic(list(context.messages), context.system) == []
    gap = [part for part in context.left_out if part["part"] != "recall"]
    assert bool(gap) == (context.status == "degraded")
    if outage.vectors:
        assert context.recalled == ()
        reasons = [part["reason"] for part in context.left_out if part["part"] == "recall"]
        assert bool(reasons) == has_query


class Statuses(httpx.AsyncHTTPTransport):
    """Counts how requests were answered, those that the client would try again too."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[tuple[str, int]] = Counter()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        self.seen[request.method, response.status_code] += 1
        return response


async def talk_all(url: str, outage: Outage, seed: int) -> Tally:
    tally, statuses = Tally(), Statuses()
    names = [f"s{number}" for number in range(outage.sessions)]
    async with AsyncPrefold(url, transport=statuses) as prefold:
        await asyncio.gather(*(talk(prefold, name, outage, random.Random(f"{seed} {name}"), tally) for name in names))
        for name in names:
            check_session(await prefold.session(name), outage)
    assert statuses.seen == {
        ("PUT", 200): outage.sessions,
        ("POST", 201): tally.appends,
        ("GET", 200): tally.reads + outage.sessions,
    }
    return tally


def check_session(session: Session, outage: Outage) -> None:
    """What is known of the part that is away."""
    if outage.model:
        assert (session.swaps, session.standby) == (0, None)
    if outage.vectors:
        assert session.embedded_to == 0


async def check_recovery(url: str, outage: Outage) -> None:
    """Every session has its summaries and its vectors."""
    async with AsyncPrefold(url) as prefold:
        for number in range(outage.sessions):
            session = await prefold.session(f"s{number}")
            assert session.embedded_to == session.head_seq
            assert not session.degraded
            assert session.swaps > 0 or session.standby is not None or session.status == "ok"
            check_context(await prefold.context(f"s{number}"), Outage(), has_query=False)
        assert await prefold.search("Where did parcel 7 go?")


@dataclass
class Town:
    """The processes of one deployment; what is away is started later."""

    folder: Path
    redis_url: str
    queue_url: str
    outage: Outage
    embedder_url: str
    living: ExitStack = field(default_factory=ExitStack)
    dead_model: ExitStack = field(default_factory=ExitStack)
    vectors_port: int = field(default_factory=lambda: free_port("127.0.0.1"))

    @property
    def settings(self) -> dict[str, str]:
        return {"qdrant_url": f"http://127.0.0.1:{self.vectors_port}", **embedding_with(self.embedder_url)}

    def begin(self) -> str:
        """Starts all but what is away; the gateway's URL."""
        url = self.living.enter_context(gateway_process(self.folder, self.redis_url, self.queue_url, **self.settings))
        roles = [self.start("dispatcher"), self.start("worker embed"), self.start("worker memory")]
        if not self.outage.vectors:
            self.start_vectors()
        if self.outage.worker_calls:
            failing = logged_program(WITH_DEAD_MODEL, self.folder, "worker compact", self.redis_url, self.queue_url)
            roles.append(self.dead_model.enter_context(failing))
        elif not self.outage.model:
            roles.append(self.start("worker compact"))
        for role in roles:
            wait_until("the roles are up", role.has_started, timeout=30)
        return url

    def recover(self) -> None:
        """Starts what was away."""
        self.dead_model.close()
        if self.outage.vectors:
            self.start_vectors()
        if self.outage.model:
            self.start("worker compact")

    def start(self, role: str) -> LoggedRole:
        running = logged_role(self.folder, role, self.redis_url, self.queue_url, **self.settings)
        return self.living.enter_context(running)

    def start_vectors(self) -> None:
        flags = ("--vectors-port", str(self.vectors_port))
        self.living.enter_context(running_vectors(self.folder / "vectors", *flags))

    def end(self) -> None:
        self.dead_model.close()
        self.living.close()


@pytest.fixture
def town(redis_url: str, queue_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Town]:
    """Of the outage that the test is given."""
    with embedding_server() as embedder_url:
        built = Town(tmp_path, redis_url, queue_url, request.getfixturevalue("outage"), embedder_url)
        try:
            yield built
        finally:
            built.end()


@pytest.mark.parametrize(
    "outage",
    [
        pytest.param(BOTH, id="both", marks=pytest.mark.timeout(180)),
        pytest.param(MODEL, id="model", marks=[pytest.mark.long, pytest.mark.timeout(900)]),
        pytest.param(VECTORS, id="vectors", marks=[pytest.mark.long, pytest.mark.timeout(900)]),
    ],
)
def test_appends_and_reads_go_on_while_a_part_is_away_and_the_backlog_drains(town: Town, outage: Outage) -> None:
    seed = seed_of_run("this conversation")
    url = town.begin()
    tally = asyncio.run(talk_all(url, outage, seed))
    assert tally.most_tokens <= LIMIT_TOKENS
    if outage.model:
        assert tally.degraded > 0
    if outage.worker_calls:
        reasons = [httpx.get(f"{url}/v1/sessions/s{n}").json()["last_build_error"] for n in range(outage.sessions)]
        assert all(reason and reason.startswith("model_unavailable") for reason in reasons)
    if outage.vectors:
        answer = httpx.post(f"{url}/v1/search", json={"query": "parcel"}, timeout=10)
        assert (answer.status_code, "retry-after" in answer.headers) == (503, True)

    began = time.monotonic()
    town.recover()
    with opened_stores(town.redis_url, town.queue_url, town.settings["qdrant_url"]) as stores:
        wait_until("the backlog has drained", stores.is_quiet, timeout=outage.drained_within_seconds)
    tell(f"{tally}; backlog drained in {time.monotonic() - began:.1f} s")
    asyncio.run(check_recovery(url, outage))
