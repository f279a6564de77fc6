"""What the embed job relies on, of the fakes as of the real servers."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from prefold.conversation import prepare_turn
from prefold.errors import NotFoundError, RefusedError
from prefold.recall import CollectionSpec, TurnPoint, connect_vectors, document_words
from prefold.storage import connect_sessions
from prefold.storage.types import SessionRef
from prefold.tokens import load_counter
from prefold.worker.embed_pass import TurnLog, TurnStore
from prefold.worker.turn_store import MadeIndex
from tests.support.embedding import FakeTurnLog, FakeTurnStore
from tests.support.vectors import RunningVectors, running_vectors

COUNTER = load_counter()
OTHER = SessionRef("acme", "s", "another")


@dataclass
class LogBench:
    log: TurnLog
    add: Callable[..., Awaitable[SessionRef]]
    """``add(text…)`` appends to the session ``s`` of ``acme``."""
    due: Callable[[], Awaitable[int]]


@pytest.fixture(params=["fake", "redis"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[LogBench]:
    if request.param == "fake":
        fake = FakeTurnLog()

        async def add_fake(*texts: str) -> SessionRef:
            return fake.add(SessionRef("acme", "s", "a1"), *texts)

        async def due_fake() -> int:
            return len(fake.due)

        yield LogBench(fake, add_fake, due_fake)
        return
    async with connect_sessions(request.getfixturevalue("redis_url")) as sessions:

        async def add(*texts: str) -> SessionRef:
            raws = [{"id": text, "role": "user", "content": text} for text in texts]
            turns = [prepare_turn(raw, place, COUNTER, lambda: "unused") for place, raw in enumerate(raws)]
            return (await sessions.append("acme", "s", turns)).ref

        async def due() -> int:
            return sum(item.kind == "embed" for item in await sessions.due_sets.due(2**52, 100))

        yield LogBench(sessions, add, due)


async def test_a_session_that_does_not_exist_is_not_found(bench: LogBench) -> None:
    with pytest.raises(NotFoundError):
        await bench.log.view("acme", "s")


async def test_the_view_tells_which_life_it_is_and_how_many_turns_it_has(bench: LogBench) -> None:
    ref = await bench.add("one", "two")
    view = await bench.log.view("acme", "s")
    assert (view.ref, view.head_seq, view.user) == (ref, 2, "")


async def test_turns_are_read_in_order_after_a_seq_up_to_a_limit(bench: LogBench) -> None:
    await bench.add("one", "two", "three", "four")
    read = partial(bench.log.read_turns, "acme", "s")
    assert [turn.seq for turn in await read(0, 3)] == [1, 2, 3]
    assert [turn.seq for turn in await read(3, 3)] == [4]
    assert await read(4, 3) == []


async def test_a_mark_is_kept_for_its_collection_only_and_never_moves_back(bench: LogBench) -> None:
    ref = await bench.add("one", "two", "three")
    assert await bench.log.embedded_to(ref, "x") == 0
    assert await bench.log.mark_embedded(ref, 2, "x")
    assert await bench.log.mark_embedded(ref, 1, "x")
    assert await bench.log.embedded_to(ref, "x") == 2
    assert await bench.log.embedded_to(ref, "y") == 0


async def test_a_session_is_due_until_its_last_turn_is_marked(bench: LogBench) -> None:
    ref = await bench.add("one", "two")
    await bench.log.mark_embedded(ref, 1, "x")
    assert await bench.due() == 1
    await bench.log.mark_embedded(ref, 2, "x")
    assert await bench.due() == 0


async def test_another_life_of_the_session_cannot_be_marked(bench: LogBench) -> None:
    await bench.add("one")
    assert not await bench.log.mark_embedded(OTHER, 1, "x")
    assert await bench.log.embedded_to(OTHER, "x") == 0
    assert await bench.due() == 1


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path_factory.mktemp("vectors")) as server:
        yield server


@dataclass
class StoreBench:
    store: TurnStore
    count: Callable[[], Awaitable[int]]


@pytest.fixture(params=["fake", "vectors"])
async def stored(request: pytest.FixtureRequest) -> AsyncIterator[StoreBench]:
    if request.param == "fake":
        fake = FakeTurnStore(refuses=lambda point: not np.isfinite(point.vector).all())

        async def count_fake() -> int:
            return len(fake.points)

        yield StoreBench(fake, count_fake)
        return
    server: RunningVectors = request.getfixturevalue("vectors")
    async with connect_vectors(server.url, CollectionSpec(request.node.name, 4)) as index:
        yield StoreBench(MadeIndex(index), partial(index.count, "acme"))


def point(seq: int, incarnation: str = "a1", vector: tuple[float, ...] = (0.6, 0.8, 0, 0)) -> TurnPoint:
    return TurnPoint(
        ref=SessionRef("acme", "s", incarnation),
        user="",
        seq=seq,
        revision=0,
        role="user",
        ts_ms=None,
        vector=np.array(vector, dtype=np.float32),
        words=document_words("one two"),
    )


async def test_a_point_written_twice_is_there_once(stored: StoreBench) -> None:
    await stored.store.upsert([point(1), point(2)])
    await stored.store.upsert([point(2), point(3)])
    assert await stored.count() == 3


async def test_writing_nothing_is_legal(stored: StoreBench) -> None:
    await stored.store.upsert([])


async def test_a_vector_that_is_none_is_refused(stored: StoreBench) -> None:
    with pytest.raises(RefusedError):
        await stored.store.upsert([point(1, vector=(float("nan"), 0, 0, 0))])


async def test_one_life_of_a_session_is_deleted_and_the_other_kept(stored: StoreBench) -> None:
    await stored.store.upsert([point(1), point(2), point(1, "a2")])
    await stored.store.delete("acme", session="s", incarnation="a1")
    assert await stored.count() == 1


async def test_deleting_what_is_not_there_is_legal(stored: StoreBench) -> None:
    await stored.store.delete("acme", session="s", incarnation="a1")
