"""The embed job on a real session store and a real vector store."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from redis.asyncio import Redis

from prefold.conversation import prepare_turn
from prefold.embedding import CosineScale
from prefold.errors import UnavailableError
from prefold.jobs import TO_HEAD
from prefold.recall import CollectionSpec, VectorIndex, connect_vectors
from prefold.storage import Sessions, connect_sessions
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.keys import SessionKeys
from prefold.storage.types import AppendResult, SessionOptions, SessionRef
from prefold.tokens import load_counter
from prefold.worker.embed_pass import EmbedOptions, EmbedPass
from prefold.worker.turn_store import MadeIndex
from tests.support.embedding import FakeEmbedder
from tests.support.vectors import RunningVectors, running_vectors

COUNTER = load_counter()


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path_factory.mktemp("vectors")) as server:
        yield server


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


@pytest.fixture
async def index(vectors: RunningVectors, request: pytest.FixtureRequest) -> AsyncIterator[VectorIndex]:
    """A collection of this test's own."""
    async with connect_vectors(vectors.url, CollectionSpec(request.node.name, 4), scale=CosineScale()) as opened:
        yield opened


async def say(sessions: Sessions, session: str, *texts: str) -> AppendResult:
    raws = [{"id": f"{session}-{text}", "role": "user", "content": text} for text in texts]
    turns = [prepare_turn(raw, place, COUNTER, lambda: "unused") for place, raw in enumerate(raws)]
    return await sessions.append("acme", session, turns)


async def embed(sessions: Sessions, index: VectorIndex, *refs: SessionRef) -> None:
    work = EmbedPass(sessions, MadeIndex(index), FakeEmbedder(), lambda: False, EmbedOptions())
    await work.run([EmbedSpan(ref.tenant, ref.session, ref.incarnation, 1, TO_HEAD) for ref in refs])


async def due(sessions: Sessions) -> int:
    """How many sessions wait to be embedded."""
    return sum(item.kind == "embed" for item in await sessions.due_sets.due(2**52, 100))


async def found(index: VectorIndex, words: str, tenant: str = "acme") -> list[tuple[str, int]]:
    hits = await index.search(tenant, vector=None, query=words)
    return sorted((hit.ref.session, hit.seq) for hit in hits)


async def test_an_appended_turn_is_found_by_its_words(sessions: Sessions, index: VectorIndex) -> None:
    placed = await say(sessions, "s", "my order is late", "the weather is fine")
    await embed(sessions, index, placed.ref)
    assert (await found(index, "order"))[0] == ("s", 1)
    assert await found(index, "order", tenant="other") == []
    assert await sessions.embedded_to(placed.ref, index.collection) == 2


async def test_what_is_embedded_is_no_longer_due(sessions: Sessions, index: VectorIndex) -> None:
    placed = await say(sessions, "s", "one")
    assert await due(sessions) == 1
    await embed(sessions, index, placed.ref)
    assert await due(sessions) == 0


async def test_embedding_twice_stores_each_turn_once(sessions: Sessions, index: VectorIndex, redis: Redis) -> None:
    placed = await say(sessions, "s", "one", "two")
    await embed(sessions, index, placed.ref)
    await redis.hdel(SessionKeys.of("acme", "s").meta, "embedded")
    await embed(sessions, index, placed.ref)
    assert await index.count("acme", session="s") == 2


async def test_a_point_knows_the_sessions_user(sessions: Sessions, index: VectorIndex) -> None:
    await sessions.open("acme", "s", SessionOptions(user="ann"))
    placed = await say(sessions, "s", "one")
    await embed(sessions, index, placed.ref)
    assert await index.count("acme", user="ann") == 1
    assert await index.count("acme", user="bob") == 0


async def test_two_passes_at_once_over_the_same_sessions_lose_and_double_nothing(
    sessions: Sessions, index: VectorIndex
) -> None:
    refs = [(await say(sessions, f"s{n}", *map(str, range(1, 20)))).ref for n in range(5)]
    await asyncio.gather(*(embed(sessions, index, *order) for order in (refs, refs[::-1], refs[2:])))
    assert [await index.count("acme", session=ref.session) for ref in refs] == [19] * 5
    assert [await sessions.embedded_to(ref, index.collection) for ref in refs] == [19] * 5


async def test_turns_that_come_while_others_are_embedded_stay_due(
    sessions: Sessions, index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed = await say(sessions, "s", "one")
    real = index.upsert

    async def upsert(points: object) -> None:
        await real(points)  # type: ignore[arg-type]
        monkeypatch.undo()
        await say(sessions, "s", "two")

    monkeypatch.setattr(index, "upsert", upsert)
    await embed(sessions, index, placed.ref)
    assert await due(sessions) == 1
    await embed(sessions, index, placed.ref)
    assert await sessions.embedded_to(placed.ref, index.collection) == 2
    assert await due(sessions) == 0


async def test_a_session_whose_keys_are_gone_leaves_no_point_and_no_due_entry(
    sessions: Sessions, index: VectorIndex, redis: Redis
) -> None:
    placed = await say(sessions, "s", "one")
    await embed(sessions, index, placed.ref)
    keys = SessionKeys.of("acme", "s")
    await redis.delete(keys.meta, keys.turns, keys.context)
    await redis.zadd(keys.due, {f"embed:{keys.label}:{placed.ref.incarnation}": 1})
    await embed(sessions, index, placed.ref)
    assert await index.count("acme") == 0
    assert await due(sessions) == 0


async def test_a_new_life_of_a_session_keeps_its_points_when_the_old_one_is_cleaned_up(
    sessions: Sessions, index: VectorIndex, redis: Redis
) -> None:
    old = (await say(sessions, "s", "one")).ref
    await embed(sessions, index, old)
    keys = SessionKeys.of("acme", "s")
    await redis.delete(keys.meta, keys.turns, keys.context, keys.ids)
    new = (await say(sessions, "s", "parrot", "zebra")).ref
    await embed(sessions, index, old, new)
    assert await found(index, "one parrot zebra") == [("s", 1), ("s", 2)]
    assert await index.count("acme") == 2


async def test_a_collection_that_is_lost_while_the_process_runs_is_made_again(
    sessions: Sessions, index: VectorIndex, vectors: RunningVectors
) -> None:
    placed = await say(sessions, "s", "one")
    store = MadeIndex(index)
    work = EmbedPass(sessions, store, FakeEmbedder(), lambda: False)
    await work.run([EmbedSpan("acme", "s", placed.ref.incarnation, 1, TO_HEAD)])
    async with httpx.AsyncClient() as client:
        (await client.delete(f"{vectors.url}/collections/{index.collection}")).raise_for_status()
    await say(sessions, "s", "two")
    await work.run([EmbedSpan("acme", "s", placed.ref.incarnation, 1, TO_HEAD)])
    assert await found(index, "two") == [("s", 2)]


async def test_a_vector_store_that_is_down_leaves_the_turns_due_until_it_is_back(
    sessions: Sessions, tmp_path: Path
) -> None:
    placed = await say(sessions, "s", "one")
    with running_vectors(tmp_path) as server:
        async with connect_vectors(server.url, CollectionSpec("fake", 4)) as index:
            server.kill()
            with pytest.raises(UnavailableError):
                await embed(sessions, index, placed.ref)
            assert await sessions.embedded_to(placed.ref, index.collection) == 0
            assert await due(sessions) == 1
    with running_vectors(tmp_path) as server:
        async with connect_vectors(server.url, CollectionSpec("fake", 4)) as index:
            await embed(sessions, index, placed.ref)
            assert await found(index, "one") == [("s", 1)]
    assert await due(sessions) == 0
