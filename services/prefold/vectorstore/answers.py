"""Results as Qdrant writes them."""

from collections.abc import Sequence
from typing import Any

import qdrant_edge as edge

from prefold.vectorstore.layout import DEFAULT_VECTOR


def render_scored(points: Sequence[edge.ScoredPoint]) -> list[dict[str, object]]:
    """The hits of a search."""
    answers: list[dict[str, object]] = []
    for point in points:
        answer: dict[str, object] = {"id": point.id, "version": point.version, "score": point.score}
        payload, vector = point.payload, point.vector
        if payload is not None:
            answer["payload"] = payload
        if vector is not None:
            answer["vector"] = _render_vectors(vector)
        answers.append(answer)
    return answers


def render_record(record: edge.Record) -> dict[str, object]:
    """One point that was looked up."""
    answer: dict[str, object] = {"id": record.id}
    if record.payload is not None:
        answer["payload"] = record.payload
    if record.vector is not None:
        answer["vector"] = _render_vectors(record.vector)
    return answer


def _render_vectors(vector: Any) -> object:
    if not isinstance(vector, dict):
        return vector
    rendered = {
        name: {"indices": value.indices, "values": value.values} if isinstance(value, edge.SparseVector) else value
        for name, value in vector.items()
    }
    return rendered[DEFAULT_VECTOR] if set(rendered) == {DEFAULT_VECTOR} else rendered
