"""Points of an upsert, checked before any is written.

qdrant-edge writes an update to its log before it looks at it: a batch that it refuses is partly applied when the
log is read again. NaN and vectors without a direction it takes without a word. So nothing wrong may reach it.
"""

import math
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import qdrant_edge as edge

from prefold.vectorstore.fields import Fields, array, check_depth
from prefold.vectorstore.identifiers import point_id
from prefold.vectorstore.layout import DEFAULT_VECTOR, DenseLayout, Layout
from prefold.vectorstore.rejections import malformed, wrong

_MAX_INDEX = 2**32 - 1
_SURELY_FINITE = 1e38
"""In 32 bits, too."""


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
    squares = _sum_of_squares(items, path)
    if len(items) != layout.size:
        raise wrong(f"{path}: Vector dimension error: expected dim: {layout.size}, got {len(items)}")
    # It would be stored as zeros or NaN when it is divided by its length, in 32 bits.
    if layout.is_cosine and not 0.0 < squares < math.inf:
        raise wrong(f"{path}: the vector has no direction: its length is 0 or beyond 32 bits")
    return cast("list[float]", items)


def sparse_vector(value: object, path: str) -> edge.SparseVector:
    """A sparse vector: as many values as indices, every index once."""
    fields = Fields(value, path)
    indices, values = fields.items("indices"), fields.items("values")
    fields.done()
    if not all(type(item) is int and 0 <= item <= _MAX_INDEX for item in indices):
        raise malformed(fields.at("indices"), f"expected integers from 0 to {_MAX_INDEX}")
    if not all(type(item) is float and -_SURELY_FINITE < item < _SURELY_FINITE for item in values):
        _sum_of_squares(values, fields.at("values"))
    if len(indices) != len(values):
        raise malformed(path, "as many values as indices are needed")
    if len(set(indices)) != len(indices):
        raise malformed(fields.at("indices"), "an index stands twice")
    return edge.SparseVector(cast("list[int]", indices), cast("list[float]", values))


def _sum_of_squares(items: list[object], path: str) -> float:
    """Of the items as they will be stored: in 32 bits, where a large number is infinite. Refuses what is not finite."""
    try:
        numbers = np.asarray(items or [0.0])
    except ValueError:
        numbers = np.asarray([[]])
    # An array of strings, nulls or lists shows as another kind or shape.
    if numbers.dtype.kind not in "fiu" or numbers.ndim != 1:
        raise malformed(path, "expected numbers")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        vector = numbers.astype(np.float32)
        squares = float(np.dot(vector, vector))
    if not math.isfinite(squares) and not np.isfinite(vector).all():
        raise wrong(f"{path}: not a finite number")
    return squares


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
