"""From an append to a hit, through every process that is between them, killed on the way."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from prefold.conversation import prepare_turn
from prefold.embedding import Embedder, create_embedder
from prefold.recall import CollectionSpec, VectorIndex, connect_vectors
from prefold.storage import Sessions, connect_sessions
from prefold.storage.types import SessionOptions
from prefold.tokens import load_counter
from tests.support.vectors import RunningVectors, running_vectors
from tests.support.waiting import wait_until_async
from tests.support.worker_jobs import environment, role_process

COUNTER = load_counter()
TURNS = 120


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return create_embedder("minilm")


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path) as server:
        yield server


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


@pytest.fixture
async def index(vectors: RunningVectors, embedder: Embedder) -> AsyncIterator[VectorIndex]:
    spec = CollectionSpec(embedder.id, embedder.dimension)
    async with connect_vectors(vectors.url, spec, scale=embedder.scale) as opened:
        await opened.ensure()
        yield opened


async def say(sessions: Sessions, session: str, turn_id: str, text: str) -> None:
    raw = {"id": turn_id, "role": "user", "content": text}
    await sessions.append("acme", session, [prepare_turn(raw, 0, COUNTER, lambda: "unused")])


async def test_turns_are_found_by_meaning_though_dispatcher_and_worker_are_killed_on_the_way(
    redis_url: str, queue_url: str, vectors: RunningVectors, sessions: Sessions, index: VectorIndex, embedder: Embedder
) -> None:
    settings = environment(queue_url, redis_url, embedder="minilm", qdrant_url=vectors.url, embed_call_turns="4")
    with ExitStack() as living:

        def start() -> tuple[object, ...]:
            return (
                living.enter_context(role_process("dispatcher", **settings)),
                living.enter_context(role_process("worker", "embed", **settings)),
            )

        first = start()
        await say(sessions, "s0", "breakfast", "In the morning I always eat porridge with berries.")
        for number in range(TURNS):
            await say(sessions, f"s{number % 7}", f"t{number}", f"Ticket {number} is about a printer that jams.")

        async def some_are_in() -> bool:
            return await index.count("acme") > 10

        await wait_until_async("the worker is at work", some_are_in, timeout=30)
        for process in first:
            process.kill()  # type: ignore[attr-defined]
        start()

        async def all_are_in() -> bool:
            return await index.count("acme") == TURNS + 1

        await wait_until_async("every turn is in", all_are_in, timeout=40)

        async def nothing_is_due() -> bool:
            items = await sessions.due_sets.due(2**52, 100)
            return all(item.kind in ("expire", "remember") for item in items)

        await wait_until_async("nothing is due", nothing_is_due, timeout=20)
    hits = await index.search("acme", vector=embedder.embed_query("What is my breakfast?"), query="")
    assert (hits[0].ref.session, hits[0].seq) == ("s0", 1)


async def test_a_session_past_its_soft_threshold_gets_its_standby_before_the_limit(
    redis_url: str, queue_url: str, sessions: Sessions
) -> None:
    settings = environment(queue_url, redis_url)
    await sessions.open("acme", "long", SessionOptions(hard_limit_tokens=4_000))
    with role_process("dispatcher", **settings), role_process("worker", "compact", **settings):
        for number in range(40):
            text = f"Order {number} of the shop in Lyon came late, and the parcel held {number + 3} broken cups. " * 4
            await say(sessions, "long", f"t{number}", text)
            if (await sessions.view("acme", "long")).status == "soft":
                break

        async def standby() -> object:
            return (await sessions.view("acme", "long")).standby

        await wait_until_async("the standby is there", standby, timeout=30)
    view = await sessions.view("acme", "long")
    assert (view.swaps, view.limit_crossings) == (0, 0)
