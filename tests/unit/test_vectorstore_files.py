"""The record of the collections, the owner's lock, and the upkeep."""

import asyncio
import json
import os
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest
import qdrant_edge as edge
from structlog.testing import capture_logs

from prefold.errors import ConfigurationError
from prefold.vectorstore.catalog import Entry, read_catalog, write_catalog
from prefold.vectorstore.collection import Collection
from prefold.vectorstore.fields import MAX_DEPTH, check_depth
from prefold.vectorstore.layout import DenseLayout, Layout, parse_creation
from prefold.vectorstore.ownership import owned
from prefold.vectorstore.rejections import RejectedError
from prefold.vectorstore.store import Store, opened_store
from prefold.vectorstore.upkeep import keep_up, look_after

LAYOUT = Layout({"dense": DenseLayout(4, "Cosine")}, {"words": True})


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = {"a": value} if level % 2 else [value]
    return value


def point(number: int, **payload: Any) -> edge.Point:
    return edge.Point(number, {"dense": [1.0, number, 0.0, 1.0]}, payload)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    entries = {
        "turns": Entry("c-1", LAYOUT),
        "unnamed": Entry("c-2", Layout({"": DenseLayout(2, "Dot")}, {})),
        "größe": Entry("c-3", Layout({}, {"w": False})),
    }
    write_catalog(tmp_path, entries)
    assert read_catalog(tmp_path) == entries


def test_a_new_folder_has_no_collections(tmp_path: Path) -> None:
    assert read_catalog(tmp_path) == {}


def test_a_crash_while_the_record_is_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_catalog(tmp_path, {"turns": Entry("c-1", LAYOUT)})

    def crash(_descriptor: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="no space"):
        write_catalog(tmp_path, {})
    assert set(read_catalog(tmp_path)) == {"turns"}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"format": 2, "collections": {}}', '{"format": 1, "collections": {"a": {}}}'],
)
def test_a_record_that_cannot_be_read_stops_the_start(tmp_path: Path, text: str) -> None:
    (tmp_path / "collections.json").write_text(text, "utf-8")
    with pytest.raises(ConfigurationError, match=r"collections\.json"):
        read_catalog(tmp_path)


def test_one_process_owns_a_folder_until_it_lets_go(tmp_path: Path) -> None:
    with owned(tmp_path), pytest.raises(ConfigurationError, match=f"process {os.getpid()}"), owned(tmp_path):
        pass
    with owned(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot keep vectors"), owned(tmp_path / "file" / "data"):
        pass


def test_the_folder_is_closed_to_other_users(tmp_path: Path) -> None:
    with owned(tmp_path / "data"):
        assert (tmp_path / "data").stat().st_mode & 0o077 == 0


def test_depth_is_counted_through_objects_and_arrays() -> None:
    check_depth(nested(MAX_DEPTH), "payload")
    with pytest.raises(RejectedError, match="nested deeper"):
        check_depth(nested(MAX_DEPTH + 1), "payload")


async def test_the_deepest_payload_that_is_let_in_can_be_loaded_again(tmp_path: Path) -> None:
    """qdrant-edge acknowledges deeper ones, too, and never loads the shard again: see ``MAX_DEPTH``."""
    deepest = nested(MAX_DEPTH)
    async with opened_store(tmp_path) as store:
        store.create("turns", LAYOUT)
        collection = store.get("turns")
        await collection.upsert([point(1, a=deepest)])
        assert collection._shard is not None
        collection._shard.close()  # without a flush: the log is read at the next start
        collection._shard = None
    async with opened_store(tmp_path) as store:
        [record] = store.get("turns").retrieve([1], True, False)
    assert record.payload == {"a": deepest}


async def test_the_store_gives_what_it_was_given_after_it_was_closed(tmp_path: Path) -> None:
    async with opened_store(tmp_path) as store:
        store.create("turns", LAYOUT)
        await store.get("turns").upsert([point(n) for n in range(600)])
    async with opened_store(tmp_path) as store:
        assert store.names() == ["turns"]
        assert store.get("turns").layout == LAYOUT
        assert store.get("turns").count(edge.CountRequest()) == 600


async def test_a_closed_collection_is_not_there(tmp_path: Path) -> None:
    collection = Collection.create("turns", LAYOUT, tmp_path / "c")
    await collection.close()
    await collection.close()
    with pytest.raises(RejectedError, match="doesn't exist"):
        await collection.upsert([point(1)])


async def test_an_upsert_that_waits_for_another_finds_the_collection_deleted(tmp_path: Path) -> None:
    async with opened_store(tmp_path) as store:
        store.create("turns", LAYOUT)
        collection = store.get("turns")
        first = asyncio.create_task(collection.upsert([point(n) for n in range(2000)]))
        await asyncio.sleep(0)
        deletion = asyncio.create_task(store.delete("turns"))
        await asyncio.sleep(0)
        late = asyncio.create_task(collection.upsert([point(9999)]))
        results = await asyncio.gather(first, deletion, late, return_exceptions=True)
    assert results[1] is True
    assert isinstance(results[2], RejectedError)


async def test_a_write_that_nobody_waits_for_any_more_is_done_before_the_next(tmp_path: Path) -> None:
    collection = Collection.create("turns", LAYOUT, tmp_path / "c")
    for start in range(0, 3000, 200):
        given_up = asyncio.create_task(collection.upsert([point(start + n) for n in range(200)]))
        await asyncio.sleep(0)
        given_up.cancel()
        await collection.delete_points(list(range(start, start + 200)))
    left = collection.count(edge.CountRequest())
    await collection.close()
    assert left == 0


async def test_what_lives_long_is_made_in_one_thread_that_does_not_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading, threads = edge.EdgeShard.load, {"load": 0, "update": 0}

    class Watched:
        @staticmethod
        def load(folder: str, config: edge.EdgeConfig) -> edge.EdgeShard:
            threads["load"] = threading.get_ident()
            return loading(folder, config)

    class Shard:
        def update(self, _operation: edge.UpdateOperation) -> None:
            threads["update"] = threading.get_ident()

    await Collection.create("turns", LAYOUT, tmp_path / "c").close()
    monkeypatch.setattr(edge, "EdgeShard", Watched)
    await Collection.load("turns", LAYOUT, tmp_path / "c").close()
    await Collection("other", LAYOUT, cast("edge.EdgeShard", Shard()), time.monotonic).upsert([point(1)])
    assert threads["load"] == threads["update"] != threading.get_ident()


async def test_a_flush_happens_once_for_what_was_written(tmp_path: Path) -> None:
    collection = Collection.create("turns", LAYOUT, tmp_path / "c")
    assert await collection.flush() is False
    await collection.upsert([point(1)])
    assert [await collection.flush(), await collection.flush()] == [True, False]
    await collection.close()


async def test_only_many_deletions_and_an_idle_time_start_a_vacuum(tmp_path: Path) -> None:
    now = [0.0]
    collection = Collection.create("turns", LAYOUT, tmp_path / "c", clock=lambda: now[0])
    await collection.upsert([point(n) for n in range(3000)])
    await collection.delete_points(list(range(900)))
    now[0] = 100
    few = await collection.vacuum(10)
    await collection.delete_points(list(range(900, 1500)))
    busy = await collection.vacuum(10)
    now[0] = 120
    idle = await collection.vacuum(10)
    again = await collection.vacuum(10)
    left = collection.count(edge.CountRequest())
    await collection.close()
    assert (few, busy, idle, again, left) == (False, False, True, False, 1500)


async def test_one_point_deleted_by_a_filter_is_cleared_from_the_files_when_idle(tmp_path: Path) -> None:
    now = [0.0]
    collection = Collection.create("turns", LAYOUT, tmp_path / "c", clock=lambda: now[0])
    await collection.upsert([point(n, session=f"canary-{n}") for n in range(20)])
    await collection.flush()
    chosen = edge.Filter(must=[edge.FieldCondition(key="session", match=edge.MatchValue("canary-7"))])
    await collection.delete_matching(chosen)
    assert segments_with(b"canary-7", tmp_path)
    busy = await collection.vacuum(10)
    now[0] = 20
    idle, again = await collection.vacuum(10), await collection.vacuum(10)
    found = segments_with(b"canary-7", tmp_path)
    await collection.close()
    assert (busy, idle, again, found) == (False, True, False, [])


async def test_what_was_deleted_before_a_restart_is_cleared_after_it(tmp_path: Path) -> None:
    collection = Collection.create("turns", LAYOUT, tmp_path / "c")
    await collection.upsert([point(n) for n in range(20)])
    await collection.delete_points([3])
    await collection.close()
    loaded = Collection.load("turns", LAYOUT, tmp_path / "c")
    cleared = [await loaded.vacuum(0), await loaded.vacuum(0)]
    await loaded.close()
    assert cleared == [True, False]


def segments_with(text: bytes, folder: Path) -> list[Path]:
    """Files of segments that hold a text; the log of the shard is another matter."""
    return [file for file in folder.rglob("segments/**/*") if file.is_file() and text in file.read_bytes()]


async def test_a_failing_collection_does_not_end_the_upkeep_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []

    async def flush(collection: Collection) -> bool:
        if collection.name == "a":
            raise OSError("no space left on device")
        flushed.append(collection.name)
        return True

    monkeypatch.setattr(Collection, "flush", flush)
    async with opened_store(tmp_path) as store:
        for name in ("a", "b"):
            store.create(name, LAYOUT)
        with capture_logs() as logs:
            await look_after(store, 10)
    assert flushed == ["b"]
    assert [(entry["event"], entry["collection"]) for entry in logs] == [("upkeep_failed", "a")]


async def test_the_upkeep_runs_by_time_until_it_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = asyncio.Event()
    seen: list[Store] = []

    async def look(store: Store, _idle: float) -> None:
        seen.append(store)
        if len(seen) == 3:
            rounds.set()

    monkeypatch.setattr("prefold.vectorstore.upkeep.look_after", look)
    task = asyncio.create_task(keep_up(Store(Path(), {}, {}), flush_every_seconds=0.001, vacuum_after_idle_seconds=1))
    await asyncio.wait_for(rounds.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_members_that_only_tune_a_server_are_taken_and_change_nothing() -> None:
    body = {
        "vectors": {"dense": {"size": 4, "distance": "Cosine", "on_disk": True, "hnsw_config": {"m": 8}}},
        "sparse_vectors": {"words": {"modifier": "idf", "index": {"on_disk": False}}},
        "shard_number": 2,
        "optimizers_config": {"indexing_threshold": 10},
        "quantization_config": None,
    }
    assert parse_creation(json.loads(json.dumps(body))) == LAYOUT
