"""Derived texts against the real vector store: found by meaning, words and category; gone when they are forgotten."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from prefold.errors import InvalidInputError, UnavailableError
from prefold.recall import (
    CollectionSpec,
    DerivedHit,
    DerivedPoint,
    MemoryIndex,
    TurnPoint,
    TurnRange,
    VectorIndex,
    connect_memory,
    connect_vectors,
    document_words,
)
from prefold.recall.forgetting import forget_turns, forget_user
from prefold.recall.server import VectorServer
from prefold.recall.transport import HttpTransport
from prefold.storage.types import SessionRef
from tests.support.vectors import RunningVectors, running_vectors

DIMENSION = 4
SPEC = CollectionSpec("test-embedder", DIMENSION)
_SECOND = timedelta(seconds=2)
EVEN = np.full(DIMENSION, 0.5, dtype=np.float32)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path_factory.mktemp("vectors")) as running:
        yield running


@pytest.fixture
async def memory(vectors: RunningVectors) -> AsyncIterator[MemoryIndex]:
    async with connect_memory(vectors.url, SPEC) as opened:
        await opened.ensure()
        for tenant in ("acme", "other"):
            await opened.forget(tenant)
        yield opened


@pytest.fixture
async def turns(vectors: RunningVectors) -> AsyncIterator[VectorIndex]:
    async with connect_vectors(vectors.url, SPEC) as opened:
        await opened.ensure()
        for tenant in ("acme", "other"):
            await opened.delete(tenant)
        yield opened


def derived(key: str, text: str, **fields: Any) -> DerivedPoint:
    base: dict[str, Any] = {"tenant": "acme", "user": "ann", "kind": "fact", "session": "", "incarnation": ""}
    made = {**base, "digest": f"of {text}", "vector": EVEN, "words": document_words(text), **fields}
    return DerivedPoint(key=key, **made)


def summary(session: str, text: str, **fields: Any) -> DerivedPoint:
    return derived("digest", text, kind="summary", session=session, incarnation="i1", **fields)


def turn(seq: int, text: str, *, session: str = "s1", tenant: str = "acme", revision: int = 0) -> TurnPoint:
    ref = SessionRef(tenant, session, "i1")
    known: dict[str, Any] = {"role": "user", "ts_ms": None, "vector": EVEN, "words": document_words(text)}
    return TurnPoint(ref=ref, user="ann", seq=seq, revision=revision, **known)


async def find(memory: MemoryIndex, query: str, **narrower: Any) -> list[DerivedHit]:
    return await memory.search("acme", query=query, vector=EVEN, **narrower)


def keys(hits: list[DerivedHit]) -> list[str]:
    return [hit.key for hit in hits]


async def test_a_hit_names_the_text_and_its_digest(memory: MemoryIndex) -> None:
    await memory.upsert(
        [derived("f1", "Ann lives in Graz", category="location", ts_ms=7), derived("f2", "Ann has a dog")]
    )
    best = (await find(memory, "Graz"))[0]
    assert (best.kind, best.key, best.user, best.session, best.category) == ("fact", "f1", "ann", "", "location")
    assert (best.digest, best.ts_ms) == ("of Ann lives in Graz", 7)
    assert best.cosine == pytest.approx(1.0)


async def test_a_newer_text_of_a_key_takes_its_place(memory: MemoryIndex) -> None:
    for text in ("Ann lives in Graz", "Ann lives in Linz"):
        await memory.upsert([derived("f1", text)])
    assert [hit.digest for hit in await find(memory, "Graz")] == ["of Ann lives in Linz"]
    assert await memory.count("acme") == 1


async def test_tenant_user_kind_and_session_narrow_the_search(memory: MemoryIndex) -> None:
    await memory.upsert(
        [
            derived("f1", "tea"),
            derived("f2", "tea too", user="bob"),
            derived("f3", "tea there", tenant="other"),
            summary("s1", "tea in the first"),
            summary("s2", "tea in the second"),
            derived("0:1-9", "tea at first", kind="segment", session="s1", incarnation="i1"),
        ]
    )
    assert sorted(keys(await find(memory, "tea", kinds=["fact"]))) == ["f1", "f2"]
    assert keys(await find(memory, "tea", kinds=["fact"], user="bob")) == ["f2"]
    assert sorted(keys(await find(memory, "tea", session="s1"))) == ["0:1-9", "digest"]
    others = await find(memory, "tea", user="ann", exclude_session="s1")
    assert sorted((hit.kind, hit.session) for hit in others) == [("fact", ""), ("summary", "s2")]


async def test_facts_of_the_category_in_question_come_first(memory: MemoryIndex) -> None:
    await memory.upsert(
        [
            derived("f1", "Ann mailed the mail office", category="other"),
            derived("f2", "ann@graz.at", category="contact"),
        ]
    )
    assert keys(await find(memory, "mail office")) == ["f1", "f2"]
    assert keys(await find(memory, "mail office", categories={"contact"})) == ["f2", "f1"]


async def test_three_copies_take_one_place_and_are_counted_but_never_over_users(memory: MemoryIndex) -> None:
    same = [derived(f"f{n}", "Ann likes the river and the woods") for n in range(3)]
    await memory.upsert([*same, derived("f9", "Ann likes the river and the woods", user="bob")])
    found = {hit.user: hit.copies for hit in await find(memory, "river")}
    assert found == {"ann": 2, "bob": 0}


async def test_forgetting_takes_what_is_named_and_nothing_of_others(memory: MemoryIndex) -> None:
    await memory.upsert(
        [derived("f1", "tea"), derived("f2", "milk"), derived("f1", "tea", tenant="other"), summary("s1", "x")]
    )
    assert await memory.forget("acme", user="ann", keys=["f1"]) == 0
    assert await memory.forget("acme", keys=[]) == 0
    assert (await memory.count("acme"), await memory.count("other")) == (2, 1)
    assert await memory.forget("acme", session="s1", incarnation="i1") == 0
    assert keys(await find(memory, "milk")) == ["f2"]


async def test_a_sessions_end_and_a_users_erasure_reach_turns_and_what_was_derived(
    vectors: RunningVectors, memory: MemoryIndex, turns: VectorIndex
) -> None:
    second = {"connect_timeout": _SECOND, "request_timeout": _SECOND}
    async with HttpTransport(vectors.url, headers={}, max_connections=2, **second) as transport:
        server = VectorServer(transport)
        for session in ("s1", "s2"):
            await turns.upsert([turn(1, "tea", session=session), turn(1, "tea", session=session, tenant="other")])
            await memory.upsert([summary(session, "tea")])
        await memory.upsert([derived("f1", "tea"), derived("f1", "tea", tenant="other")])
        assert await forget_turns(server, "acme", session="s1", incarnation="i1", turns=[TurnRange(1, 1)]) == 0
        assert (await turns.count("acme"), await memory.count("acme", session="s1")) == (1, 1)
        assert await forget_turns(server, "acme", session="s1") == 0
        assert await memory.count("acme", session="s1") == 0
        assert await forget_user(server, "acme", "ann") == 0
        assert (await turns.count("acme"), await memory.count("acme")) == (0, 0)
        assert (await turns.count("other"), await memory.count("other")) == (2, 1)


async def test_an_edited_turns_words_are_not_found_through_its_neighbours(turns: VectorIndex) -> None:
    await turns.upsert([turn(1, "my parrot sings"), turn(2, "how nice"), turn(3, "the weather is fine")])
    before = {hit.seq: hit.word_share for hit in await turns.search("acme", query="parrot", vector=EVEN)}
    assert before[2] > 0.1
    await turns.upsert([turn(1, "my dog barks", revision=1)])
    await turns.delete("acme", session="s1", turns=[TurnRange(1, 1, below_revision=1)])
    after = await turns.search("acme", query="parrot", vector=EVEN)
    assert {hit.seq: hit.word_share for hit in after} == {1: 0.0, 2: 0.0, 3: 0.0}


async def test_a_wrong_vector_an_empty_name_and_a_missing_collection_say_so(vectors: RunningVectors) -> None:
    async with connect_memory(vectors.url, CollectionSpec("never-made", DIMENSION)) as memory:
        with pytest.raises(InvalidInputError):
            await memory.upsert([derived("f1", "tea", vector=np.zeros(DIMENSION, np.float32))])
        with pytest.raises(InvalidInputError):
            await memory.search("", query="tea", vector=EVEN)
        with pytest.raises(InvalidInputError):
            await memory.search("acme", query="tea", vector=EVEN, user="")
        with pytest.raises(UnavailableError) as raised:
            await memory.search("acme", query="tea", vector=EVEN)
        assert raised.value.code == "collection_missing"
