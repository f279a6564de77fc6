"""One method a call: reads the request, asks the store, renders the result."""

import asyncio
from typing import Any, Final

import qdrant_edge as edge
from starlette.requests import Request

from prefold.vectorstore.answers import render_record, render_scored
from prefold.vectorstore.collection import POINTS_PER_CALL, QUERIES_PER_CALL, Collection
from prefold.vectorstore.fields import Fields, check_depth
from prefold.vectorstore.filters import optional_filter, parse_filter
from prefold.vectorstore.gate import read_json
from prefold.vectorstore.identifiers import payload_path, point_id, point_ids
from prefold.vectorstore.indexes import parse_index, render_index
from prefold.vectorstore.layout import parse_creation
from prefold.vectorstore.points import parse_point, raw_points
from prefold.vectorstore.queries import MAX_LIMIT, parse_query, with_payload, with_vector
from prefold.vectorstore.rejections import malformed
from prefold.vectorstore.store import Store

_MAX_SEARCHES: Final = 256
"""In one batch."""


class Calls:
    """The calls of the REST API. Each returns what stands under ``result``, or raises ``RejectedError``."""

    def __init__(self, store: Store, max_body_bytes: int) -> None:
        self._store = store
        self._max_body_bytes = max_body_bytes

    async def list_collections(self, _request: Request) -> object:
        """Names of all."""
        return {"collections": [{"name": name} for name in self._store.names()]}

    async def describe_collection(self, request: Request) -> object:
        """Layout, counts, indexes."""
        collection = self._collection(request)
        info = collection.info()
        return {
            "status": "green",
            "optimizer_status": "ok",
            "indexed_vectors_count": info.indexed_vectors_count,
            "points_count": info.points_count,
            "segments_count": info.segments_count,
            "config": {"params": _params(collection), **_SERVER_CONFIG},
            "payload_schema": {name: render_index(index) for name, index in info.payload_schema.items()},
        }

    async def collection_exists(self, request: Request) -> object:
        """Whether there is one of this name."""
        return {"exists": request.path_params["collection"] in self._store.names()}

    async def create_collection(self, request: Request) -> object:
        """A new one; 409 if there is one."""
        layout = parse_creation(await self._body(request))
        self._store.create(request.path_params["collection"], layout)
        return True

    async def delete_collection(self, request: Request) -> object:
        """Deletes it with all its points; false if there is none."""
        return await self._store.delete(request.path_params["collection"])

    async def create_index(self, request: Request) -> object:
        """Indexes a member of the payload."""
        field, schema = parse_index(await self._body(request))
        return _completed(await self._collection(request).create_index(field, schema))

    async def delete_index(self, request: Request) -> object:
        """Forgets an index."""
        field = payload_path(request.path_params["field"], "field_name")
        return _completed(await self._collection(request).delete_index(field))

    async def upsert(self, request: Request) -> object:
        """Writes points: all are checked before the first is written."""
        collection = self._collection(request)
        raw = raw_points(await self._body(request))
        points: list[edge.Point] = []
        for index, item in enumerate(raw):
            points.append(parse_point(item, collection.layout, f"points[{index}]"))
            if index % POINTS_PER_CALL == POINTS_PER_CALL - 1:
                await asyncio.sleep(0)
        return _completed(await collection.upsert(points))

    async def delete_points(self, request: Request) -> object:
        """By ids or by filter."""
        collection = self._collection(request)
        ids, chosen = _selection(Fields(await self._body(request), ""))
        if chosen is not None:
            return _completed(await collection.delete_matching(chosen))
        return _completed(await collection.delete_points(ids))

    async def set_payload(self, request: Request) -> object:
        """Merges members into payloads, by ids or by filter."""
        collection = self._collection(request)
        fields = Fields(await self._body(request), "")
        payload, key = fields.take("payload"), fields.take("key")
        if not isinstance(payload, dict):
            raise malformed("payload", "expected an object")
        check_depth(payload, "payload")
        key = None if key is None else payload_path(key, "key")
        ids, chosen = _selection(fields)
        if chosen is not None:
            return _completed(await collection.set_payload_matching(chosen, payload, key))
        return _completed(await collection.set_payload(ids, payload, key))

    async def retrieve(self, request: Request) -> object:
        """Points by id; those that are not there are left out."""
        collection = self._collection(request)
        fields = Fields(await self._body(request), "")
        fields.drop("shard_key")
        ids = point_ids(fields.take("ids"), "ids")
        payload, vector = with_payload(fields, default=True), with_vector(fields, collection.layout)
        fields.done()
        if len(ids) > MAX_LIMIT:
            raise malformed("ids", f"more than {MAX_LIMIT}")
        return [render_record(record) for record in collection.retrieve(ids, payload, vector)]

    async def query(self, name: str, body: object) -> object:
        """One search of a collection."""
        return self.query_now(name, body)

    def query_now(self, name: str, body: object) -> object:
        """The same."""
        collection = self._store.get(name)
        [hits] = collection.query_now([parse_query(body, collection.layout)])
        return {"points": render_scored(hits)}

    async def query_batch(self, name: str, body: object) -> object:
        """Several searches, planned as one."""
        collection = self._store.get(name)
        requests = _searches(body, collection)
        return [{"points": render_scored(hits)} for hits in await collection.query(requests)]

    def query_batch_now(self, name: str, body: object) -> object | None:
        """The same without a pause; None: they are so many that others must have their turn between them."""
        collection = self._store.get(name)
        requests = _searches(body, collection)
        if len(requests) > QUERIES_PER_CALL:
            return None
        return [{"points": render_scored(hits)} for hits in collection.query_now(requests)]

    async def scroll(self, request: Request) -> object:
        """A page of points in the order of their ids."""
        collection = self._collection(request)
        fields = Fields(await self._body(request), "")
        fields.drop("shard_key")
        offset = fields.take("offset")
        page = edge.ScrollRequest(
            offset=None if offset is None else point_id(offset, "offset"),
            limit=fields.integer("limit", 10, 1, MAX_LIMIT),
            filter=optional_filter(fields.take("filter"), "filter"),
            with_payload=with_payload(fields, default=True),
            with_vector=with_vector(fields, collection.layout),
        )
        fields.done()
        records, following = collection.scroll(page)
        return {"points": [render_record(record) for record in records], "next_page_offset": following}

    async def count(self, request: Request) -> object:
        """How many points match."""
        collection = self._collection(request)
        fields = Fields(await self._body(request), "")
        fields.drop("shard_key")
        asked = edge.CountRequest(
            exact=fields.flag("exact", True), filter=optional_filter(fields.take("filter"), "filter")
        )
        fields.done()
        return {"count": collection.count(asked)}

    def _collection(self, request: Request) -> Collection:
        return self._store.get(request.path_params["collection"])

    async def _body(self, request: Request) -> object:
        return await read_json(request.scope, request.receive, self._max_body_bytes)


def _selection(fields: Fields) -> tuple[list[Any], edge.Filter | None]:
    """The points that an update names: by ids, or by filter. Exactly one of them: a slip must not mean "all"."""
    fields.drop("shard_key")
    ids, chosen = fields.take("points"), fields.take("filter")
    fields.done()
    if (ids is None) == (chosen is None):
        raise malformed("body", "expected either points or filter")
    if chosen is not None:
        return [], parse_filter(chosen, "filter")
    return point_ids(ids, "points"), None


def _searches(body: object, collection: Collection) -> list[edge.QueryRequest]:
    fields = Fields(body, "")
    searches = fields.items("searches")
    fields.done()
    if len(searches) > _MAX_SEARCHES:
        raise malformed("searches", f"more than {_MAX_SEARCHES}")
    return [parse_query(search, collection.layout, f"searches[{i}]") for i, search in enumerate(searches)]


def _completed(operation: int) -> dict[str, object]:
    return {"operation_id": operation, "status": "completed"}


def _params(collection: Collection) -> dict[str, object]:
    return {
        **collection.layout.to_json(),
        "shard_number": 1,
        "replication_factor": 1,
        "write_consistency_factor": 1,
        "on_disk_payload": True,
    }


_SERVER_CONFIG: Final[dict[str, object]] = {
    "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000, "max_indexing_threads": 0},
    "optimizer_config": {"deleted_threshold": 0.2, "default_segment_number": 0, "flush_interval_sec": 5},
    "wal_config": {"wal_capacity_mb": 32, "wal_segments_ahead": 0},
    "quantization_config": None,
}
"""Members that clients want to read. Nothing here can be changed."""
