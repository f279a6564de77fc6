"""Vectors of turns that were edited, removed or taken back: the worker's passes, the gateway's search, real servers."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx
import pytest

from prefold.conversation import prepare_turn, redacted_turn
from prefold.embedding import Embedder
from prefold.errors import ConflictError, UnavailableError
from prefold.gateway.background import InBackground
from prefold.gateway.finding import Finder, Hit
from prefold.gateway.vectors import EmbeddedTurns
from prefold.jobs import TO_HEAD
from prefold.recall import CollectionSpec, TurnPoint, VectorIndex, connect_vectors
from prefold.recall.server import VectorServer
from prefold.recall.transport import HttpTransport
from prefold.storage import Sessions, connect_sessions
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.types import SessionOptions, SessionRef
from prefold.tokens import load_counter
from prefold.worker.embed_pass import EmbedOptions, EmbedPass
from prefold.worker.turn_store import MadeIndex
from tests.support.embedding import FakeEmbedder
from tests.support.seeds import seed_of_run
from tests.support.vectors import RunningVectors, running_vectors

COUNTER = load_counter()
GRACE = timedelta(seconds=31)
LATER = 2**52


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path_factory.mktemp("vectors")) as server:
        yield server


@dataclass
class Bench:
    """A session store, a vector store, and what a gateway and a worker do with them."""

    sessions: Sessions
    index: VectorIndex
    gateway: EmbeddedTurns
    finder: Finder
    url: str
    said: dict[str, int] = field(default_factory=dict)

    async def say(self, *texts: str, session: str = "s") -> SessionRef:
        turns = [_turn(f"m{self._next(session)}", text) for text in texts]
        return (await self.sessions.append("acme", session, turns)).ref

    async def edit(self, turn_id: str, text: str, session: str = "s") -> None:
        await self.sessions.edit_turn("acme", session, turn_id, _turn(turn_id, text))

    async def remove(self, turn_id: str, session: str = "s") -> None:
        stored = await self.sessions.find_turn("acme", session, turn_id)
        await self.sessions.remove_turn("acme", session, turn_id, redacted_turn(stored, COUNTER))

    async def embed(self, *refs: SessionRef, index: VectorIndex | None = None, call_turns: int = 16) -> None:
        store = MadeIndex(index or self.index)
        work = EmbedPass(self.sessions, store, FakeEmbedder(), lambda: False, EmbedOptions(call_turns))
        await work.run([EmbedSpan(ref.tenant, ref.session, ref.incarnation, 1, TO_HEAD) for ref in refs])

    async def wait_for_the_grace(self) -> None:
        seconds, micros = await self.sessions.client.time()
        self.sessions.now_ms = seconds * 1000 + micros // 1000 + int(GRACE.total_seconds() * 1000)

    async def is_due(self) -> bool:
        return any(item.kind == "embed" for item in await self.sessions.due_sets.due(LATER, 100))

    async def stored(self, ref: SessionRef, index: VectorIndex | None = None) -> set[tuple[int, int]]:
        """Seq and revision of every point of this life in one collection."""
        wanted = {"must": [{"key": "incarnation", "match": {"value": ref.incarnation}}]}
        body = {"limit": 1_000, "with_payload": True, "filter": wanted}
        path = f"{self.url}/collections/{(index or self.index).collection}/points/scroll"
        async with httpx.AsyncClient() as client:
            answer = (await client.post(path, json=body)).raise_for_status().json()
        payloads = [point["payload"] for point in answer["result"]["points"]]
        return {(payload["seq"], payload["revision"]) for payload in payloads}

    async def found(self, query: str) -> list[str]:
        return [one.text for one in await self.finder.find("acme", query, limit=20)]

    def _next(self, session: str) -> int:
        self.said[session] = self.said.get(session, 0) + 1
        return self.said[session]


def _turn(turn_id: str, text: str) -> Any:
    return prepare_turn({"id": turn_id, "role": "user", "content": text}, 0, COUNTER, lambda: "unused")


@pytest.fixture
async def bench(redis_url: str, vectors: RunningVectors) -> AsyncIterator[Bench]:
    """One collection for all tests, empty at the start of each: what another left would take places of the hits."""
    fake = FakeEmbedder()
    embedder: InBackground[Embedder] = InBackground("embedder", lambda: fake)
    second = timedelta(seconds=2)
    transport = HttpTransport(
        vectors.url, headers={}, connect_timeout=second, request_timeout=second, max_connections=4
    )
    with ThreadPoolExecutor(1) as executor:
        async with (
            transport,
            connect_sessions(redis_url) as sessions,
            connect_vectors(vectors.url, CollectionSpec(fake.id, fake.dimension)) as index,
        ):
            await embedder.get()
            await index.ensure()
            async with httpx.AsyncClient() as client:
                path = f"{vectors.url}/collections/{index.collection}/points/delete"
                (await client.post(path, params={"wait": "true"}, json={"filter": {}})).raise_for_status()
            gateway = EmbeddedTurns(VectorServer(transport), embedder)
            yield Bench(sessions, index, gateway, Finder(sessions, gateway, embedder, executor), vectors.url)


async def test_an_edited_turn_is_found_by_its_new_words_only(bench: Bench) -> None:
    ref = await bench.say("my order is late", "the weather is fine")
    await bench.embed(ref)
    await bench.edit("m1", "parrot")
    assert "my order is late" not in await bench.found("order")
    await bench.embed(ref)
    assert await bench.stored(ref) == {(1, 1), (2, 0)}
    assert "my order is late" not in await bench.found("order")
    assert (await bench.found("parrot"))[0] == "parrot"


async def test_the_gateway_deletes_old_vectors_at_once_in_every_collection(
    bench: Bench, vectors: RunningVectors
) -> None:
    ref, other = await bench.say("one", "two", "three"), await bench.say("one", session="t")
    async with connect_vectors(vectors.url, CollectionSpec("former", 4)) as former:
        for index in (bench.index, former):
            await bench.embed(ref, other, index=index)
        await bench.edit("m2", "other")
        assert await bench.gateway.forget_turns("acme", "s", ref.incarnation, 2, 2, below_revision=1) == 0
        for index in (bench.index, former):
            assert await bench.stored(ref, index) == {(1, 0), (3, 0)}
            assert await bench.stored(other, index) == {(1, 0)}
        await bench.embed(ref)
        assert await bench.gateway.forget_turns("acme", "s", ref.incarnation, 2, 2, below_revision=1) == 0
        assert await bench.stored(ref) == {(1, 0), (2, 1), (3, 0)}
        assert await bench.gateway.forget_turns("acme", "s", ref.incarnation, 2, 9) == 0
        assert await bench.stored(ref) == {(1, 0)}


async def test_a_worker_deletes_what_the_gateway_did_not_in_every_collection(
    bench: Bench, vectors: RunningVectors
) -> None:
    ref = await bench.say("one", "two", "three", "four")
    async with connect_vectors(vectors.url, CollectionSpec("former", 4)) as former:
        for index in (former, bench.index):
            await bench.embed(ref, index=index)
        await bench.remove("m1")
        await bench.edit("m2", "other")
        await bench.sessions.rewind("acme", "s", 3)
        await bench.embed(ref)
        assert await bench.stored(ref) == {(2, 1), (3, 0)}
        assert await bench.stored(ref, former) == {(3, 0)}


async def test_a_removed_turn_is_not_embedded_again(bench: Bench) -> None:
    ref = await bench.say("my order is late", "the weather is fine")
    await bench.remove("m1")
    await bench.embed(ref)
    assert await bench.stored(ref) == {(2, 0)}
    assert await bench.found("removed order") == ["the weather is fine"]


async def test_a_turn_that_is_gone_does_not_hide_one_that_says_the_same(bench: Bench) -> None:
    refs = [await bench.say("my parcel is late", session=name) for name in ("s", "t", "u")]
    await bench.embed(*refs)
    for left in (2, 1, 0):
        (found,) = await bench.finder.find("acme", "late parcel", limit=20)
        assert found.text == "my parcel is late"
        assert found.copies >= left
        await bench.sessions.erase("acme", found.session)  # the vectors stay, as when the store does not answer
    assert await bench.finder.find("acme", "late parcel", limit=20) == []


async def test_a_rewound_session_is_embedded_to_its_head_and_no_longer_due(bench: Bench) -> None:
    ref = await bench.say("one", "two", "three")
    await bench.sessions.rewind("acme", "s", 1)
    await bench.embed(ref)
    assert await bench.sessions.embedded_to(ref, bench.index.collection) == 3
    assert await bench.is_due()  # an embedder that read before the rewind may still write
    await bench.wait_for_the_grace()
    await bench.embed(ref)
    assert not await bench.is_due()
    await bench.say("parrot")
    await bench.embed(ref)
    assert await bench.stored(ref) == {(1, 0), (4, 0)}
    assert not await bench.is_due()


Change = Callable[[Bench], Awaitable[object]]
CHANGES: dict[str, tuple[Change, set[tuple[int, int]]]] = {
    "edit": (lambda bench: bench.edit("m2", "other"), {(1, 0), (2, 1), (3, 0)}),
    "remove": (lambda bench: bench.remove("m2"), {(1, 0), (3, 0)}),
    "rewind": (lambda bench: bench.sessions.rewind("acme", "s", 1), {(1, 0)}),
    "erase": (lambda bench: bench.sessions.erase("acme", "s"), set()),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_change_beside_the_upsert_is_undone_by_the_same_pass(
    bench: Bench, change: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = await bench.say("one", "two", "three")
    happens, expected = CHANGES[change]
    real = bench.index.upsert

    async def upsert(points: Sequence[TurnPoint]) -> None:
        monkeypatch.undo()
        if moment == "before":
            await happens(bench)
        await real(points)
        assert (2, 0) in await bench.stored(ref)
        if moment == "after":
            await happens(bench)

    monkeypatch.setattr(bench.index, "upsert", upsert)
    await bench.embed(ref)
    assert await bench.stored(ref) == expected


async def test_what_a_killed_worker_wrote_too_late_goes_when_the_grace_is_over(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = await bench.say("one", "two")
    real = bench.index.upsert

    async def upsert(points: Sequence[TurnPoint]) -> None:
        monkeypatch.undo()
        await bench.edit("m1", "other")
        await bench.embed(ref)  # another worker does all that is due, and the purge, too
        await real(points)
        raise UnavailableError("killed")

    monkeypatch.setattr(bench.index, "upsert", upsert)
    with pytest.raises(UnavailableError):
        await bench.embed(ref)
    assert await bench.stored(ref) == {(1, 0), (1, 1), (2, 0)}
    assert "one" not in await bench.found("one")
    assert await bench.is_due()
    await bench.wait_for_the_grace()
    await bench.embed(ref)
    assert await bench.stored(ref) == {(1, 1), (2, 0)}
    assert not await bench.is_due()


async def test_a_user_that_is_set_while_turns_are_embedded_is_on_every_point(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = await bench.say("one", "two", "three")
    real = bench.index.upsert

    async def upsert(points: Sequence[TurnPoint]) -> None:
        monkeypatch.undo()
        await bench.sessions.open("acme", "s", SessionOptions(user="ann"))
        await bench.embed(ref)  # another worker was faster
        await real(points)

    monkeypatch.setattr(bench.index, "upsert", upsert)
    await bench.embed(ref)
    assert await bench.index.count("acme", user="ann", session="s") == 3
    assert not await bench.is_due()


class Believing:
    """An index that still knows what is gone."""

    def __init__(self, *hits: Hit) -> None:
        self.hits = hits

    async def search(self, *_: object, **__: object) -> Sequence[Hit]:
        return self.hits


async def believed(bench: Bench, monkeypatch: pytest.MonkeyPatch, *hits: Hit, **given: Any) -> list[str]:
    """What a search answers when the index names these turns."""
    monkeypatch.setattr(bench.finder, "_index", Believing(*hits))
    return [one.text for one in await bench.finder.find("acme", "anything", limit=20, **given)]


async def test_a_search_answers_only_what_stands_under_its_present_revision(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = await bench.say("one", "two", "three", "four")
    await bench.edit("m1", "uno")
    await bench.remove("m2")
    await bench.sessions.rewind("acme", "s", 3)
    await bench.say("five")
    every = [Hit("s", ref.incarnation, seq, revision, 1.0) for seq in range(7) for revision in range(3)]
    assert sorted(await believed(bench, monkeypatch, *every)) == ["five", "three", "uno"]
    other = [Hit("s", "anotherlife0", seq, revision, 1.0) for seq in range(7) for revision in range(3)]
    assert await believed(bench, monkeypatch, *other) == []


async def test_a_session_that_another_user_began_anew_during_a_search_is_not_shown(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = await bench.say("hers")
    await bench.sessions.open("acme", "s", SessionOptions(user="ann"))
    view = bench.sessions.view

    async def viewed(tenant: str, session: str) -> object:
        found = await view(tenant, session)
        monkeypatch.setattr(bench.sessions, "view", view)
        await bench.sessions.erase(tenant, session)
        await bench.sessions.open(tenant, session, SessionOptions(user="bob"))
        await bench.say("his")
        return found

    monkeypatch.setattr(bench.sessions, "view", viewed)
    assert await believed(bench, monkeypatch, Hit("s", ref.incarnation, 1, 0, 1.0), user="ann") == []


async def change_at_random(bench: Bench, chance: random.Random) -> None:
    said = bench.said["s"]
    deed = chance.choice(["say", "say", "edit", "edit", "remove", "rewind", "forget"])
    try:
        match deed:
            case "say":
                await bench.say(f"word {said}")
            case "edit":
                await bench.edit(f"m{chance.randint(1, said)}", f"edited {chance.random()}")
            case "remove":
                await bench.remove(f"m{chance.randint(1, said)}")
            case "rewind":
                head = (await bench.sessions.view("acme", "s")).head_seq
                await bench.sessions.rewind("acme", "s", head - chance.randint(0, 3))
    except ConflictError:
        pass  # rewound or removed before


async def embed_or_die(bench: Bench, ref: SessionRef, chance: random.Random) -> None:
    for _ in range(6):
        running = asyncio.create_task(bench.embed(ref, call_turns=chance.randint(1, 4)))
        _, late = await asyncio.wait([running], timeout=chance.uniform(0.005, 0.15))
        for task in late:
            task.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_whatever_changes_while_workers_come_and_go_the_vectors_end_as_the_turns_that_stand(
    bench: Bench,
) -> None:
    chance = random.Random(seed_of_run("these changes"))
    ref = await bench.say(*(f"word {number}" for number in range(20)))

    async def change() -> None:
        for _ in range(60):
            await change_at_random(bench, chance)
            await asyncio.sleep(0)

    await asyncio.gather(change(), *(embed_or_die(bench, ref, chance) for _ in range(3)))
    await bench.wait_for_the_grace()
    for _ in range(3):
        await bench.embed(ref)
    turns = await bench.sessions.read_turns("acme", "s", 0, 500)
    assert await bench.stored(ref) == {(turn.seq, turn.revision) for turn in turns if not turn.removed}
    assert not await bench.is_due()
