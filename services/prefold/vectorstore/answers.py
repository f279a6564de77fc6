"""Results as Qdrant writes them."""

from collections.abc import Mapping
from typing import Any

import qdrant_edge as edge

from prefold.vectorstore.layout import DEFAULT_VECTOR


def render_scored(point: edge.ScoredPoint) -> dict[str, object]:
    """One hit of a search."""
    answer: dict[str, object] = {"id": point.id, "version": point.version, "score": point.score}
    return _with_data(answer, point.payload, point.vector)


def render_record(record: edge.Record) -> dict[str, object]:
    """One point that was looked up."""
    return _with_data({"id": record.id}, record.payload, record.vector)


def _with_data(answer: dict[str, object], payload: object, vector: Any) -> dict[str, object]:
    if payload is not None:
        answer["payload"] = payload
    if vector is not None:
        answer["vector"] = _render_vectors(vector)
    return answer


def _render_vectors(vector: Any) -> object:
    if not isinstance(vector, Mapping):
        return vector
    rendered = {
        name: {"indices": value.indices, "values": value.values} if isinstance(value, edge.SparseVector) else value
        for name, value in vector.items()
    }
    return rendered[DEFAULT_VECTOR] if set(rendered) == {DEFAULT_VECTOR} else rendered
