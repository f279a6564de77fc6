"""One suite over the embedded store's process and over qdrant-client's own local mode: both must behave alike."""

import random
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient
from qdrant_client import models as m

from tests.support.vectors import RunningVectors, running_vectors

COLLECTION = "turns"
POINTS = 60


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path_factory.mktemp("vectors")) as running:
        yield running


@pytest.fixture(scope="module")
def process(vectors: RunningVectors) -> Iterator[QdrantClient]:
    client = QdrantClient(url=vectors.url, check_compatibility=False)
    yield client
    client.close()


@pytest.fixture(scope="module")
def local() -> Iterator[QdrantClient]:
    client = QdrantClient(":memory:")
    yield client
    client.close()


@pytest.fixture(params=["process", "local"])
def client(request: pytest.FixtureRequest) -> QdrantClient:
    chosen: QdrantClient = request.getfixturevalue(request.param)
    make_collection(chosen)
    return chosen


@pytest.fixture
def both(process: QdrantClient, local: QdrantClient) -> tuple[QdrantClient, QdrantClient]:
    make_collection(process)
    make_collection(local)
    return process, local


def make_collection(client: QdrantClient) -> None:
    if client.collection_exists(COLLECTION):
        client.delete_collection(COLLECTION)
    client.create_collection(
        COLLECTION,
        vectors_config={"dense": m.VectorParams(size=8, distance=m.Distance.COSINE)},
        sparse_vectors_config={"words": m.SparseVectorParams(modifier=m.Modifier.IDF)},
    )
    client.upsert(COLLECTION, points=[point(number) for number in range(POINTS)])


def point(number: int) -> m.PointStruct:
    generator = random.Random(number)
    indices = sorted(generator.sample(range(12), 4))
    return m.PointStruct(
        id=str(uuid.UUID(int=number + 1)),
        vector={
            "dense": [generator.uniform(-1, 1) for _ in range(8)],
            "words": m.SparseVector(indices=indices, values=[generator.uniform(0.5, 1.5) for _ in indices]),
        },
        payload={"tenant": f"t{number % 3}", "seq": number, "tags": ["a", "b"] if number % 2 else ["c"]},
    )


def dense_query() -> list[float]:
    generator = random.Random("query")
    return [generator.uniform(-1, 1) for _ in range(8)]


WORDS = m.SparseVector(indices=[1, 3, 5, 7], values=[1.0, 1.0, 1.0, 1.0])


def only(key: str, value: Any) -> m.Filter:
    return m.Filter(must=[m.FieldCondition(key=key, match=m.MatchValue(value=value))])


def scores(hits: list[m.ScoredPoint]) -> dict[str, float]:
    return {str(hit.id): round(hit.score, 4) for hit in hits}


FILTERS = {
    "value": only("tenant", "t1"),
    "value of a list": only("tags", "b"),
    "any": m.Filter(must=[m.FieldCondition(key="tenant", match=m.MatchAny(any=["t0", "t2"]))]),
    "no value": m.Filter(must=[m.FieldCondition(key="tenant", match=m.MatchAny(any=[]))]),
    "except": m.Filter(must=[m.FieldCondition(key="seq", match=m.MatchExcept(**{"except": [1, 2, 3]}))]),
    "range": m.Filter(must=[m.FieldCondition(key="seq", range=m.Range(gte=10, lt=30))]),
    "must not": m.Filter(must_not=[m.FieldCondition(key="tenant", match=m.MatchValue(value="t1"))]),
    "should": m.Filter(should=[m.FieldCondition(key="seq", match=m.MatchValue(value=n)) for n in (4, 5)]),
    "nested": m.Filter(must=[only("tenant", "t0"), m.Filter(should=[only("tags", "a"), only("seq", 6)])]),
    "has id": m.Filter(must=[m.HasIdCondition(has_id=[str(uuid.UUID(int=n)) for n in (3, 4, 999)])]),
    "is empty": m.Filter(must=[m.IsEmptyCondition(is_empty=m.PayloadField(key="absent"))]),
    "min should": m.Filter(
        min_should=m.MinShould(conditions=[only("tenant", "t0"), only("tags", "a"), only("seq", 3)], min_count=2)
    ),
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_counts_the_same_points_as_local_mode(both: tuple[QdrantClient, QdrantClient], name: str) -> None:
    process, local = (client.count(COLLECTION, count_filter=FILTERS[name]).count for client in both)
    assert process == local


@pytest.mark.parametrize("name", FILTERS)
def test_a_filtered_search_finds_the_same_points_as_local_mode(
    both: tuple[QdrantClient, QdrantClient], name: str
) -> None:
    process, local = (
        client.query_points(COLLECTION, query=dense_query(), using="dense", query_filter=FILTERS[name], limit=7).points
        for client in both
    )
    assert scores(process) == pytest.approx(scores(local), abs=2e-4)


def test_sparse_scores_carry_the_same_idf_as_local_mode(both: tuple[QdrantClient, QdrantClient]) -> None:
    process, local = (
        client.query_points(COLLECTION, query=WORDS, using="words", limit=POINTS).points for client in both
    )
    assert scores(process) == pytest.approx(scores(local), abs=2e-3)
    assert len(process) > 10


def test_rank_fusion_with_k_is_the_same_as_in_local_mode(both: tuple[QdrantClient, QdrantClient]) -> None:
    fused = [
        client.query_points(
            COLLECTION,
            prefetch=[
                m.Prefetch(query=dense_query(), using="dense", limit=20, filter=only("tenant", "t1")),
                m.Prefetch(query=WORDS, using="words", limit=20, filter=only("tenant", "t1")),
            ],
            query=m.RrfQuery(rrf=m.Rrf(k=60)),
            limit=10,
        ).points
        for client in both
    ]
    assert scores(fused[0]) == pytest.approx(scores(fused[1]), abs=2e-4)


def test_what_was_prefetched_can_be_scored_again_by_another_vector(both: tuple[QdrantClient, QdrantClient]) -> None:
    again = [
        client.query_points(
            COLLECTION,
            prefetch=[m.Prefetch(query=WORDS, using="words", limit=5)],
            query=dense_query(),
            using="dense",
            limit=10,
        ).points
        for client in both
    ]
    assert len(again[0]) == 5
    assert scores(again[0]) == pytest.approx(scores(again[1]), abs=2e-4)


def test_offset_threshold_payload_and_vectors_are_as_asked(client: QdrantClient) -> None:
    first = client.query_points(COLLECTION, query=dense_query(), using="dense", limit=3).points
    rest = client.query_points(
        COLLECTION, query=dense_query(), using="dense", limit=2, offset=1, with_payload=["seq"], with_vectors=["words"]
    ).points
    above = client.query_points(
        COLLECTION, query=dense_query(), using="dense", score_threshold=first[1].score - 1e-4, limit=9
    ).points
    assert [hit.id for hit in rest] == [hit.id for hit in first[1:]]
    assert [set(hit.payload or {}) for hit in rest] == [{"seq"}] * 2
    assert [set(hit.vector) for hit in rest if isinstance(hit.vector, dict)] == [{"words"}] * 2
    assert [hit.id for hit in above] == [hit.id for hit in first[:2]]


def test_a_batch_answers_each_search_in_order(client: QdrantClient) -> None:
    requests = [
        m.QueryRequest(query=dense_query(), using="dense", limit=2, with_payload=True),
        m.QueryRequest(query=WORDS, using="words", limit=3, filter=only("tenant", "t2"), with_payload=True),
    ]
    dense, words = client.query_batch_points(COLLECTION, requests=requests)
    assert len(dense.points) == 2
    assert {(hit.payload or {})["tenant"] for hit in words.points} == {"t2"}


def test_scroll_visits_every_point_once(client: QdrantClient) -> None:
    seen: list[int] = []
    offset = None
    while True:
        page, offset = client.scroll(COLLECTION, limit=7, offset=offset, with_payload=["seq"])
        seen += [(record.payload or {})["seq"] for record in page]
        if offset is None:
            break
    assert seen == list(range(POINTS))


def test_an_upsert_replaces_vector_and_payload(client: QdrantClient) -> None:
    changed = point(3).model_copy(update={"payload": {"tenant": "new"}})
    client.upsert(COLLECTION, points=[changed])
    [record] = client.retrieve(COLLECTION, ids=[changed.id])
    assert record.payload == {"tenant": "new"}
    assert client.count(COLLECTION).count == POINTS


def test_points_can_be_written_in_columns_and_with_integer_ids(client: QdrantClient) -> None:
    client.upsert(
        COLLECTION,
        points=m.Batch(ids=[7, 8], vectors={"dense": [[1.0] * 8, [2.0] * 8]}, payloads=[{"seq": 700}, {"seq": 800}]),
    )
    records = client.retrieve(COLLECTION, ids=[8, 7, 12345], with_vectors=True)
    assert {record.id: (record.payload or {})["seq"] for record in records} == {7: 700, 8: 800}


def test_delete_takes_ids_or_a_filter(client: QdrantClient) -> None:
    client.delete(COLLECTION, points_selector=[str(uuid.UUID(int=1)), str(uuid.UUID(int=777))])
    client.delete(COLLECTION, points_selector=m.FilterSelector(filter=only("tenant", "t1")))
    left = client.scroll(COLLECTION, limit=POINTS, with_payload=True)[0]
    assert sorted((record.payload or {})["seq"] for record in left) == [n for n in range(1, POINTS) if n % 3 != 1]


def test_set_payload_merges_and_takes_ids_or_a_filter(client: QdrantClient) -> None:
    client.set_payload(COLLECTION, payload={"revision": 2}, points=[str(uuid.UUID(int=1))])
    client.set_payload(COLLECTION, payload={"seen": True}, points=only("seq", 1))
    records = client.retrieve(COLLECTION, ids=[str(uuid.UUID(int=1)), str(uuid.UUID(int=2))])
    by_seq = {(record.payload or {})["seq"]: record.payload or {} for record in records}
    assert by_seq[0]["revision"] == 2
    assert by_seq[0]["tenant"] == "t0"
    assert by_seq[1]["seen"] is True


def test_collections_are_listed_described_and_deleted(client: QdrantClient) -> None:
    assert [item.name for item in client.get_collections().collections] == [COLLECTION]
    info = client.get_collection(COLLECTION)
    assert info.points_count == POINTS
    assert isinstance(info.config.params.vectors, dict)
    assert info.config.params.vectors["dense"].size == 8
    assert (info.config.params.sparse_vectors or {})["words"].modifier == m.Modifier.IDF
    client.delete_collection(COLLECTION)
    assert not client.collection_exists(COLLECTION)


def test_a_collection_without_vector_names_works(client: QdrantClient) -> None:
    name = "unnamed"
    if client.collection_exists(name):
        client.delete_collection(name)
    client.create_collection(name, vectors_config=m.VectorParams(size=2, distance=m.Distance.DOT))
    client.upsert(name, points=[m.PointStruct(id=n, vector=[float(n), 1.0]) for n in (1, 2, 3)])
    found = client.query_points(name, query=[1.0, 0.0], limit=2, with_vectors=True).points
    client.delete_collection(name)
    assert [(hit.id, hit.score, hit.vector) for hit in found] == [(3, 3.0, [3.0, 1.0]), (2, 2.0, [2.0, 1.0])]


def test_the_idf_can_be_counted_among_one_tenants_points(process: QdrantClient) -> None:
    make_collection(process)
    rare = m.PointStruct(
        id=900, vector={"words": m.SparseVector(indices=[500], values=[1.0])}, payload={"tenant": "small"}
    )
    process.upsert(COLLECTION, points=[rare])

    def score(params: m.SearchParams | None) -> float:
        query = m.SparseVector(indices=[500], values=[1.0])
        chosen = only("tenant", "small")
        [hit] = process.query_points(
            COLLECTION, query=query, using="words", query_filter=chosen, search_params=params
        ).points
        return hit.score

    everywhere = score(None)
    own = score(m.SearchParams(idf=m.IdfCorpusParams(corpus=only("tenant", "small"))))
    assert own < 0.5 < everywhere


def test_a_tenant_index_is_made_described_and_forgotten(process: QdrantClient) -> None:
    make_collection(process)
    schema = m.KeywordIndexParams(type=m.KeywordIndexType.KEYWORD, is_tenant=True)
    process.create_payload_index(COLLECTION, "tenant", schema)
    process.create_payload_index(COLLECTION, "seq", m.PayloadSchemaType.INTEGER)
    indexes = process.get_collection(COLLECTION).payload_schema
    assert indexes["tenant"].params == schema
    assert indexes["tenant"].points == POINTS
    assert indexes["seq"].data_type == m.PayloadSchemaType.INTEGER
    process.delete_payload_index(COLLECTION, "seq")
    assert set(process.get_collection(COLLECTION).payload_schema) == {"tenant"}


async def test_the_stock_async_client_works_unchanged(vectors: RunningVectors) -> None:
    client = AsyncQdrantClient(url=vectors.url, check_compatibility=False)
    name = "by-async"
    await client.create_collection(name, vectors_config={"dense": m.VectorParams(size=2, distance=m.Distance.COSINE)})
    await client.upsert(name, points=[m.PointStruct(id=1, vector={"dense": [1.0, 0.0]}, payload={"a": 1})])
    found = await client.query_points(name, query=[1.0, 0.1], using="dense")
    await client.delete_collection(name)
    await client.close()
    assert [(hit.id, hit.payload) for hit in found.points] == [(1, {"a": 1})]


def test_a_bulk_upload_of_more_points_than_one_call_takes_arrives_whole(process: QdrantClient) -> None:
    make_collection(process)
    points = [m.PointStruct(id=10_000 + n, vector={"dense": [1.0, float(n)] + [0.0] * 6}) for n in range(700)]
    process.upsert(COLLECTION, points=points)
    assert process.count(COLLECTION).count == POINTS + 700
