"""The vector index against the real vector store: what is found, what never is, and what failures look like."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from prefold.embedding import CosineScale
from prefold.errors import ConfigurationError, InvalidInputError, UnavailableError
from prefold.recall import (
    CollectionSpec,
    TurnHit,
    TurnPoint,
    TurnRange,
    VectorIndex,
    connect_vectors,
    document_words,
)
from prefold.recall.fuse import WORD_WEIGHT, highest_idf
from prefold.storage.types import SessionRef
from tests.support import vectors as support
from tests.support.vectors import RunningVectors, running_vectors

DIMENSION = 8
SPEC = CollectionSpec("test-embedder", DIMENSION)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path_factory.mktemp("vectors")) as running:
        yield running


@pytest.fixture
async def index(vectors: RunningVectors) -> AsyncIterator[VectorIndex]:
    """An index without turns."""
    async with connect_vectors(vectors.url, SPEC) as opened:
        await opened.ensure()
        for tenant in ("acme", "other"):
            await opened.delete(tenant)
        yield opened


def axis(number: int, lean: float = 0.0) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """A unit vector along an axis, leaning towards the first."""
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[number] = 1.0
    vector[0] += lean
    return vector / np.float32(np.linalg.norm(vector))


def turn(
    seq: int,
    text: str = "",
    *,
    tenant: str = "acme",
    session: str = "s1",
    user: str = "ann",
    incarnation: str = "i1",
    revision: int = 0,
    lean: float = 0.0,
) -> TurnPoint:
    return TurnPoint(
        ref=SessionRef(tenant, session, incarnation),
        user=user,
        seq=seq,
        revision=revision,
        role="user",
        ts_ms=1_700_000_000_000 + seq,
        vector=axis(1 + seq % (DIMENSION - 1), lean),
        words=document_words(text),
    )


def seqs(hits: Sequence[TurnHit]) -> list[int]:
    return [hit.seq for hit in hits]


async def test_a_hit_names_the_turn_and_carries_its_scores(index: VectorIndex) -> None:
    await index.upsert([turn(3, "tea with milk"), turn(4, "coffee")])
    [best, _] = await index.search("acme", vector=turn(3).vector, query="milk")
    assert best.ref == SessionRef("acme", "s1", "i1")
    assert (best.seq, best.revision, best.role, best.user) == (3, 0, "user", "ann")
    assert best.ts_ms == 1_700_000_000_003
    assert best.cosine == pytest.approx(1.0)
    assert best.score >= 1.0 + WORD_WEIGHT * best.word_share
    assert best.copies == 0


async def test_writing_twice_changes_nothing(index: VectorIndex) -> None:
    for _ in range(2):
        await index.upsert([turn(seq) for seq in range(300)])
    assert await index.count("acme") == 300


async def test_nothing_of_another_tenant_is_ever_found_counted_or_deleted(index: VectorIndex) -> None:
    await index.upsert([turn(1, "secret plan", tenant="other"), turn(2, "plan", tenant="acme")])
    hits = await index.search("acme", vector=turn(1).vector, query="secret plan", limit=50)
    assert [(hit.ref.tenant, hit.seq) for hit in hits] == [("acme", 2)]
    await index.delete("acme")
    assert (await index.count("acme"), await index.count("other")) == (0, 1)


async def test_what_others_say_does_not_move_a_tenants_scores(index: VectorIndex) -> None:
    await index.upsert([turn(1, "budget october"), turn(2, "october")])
    before = await index.search("acme", vector=axis(1), query="budget october")
    await index.upsert([turn(seq, "budget budget", tenant="other") for seq in range(200)])
    after = await index.search("acme", vector=axis(1), query="budget october")
    assert [hit.score for hit in after] == pytest.approx([hit.score for hit in before])


async def test_the_word_share_is_that_of_the_reachable_bm25_in_turn_and_window(index: VectorIndex) -> None:
    texts = {1: "alpha beta", 2: "alpha", 3: "gamma", 4: "delta"}
    await index.upsert([turn(seq, text, session=f"s{seq}") for seq, text in texts.items()])
    hits = await index.search("acme", vector=axis(0), query="alpha beta omega")
    idf = {word: np.log(1 + (4 - n + 0.5) / (n + 0.5)) for word, n in (("alpha", 2), ("beta", 1))}
    reachable = 0.6 * 1.9 * (idf["alpha"] + idf["beta"] + highest_idf(4))

    def weight(words: int) -> float:
        """Of a word that stands once: the mean of turn and window, which are measured by their usual lengths."""
        return float(np.mean([1.9 / (1 + 0.9 * (0.6 + 0.4 * words / usual)) for usual in (40, 160)]))

    by_seq = {hit.seq: hit for hit in hits}
    assert by_seq[1].word_share == pytest.approx(weight(2) * sum(idf.values()) / reachable, rel=1e-3)
    assert by_seq[2].word_share == pytest.approx(weight(1) * idf["alpha"] / reachable, rel=1e-3)
    assert by_seq[3].word_share == 0.0
    assert [hit.seq for hit in hits[:2]] == [1, 2]


async def test_a_turn_found_by_its_words_alone_has_its_true_cosine(index: VectorIndex) -> None:
    crowd = [turn(7 * n + 1, "chatter") for n in range(60)]  # all nearer to the query than the one we look for
    await index.upsert([*crowd, turn(2, "passport number", lean=0.5)])
    hits = await index.search("acme", vector=turn(1).vector, query="passport", limit=100)
    [found] = [hit for hit in hits if hit.seq == 2]
    assert found.cosine == pytest.approx(float(turn(1).vector @ turn(2, lean=0.5).vector), abs=1e-5)
    assert found.word_share > 0.5


async def test_words_alone_and_a_vector_alone_are_enough(index: VectorIndex) -> None:
    await index.upsert([turn(1, "tea"), turn(2, "coffee")])
    by_words = await index.search("acme", vector=None, query="coffee")
    by_vector = await index.search("acme", vector=turn(1).vector, query="")
    assert (by_words[0].seq, by_words[0].cosine) == (2, None)
    assert seqs(by_vector) == [1, 2]
    assert await index.search("acme", vector=None, query="") == []


async def test_a_turn_without_words_is_found_by_its_vector(index: VectorIndex) -> None:
    await index.upsert([turn(1, ""), turn(2, "coffee")])
    assert seqs(await index.search("acme", vector=turn(1).vector, query="sugar", limit=1)) == [1]


async def test_the_models_scale_is_applied_to_the_cosine(vectors: RunningVectors, index: VectorIndex) -> None:
    await index.upsert([turn(1)])
    async with connect_vectors(vectors.url, SPEC, scale=CosineScale(floor=0.75, span=0.25)) as scaled:
        [hit] = await scaled.search("acme", vector=axis(1, 0.5), query="")
    assert hit.cosine == pytest.approx((float(axis(1, 0.5) @ axis(2)) - 0.75) / 0.25, abs=1e-4)


async def test_user_and_session_narrow_the_search(index: VectorIndex) -> None:
    await index.upsert([turn(1, user="ann"), turn(2, user="bob"), turn(3, user="bob", session="s2")])
    assert sorted(seqs(await index.search("acme", vector=axis(1), query="", user="bob"))) == [2, 3]
    assert seqs(await index.search("acme", vector=axis(1), query="", user="bob", session="s2")) == [3]


async def test_of_two_revisions_of_a_turn_the_newer_one_is_found(index: VectorIndex) -> None:
    await index.upsert([turn(1, "old words"), turn(1, "new words", revision=1)])
    hits = await index.search("acme", vector=turn(1).vector, query="old words")
    assert [(hit.seq, hit.revision) for hit in hits] == [(1, 1)]


async def test_the_limit_keeps_the_best(index: VectorIndex) -> None:
    await index.upsert([turn(seq, "tea " * seq + f"cup{seq}") for seq in range(1, 20)])
    everything = await index.search("acme", vector=axis(3), query="tea", limit=100)
    some = await index.search("acme", vector=axis(3), query="tea", limit=4)
    assert [hit.score for hit in everything] == sorted((hit.score for hit in everything), reverse=True)
    assert some == everything[:4]


async def test_a_deletion_takes_a_life_of_a_session_a_range_a_user_or_all(index: VectorIndex) -> None:
    await index.upsert(
        [
            *(turn(seq) for seq in range(1, 6)),
            turn(1, incarnation="i2"),
            turn(1, session="s2", user="bob"),
        ]
    )
    await index.delete("acme", session="s1", incarnation="i1", turns=[TurnRange(3, 4)])
    assert await index.count("acme", session="s1") == 4
    await index.delete("acme", session="s1", incarnation="i1")
    assert await index.count("acme", session="s1") == 1
    await index.delete("acme", user="bob")
    assert await index.count("acme") == 1


@pytest.mark.parametrize(
    "vector",
    [
        np.ones(DIMENSION + 1, dtype=np.float32),
        np.zeros(DIMENSION, dtype=np.float32),
        np.full(DIMENSION, np.nan, dtype=np.float32),
        np.ones((1, DIMENSION), dtype=np.float32),
    ],
    ids=["long", "zeros", "nan", "matrix"],
)
async def test_a_wrong_vector_is_refused_before_anything_is_sent(
    index: VectorIndex, vector: np.ndarray[tuple[int], np.dtype[np.float32]]
) -> None:
    wrong = TurnPoint(**{**{n: getattr(turn(2), n) for n in TurnPoint.__slots__}, "vector": vector})
    with pytest.raises(InvalidInputError):
        await index.upsert([turn(1), wrong])
    assert await index.count("acme") == 0


async def test_a_query_of_another_dimension_is_refused(index: VectorIndex) -> None:
    with pytest.raises(InvalidInputError):
        await index.search("acme", vector=np.ones(3, dtype=np.float32), query="")


async def test_an_empty_tenant_is_refused(index: VectorIndex) -> None:
    with pytest.raises(InvalidInputError):
        await index.search("", vector=axis(1), query="")
    with pytest.raises(InvalidInputError):
        await index.delete("")


async def test_many_processes_may_ensure_at_once(vectors: RunningVectors) -> None:
    async with connect_vectors(vectors.url, CollectionSpec("at-once", 4)) as index:
        await asyncio.gather(*(index.ensure() for _ in range(8)))
        assert await index.count("acme") == 0


@pytest.mark.parametrize(
    "form",
    [
        {"vectors": {"dense": {"size": 4, "distance": "Dot"}}, "sparse_vectors": {"words": {"modifier": "idf"}}},
        {"vectors": {"dense": {"size": 5, "distance": "Cosine"}}, "sparse_vectors": {"words": {"modifier": "idf"}}},
        {"vectors": {"dense": {"size": 4, "distance": "Cosine"}}, "sparse_vectors": {"words": {}}},
        {"vectors": {"dense": {"size": 4, "distance": "Cosine"}}},
        {"vectors": {"size": 4, "distance": "Cosine"}},
    ],
)
async def test_a_collection_of_another_form_is_a_configuration_error(
    vectors: RunningVectors, form: dict[str, Any]
) -> None:
    spec = CollectionSpec("other-form", 4)
    async with httpx.AsyncClient(base_url=vectors.url) as http, connect_vectors(vectors.url, spec) as index:
        await http.put(f"/collections/{spec.name}", json=form)
        with pytest.raises(ConfigurationError, match="another form"):
            await index.ensure()
        await http.delete(f"/collections/{spec.name}")


async def test_turns_of_another_embedder_are_noticed(vectors: RunningVectors, index: VectorIndex) -> None:
    await index.upsert([turn(1), turn(2)])
    async with connect_vectors(vectors.url, CollectionSpec("newer-embedder", 4)) as newer:
        await newer.ensure()
        others = {other.name: other.points for other in await newer.other_collections()}
    assert others[SPEC.name] == 2
    assert newer.collection not in others


async def test_a_missing_collection_says_so(vectors: RunningVectors) -> None:
    async with connect_vectors(vectors.url, CollectionSpec("never-made", DIMENSION)) as index:
        for call in (
            index.upsert([turn(1)]),
            index.search("acme", vector=axis(1), query=""),
            index.delete("acme"),
        ):
            with pytest.raises(UnavailableError) as raised:
                await call
            assert raised.value.code == "collection_missing"


async def test_a_store_that_is_down_is_unavailable_and_serves_again_after_its_start(tmp_path: Path) -> None:
    with running_vectors(tmp_path) as vectors:
        port = vectors.url.rpartition(":")[2]
        vectors.flags = ("--vectors-port", port)
        async with connect_vectors(vectors.url, SPEC) as index:
            await index.ensure()
            await index.upsert([turn(1)])
            vectors.kill()
            with pytest.raises(UnavailableError):
                await index.search("acme", vector=axis(1), query="")
            await asyncio.to_thread(vectors.start)
            assert seqs(await index.search("acme", vector=axis(1), query="")) == [1]


async def test_a_store_that_stands_still_is_unavailable_after_the_timeout(tmp_path: Path) -> None:
    with running_vectors(tmp_path) as vectors:
        assert vectors.process is not None
        async with connect_vectors(vectors.url, SPEC) as index:
            await index.ensure()
        async with connect_vectors(vectors.url, SPEC, request_timeout=timedelta(seconds=0.3)) as index:
            os.kill(vectors.process.pid, signal.SIGSTOP)
            try:
                with pytest.raises(UnavailableError, match="did not answer within"):
                    await index.upsert([turn(1)])
            finally:
                os.kill(vectors.process.pid, signal.SIGCONT)
        async with connect_vectors(vectors.url, SPEC) as index:
            await index.upsert([turn(1)])
            assert await index.count("acme") == 1


async def test_a_key_is_sent_and_a_wrong_one_is_a_configuration_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**support.python_environment(), "PREFOLD_QDRANT_API_KEY": "sesame"}
    monkeypatch.setattr(support, "python_environment", lambda: environment)
    with running_vectors(tmp_path) as vectors:
        async with connect_vectors(vectors.url, SPEC, api_key="sesame") as index:
            await index.ensure()
        async with connect_vectors(vectors.url, SPEC) as index:
            with pytest.raises(ConfigurationError, match="PREFOLD_QDRANT_API_KEY"):
                await index.ensure()


async def test_forgetting_reaches_the_collections_of_all_embedders_and_one_life_only(
    vectors: RunningVectors, index: VectorIndex
) -> None:
    async with connect_vectors(vectors.url, CollectionSpec("former-embedder", DIMENSION)) as former:
        await former.ensure()
        for one in (index, former):
            await one.upsert([turn(1), turn(2, incarnation="i2"), turn(3, session="s2"), turn(4, tenant="other")])
        assert await index.forget("acme", session="s1", incarnation="i1") == 0
        assert [await one.count("acme", session="s1") for one in (index, former)] == [1, 1]
        assert await index.forget("acme", session="s1") == 0
        assert [await one.count("acme") for one in (index, former)] == [1, 1]
        assert [await one.count("other") for one in (index, former)] == [1, 1]
