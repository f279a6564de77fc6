"""Points of an upsert, checked before any is written.

qdrant-edge writes an update to its log before it looks at it: a batch that it refuses is partly applied when the
log is read again. NaN and vectors without a direction it takes without a word. So nothing wrong may reach it.
"""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import qdrant_edge as edge
from numpy.typing import NDArray

from prefold.vectorstore.fields import Fields, array, check_depth
from prefold.vectorstore.identifiers import point_id
from prefold.vectorstore.layout import DEFAULT_VECTOR, DenseLayout, Layout
from prefold.vectorstore.rejections import malformed, wrong

_MAX_INDEX = 2**32 - 1


def raw_points(body: object) -> list[tuple[object, object, object]]:
    """Id, vector and payload of each point, unchecked, from either form: ``points`` or ``batch``."""
    fields = Fields(body, "")
    batch = fields.take("batch")
    raw = list(_from_batch(batch)) if batch is not None else list(_from_list(fields.items("points")))
    fields.done()
    return raw


def parse_point(raw: tuple[object, object, object], layout: Layout, path: str) -> edge.Point:
    """One point as qdrant-edge takes it."""
    identifier, vector, payload = raw
    if payload is not None and not isinstance(payload, dict):
        raise malformed(f"{path}.payload", "expected an object")
    check_depth(payload, f"{path}.payload")
    return edge.Point(point_id(identifier, f"{path}.id"), _vectors(vector, layout, f"{path}.vector"), payload or {})


def dense_vector(value: object, layout: DenseLayout, path: str) -> list[float]:
    """A dense vector of the right length with finite numbers; under cosine one that has a direction."""
    items = array(value, path)
    vector = _finite_numbers(items, path)
    if len(items) != layout.size:
        raise wrong(f"{path}: Vector dimension error: expected dim: {layout.size}, got {len(items)}")
    if layout.is_cosine and not _has_direction(vector):
        raise wrong(f"{path}: the vector has no direction: its length is 0 or beyond 32 bits")
    return cast("list[float]", items)


def sparse_vector(value: object, path: str) -> edge.SparseVector:
    """A sparse vector: as many values as indices, every index once."""
    fields = Fields(value, path)
    indices = [_index(item, fields.at("indices")) for item in fields.items("indices")]
    values = fields.items("values")
    fields.done()
    _finite_numbers(values, fields.at("values"))
    if len(indices) != len(values):
        raise malformed(path, "as many values as indices are needed")
    if len(set(indices)) != len(indices):
        raise malformed(fields.at("indices"), "an index stands twice")
    return edge.SparseVector(indices, cast("list[float]", values))


def _has_direction(vector: NDArray[np.float32]) -> bool:
    """False for what would be stored as zeros or NaN when it is divided by its length, in 32 bits."""
    with np.errstate(over="ignore", under="ignore"):
        squares = float(np.dot(vector, vector))
    return 0.0 < squares < float("inf")


def _finite_numbers(items: list[object], path: str) -> NDArray[np.float32]:
    """The items as they will be stored, in 32 bits, where a large number becomes infinite."""
    try:
        numbers = np.asarray(items or [0.0])
    except ValueError:
        numbers = np.asarray([[]])
    # An array of strings, nulls or lists shows as another kind or shape.
    if numbers.dtype.kind not in "fiu" or numbers.ndim != 1:
        raise malformed(path, "expected numbers")
    with np.errstate(over="ignore"):
        vector = numbers.astype(np.float32)
    if not np.isfinite(vector).all():
        raise wrong(f"{path}: not a finite number")
    return vector


def _from_list(items: list[object]) -> Iterator[tuple[object, object, object]]:
    for index, item in enumerate(items):
        fields = Fields(item, f"points[{index}]")
        yield fields.take("id"), fields.take("vector"), fields.take("payload")
        fields.done()


def _from_batch(value: object) -> Iterator[tuple[object, object, object]]:
    fields = Fields(value, "batch")
    ids = fields.items("ids")
    vectors = fields.take("vectors")
    payloads = fields.items("payloads") if "payloads" in fields else [None] * len(ids)
    fields.done()
    columns = vectors if isinstance(vectors, dict) else {DEFAULT_VECTOR: vectors}
    lists = {name: array(column, "batch.vectors") for name, column in columns.items()}
    if any(len(column) != len(ids) for column in (*lists.values(), payloads)):
        raise malformed("batch", "ids, vectors and payloads differ in length")
    for index, identifier in enumerate(ids):
        yield identifier, {name: column[index] for name, column in lists.items()}, payloads[index]


def _vectors(value: object, layout: Layout, path: str) -> dict[str, Any]:
    named = value if isinstance(value, dict) else {DEFAULT_VECTOR: value}
    vectors: dict[str, Any] = {}
    for name, vector in named.items():
        at = f"{path}.{name}" if name else path
        if name in layout.dense:
            vectors[name] = dense_vector(vector, layout.dense[name], at)
        elif name in layout.sparse:
            vectors[name] = sparse_vector(vector, at)
        else:
            raise wrong(f"{at}: Not existing vector name error: {name}")
    return vectors


def _index(value: object, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_INDEX:
        raise malformed(path, f"expected integers from 0 to {_MAX_INDEX}")
    return value
