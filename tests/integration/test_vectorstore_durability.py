"""What the vector store's process keeps, through kill -9, a stop and a start, and whom it lets in."""

import json
import socket
import subprocess
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from qdrant_client import QdrantClient
from qdrant_client import models as m
from qdrant_client.http.exceptions import ResponseHandlingException

from tests.support.vectors import RunningVectors, python_environment, running_vectors, vectors_command
from tests.support.waiting import wait_until

COLLECTION = "turns"


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path / "data") as running:
        yield running


def connected(running: RunningVectors) -> "closing[QdrantClient]":
    return closing(QdrantClient(url=running.url, check_compatibility=False, timeout=10))


def make_collection(client: QdrantClient) -> None:
    client.create_collection(
        COLLECTION,
        vectors_config={"dense": m.VectorParams(size=4, distance=m.Distance.COSINE)},
        sparse_vectors_config={"words": m.SparseVectorParams(modifier=m.Modifier.IDF)},
    )
    schema = m.KeywordIndexParams(type=m.KeywordIndexType.KEYWORD, is_tenant=True)
    client.create_payload_index(COLLECTION, "tenant", schema)


def points(start: int, count: int) -> list[m.PointStruct]:
    return [
        m.PointStruct(
            id=number,
            vector={
                "dense": [1.0, number % 7, number % 5, 1.0],
                "words": m.SparseVector(indices=[number], values=[1.0]),
            },
            payload={"tenant": f"t{number % 2}"},
        )
        for number in range(start, start + count)
    ]


def tenant(name: str) -> m.Filter:
    return m.Filter(must=[m.FieldCondition(key="tenant", match=m.MatchValue(value=name))])


class Writer(threading.Thread):
    """Upserts batches until the server is gone; knows how many were acknowledged."""

    BATCH = 20

    def __init__(self, client: QdrantClient) -> None:
        super().__init__()
        self.client = client
        self.acknowledged = 0

    def run(self) -> None:
        try:
            while True:
                self.client.upsert(COLLECTION, points=points(self.acknowledged, self.BATCH), wait=True)
                self.acknowledged += self.BATCH
        except ResponseHandlingException:
            return


def test_no_acknowledged_point_is_lost_by_kill_minus_nine(vectors: RunningVectors) -> None:
    with connected(vectors) as client:
        make_collection(client)
        writer = Writer(client)
        writer.start()
        wait_until("some hundred points are acknowledged", lambda: writer.acknowledged > 400)
        vectors.kill()
        writer.join(20)
    vectors.start()
    with connected(vectors) as client:
        kept = {record.id for record in client.scroll(COLLECTION, limit=10_000, with_payload=False)[0]}
        by_index = sum(client.count(COLLECTION, count_filter=tenant(name)).count for name in ("t0", "t1"))
        hits = client.query_points(COLLECTION, query=m.SparseVector(indices=[7], values=[1.0]), using="words").points
    assert set(range(writer.acknowledged)) - kept == set()
    assert by_index == len(kept)
    assert [hit.id for hit in hits] == [7]


def test_a_stop_ends_with_zero_and_a_start_finds_everything(vectors: RunningVectors) -> None:
    with connected(vectors) as client:
        make_collection(client)
        client.upsert(COLLECTION, points=points(0, 10))
    assert vectors.stop() == 0
    vectors.start()
    with connected(vectors) as client:
        info = client.get_collection(COLLECTION)
        assert info.points_count == 10
        assert "tenant" in info.payload_schema


def test_a_deleted_collection_stays_deleted_and_leaves_no_folder(vectors: RunningVectors) -> None:
    with connected(vectors) as client:
        make_collection(client)
        client.delete_collection(COLLECTION)
    vectors.kill()
    vectors.start()
    with connected(vectors) as client:
        assert client.get_collections().collections == []
    assert list((vectors.data_dir / "vectors").glob("c-*")) == []


def test_a_folder_that_the_record_does_not_name_is_removed_at_the_start(vectors: RunningVectors) -> None:
    vectors.stop()
    leftover = vectors.data_dir / "vectors" / f"c-{uuid.uuid4().hex}"
    strange = vectors.data_dir / "vectors" / "not-ours"
    for folder in (leftover, strange):
        folder.mkdir()
    vectors.start()
    assert (leftover.exists(), strange.exists()) == (False, True)


def test_a_second_owner_of_the_folder_is_told_who_has_it_and_ends_with_two(vectors: RunningVectors) -> None:
    second = subprocess.run(
        vectors_command(vectors.data_dir),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env=python_environment(),
    )
    assert second.returncode == 2
    assert "is in use by another vector store" in second.stderr
    assert vectors.process is not None
    assert f"process {vectors.process.pid}" in second.stderr
    assert httpx.get(f"{vectors.url}/readyz").status_code == 200


def test_a_port_in_use_is_named_and_ends_with_two(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = subprocess.run(
            vectors_command(tmp_path, "--vectors-port", str(port)),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            env=python_environment(),
        )
    assert ended.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in ended.stderr


def test_an_address_beyond_this_machine_is_refused_at_the_start(tmp_path: Path) -> None:
    ended = subprocess.run(
        vectors_command(tmp_path, "--vectors-host", "0.0.0.0"),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env=python_environment(),
    )
    assert ended.returncode == 2
    assert "serves this machine only" in ended.stderr


def test_a_shard_that_does_not_load_stops_the_start_and_is_left_as_it_is(vectors: RunningVectors) -> None:
    with connected(vectors) as client:
        make_collection(client)
    vectors.stop()
    record = json.loads((vectors.data_dir / "vectors" / "collections.json").read_text("utf-8"))
    folder = vectors.data_dir / "vectors" / record["collections"][COLLECTION]["folder"]
    for file in folder.rglob("*.json"):
        file.write_text("{", "utf-8")
    ended = subprocess.run(
        vectors_command(vectors.data_dir),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env=python_environment(),
    )
    assert ended.returncode == 2
    assert COLLECTION in ended.stderr
    assert "does not load" in ended.stderr
    assert folder.exists()


def test_deleted_points_are_cleared_away_when_nobody_calls(tmp_path: Path) -> None:
    flags = ("--vectors-flush-seconds", "0.05", "--vectors-vacuum-idle-seconds", "0.05")
    with running_vectors(tmp_path, *flags) as vectors, connected(vectors) as client:
        make_collection(client)
        for start in range(0, 2000, 200):
            client.upsert(COLLECTION, points=points(start, 200))
        client.delete(COLLECTION, points_selector=m.FilterSelector(filter=tenant("t0")))
        wait_until("the store has vacuumed", lambda: any(event["event"] == "vacuumed" for event in vectors.events()))
        assert client.count(COLLECTION).count == 1000
        [hit] = client.query_points(COLLECTION, query=m.SparseVector(indices=[77], values=[1.0]), using="words").points
        assert hit.id == 77
