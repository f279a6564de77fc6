"""Searches: nearest dense and sparse vectors, prefetches, fusion, and second scoring of what was prefetched."""

from typing import Any, Final

import qdrant_edge as edge

from prefold.vectorstore.fields import Fields, array, number, texts
from prefold.vectorstore.filters import optional_filter, remembered, whole_filter
from prefold.vectorstore.identifiers import payload_path
from prefold.vectorstore.layout import DEFAULT_VECTOR, Layout
from prefold.vectorstore.points import dense_vector, sparse_vector
from prefold.vectorstore.rejections import malformed, unsupported, wrong

MAX_LIMIT: Final = 10_000
"""Most points one call returns: a call holds the GIL until it is done."""
_DEFAULT_LIMIT: Final = 10
_SERVERS_RRF_K: Final = 2
"""What a Qdrant server takes where the request says no k."""
_MAX_PREFETCH_DEPTH: Final = 4

WithVector = bool | list[str]
WithPayload = Any
"""A bool, names, or qdrant-edge's selector."""


def parse_query(body: object, layout: Layout, path: str = "") -> edge.QueryRequest:
    """The body of ``points/query``."""
    fields = Fields(body, path)
    fields.drop("shard_key")
    prefetches = _prefetches(fields, layout, 0)
    request = edge.QueryRequest(
        limit=fields.integer("limit", _DEFAULT_LIMIT, 1, MAX_LIMIT),
        offset=fields.integer("offset", 0, 0, 1_000_000),
        query=_scoring(fields, layout, prefetches),
        prefetches=prefetches,
        with_vector=with_vector(fields, layout),
        with_payload=with_payload(fields, default=False),
        filter=optional_filter(fields.take("filter"), fields.at("filter")),
        score_threshold=fields.optional_number("score_threshold"),
        params=_params(fields),
    )
    fields.done()
    return request


def with_vector(fields: Fields, layout: Layout) -> WithVector:
    """Which vectors to return: all, none (where nothing is said), or those named."""
    name = "with_vector" if "with_vector" in fields else "with_vectors"
    value = fields.take(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    names = texts(value, fields.at(name))
    for unknown in set(names) - set(layout.dense) - set(layout.sparse):
        raise wrong(f"{fields.at(name)}: Not existing vector name error: {unknown}")
    return names


def with_payload(fields: Fields, default: bool) -> WithPayload:
    """Which payload to return: all, none, members by name, or all but some."""
    value = fields.take("with_payload")
    if value is None:
        return default
    if isinstance(value, bool):
        return value
    if not isinstance(value, dict):
        return _paths(value, fields.at("with_payload"))
    selector = Fields(value, fields.at("with_payload"))
    if "exclude" in selector:
        chosen = edge.PayloadSelector.Exclude(_paths(selector.take("exclude"), selector.at("exclude")))
    else:
        chosen = edge.PayloadSelector.Include(_paths(selector.take("include"), selector.at("include")))
    selector.done()
    return chosen


def _paths(value: object, path: str) -> list[str]:
    return [payload_path(item, path) for item in array(value, path)]


def _prefetches(fields: Fields, layout: Layout, depth: int) -> list[edge.Prefetch]:
    value = fields.take("prefetch")
    if value is None:
        return []
    if depth == _MAX_PREFETCH_DEPTH:
        raise malformed(fields.at("prefetch"), f"nested deeper than {_MAX_PREFETCH_DEPTH}")
    items = value if isinstance(value, list) else [value]
    return [_prefetch(item, layout, f"{fields.at('prefetch')}[{i}]", depth + 1) for i, item in enumerate(items)]


def _prefetch(value: object, layout: Layout, path: str, depth: int) -> edge.Prefetch:
    fields = Fields(value, path)
    prefetches = _prefetches(fields, layout, depth)
    prefetch = edge.Prefetch(
        limit=fields.integer("limit", _DEFAULT_LIMIT, 1, MAX_LIMIT),
        query=_scoring(fields, layout, prefetches),
        prefetches=prefetches,
        params=_params(fields),
        filter=optional_filter(fields.take("filter"), fields.at("filter")),
        score_threshold=fields.optional_number("score_threshold"),
    )
    fields.done()
    return prefetch


def _scoring(fields: Fields, layout: Layout, prefetches: list[edge.Prefetch]) -> Any:
    """How the points are scored: by a vector, by fusion of the prefetches, or not at all."""
    using = fields.optional_text("using")
    value = fields.take("query")
    path = fields.at("query")
    if value is None:
        if prefetches:
            raise wrong(f"{path}: prefetches need a query that ranks them")
        return None
    if isinstance(value, dict) and not {"indices", "nearest"} & set(value):
        if not prefetches:
            raise wrong(f"{path}: a fusion needs prefetches")
        return _fusion(value, path, len(prefetches))
    if isinstance(value, dict) and "nearest" in value:
        inner = Fields(value, path)
        value, path = inner.take("nearest"), inner.at("nearest")
        inner.done()
    return edge.Query.Nearest(_vector(value, using or DEFAULT_VECTOR, layout, path), using=using)


def _vector(value: object, using: str, layout: Layout, path: str) -> Any:
    if isinstance(value, int | str):
        raise unsupported(path, "a search by the id of a point")
    if using in layout.dense:
        return dense_vector(value, layout.dense[using], path)
    if using in layout.sparse:
        return sparse_vector(value, path)
    raise wrong(f"{path}: Not existing vector name error: {using}")


def _fusion(value: object, path: str, lists: int) -> Any:
    fields = Fields(value, path)
    if "rrf" in fields:
        fusion: Any = _rrf(Fields(fields.take("rrf"), fields.at("rrf")), lists)
    elif "fusion" in fields:
        name = fields.text("fusion")
        if name not in ("rrf", "dbsf"):
            raise malformed(fields.at("fusion"), "expected rrf or dbsf")
        fusion = edge.Fusion.Rrf(k=_SERVERS_RRF_K) if name == "rrf" else edge.Fusion.Dbsf()
    else:
        raise unsupported(path, "this kind of query")
    fields.done()
    return fusion


def _rrf(fields: Fields, lists: int) -> edge.Fusion.Rrf:
    k = fields.integer("k", _SERVERS_RRF_K, 1, 1_000_000)
    given = fields.take("weights")
    fields.done()
    if given is None:
        return edge.Fusion.Rrf(k=k)
    path = fields.at("weights")
    weights = [number(item, path) for item in array(given, path)]
    if len(weights) != lists:
        raise wrong(f"{path}: {len(weights)} weights for {lists} prefetches")
    return edge.Fusion.Rrf(k=k, weights=weights)


def _params(fields: Fields) -> edge.SearchParams | None:
    """Only the population of the idf matters: every search here is exact."""
    value = fields.take("params")
    return None if value is None else _read_params(value, fields.at("params"))


@remembered
def _read_params(value: object, path: str) -> edge.SearchParams | None:
    params = Fields(value, path)
    params.drop("hnsw_ef", "exact", "quantization", "indexed_only", "acorn")
    idf = params.take("idf")
    params.done()
    if idf is None or idf == "global":
        return None
    population = Fields(idf, params.at("idf"))
    corpus = whole_filter(population.take("corpus"), population.at("corpus"))
    population.done()
    return edge.SearchParams(idf=edge.IdfParams(corpus))
