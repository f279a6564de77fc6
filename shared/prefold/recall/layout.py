"""The form of our collections: one dense vector, one sparse vector of words, indexes on what filters name."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import structlog
from numpy.typing import NDArray

from prefold.errors import ConfigurationError, InvalidInputError
from prefold.recall.points import DENSE, WORDS
from prefold.recall.server import VectorServer

log = structlog.get_logger()

Indexes = Mapping[str, Mapping[str, Any]]

KEYWORD: Final[Mapping[str, Any]] = {"type": "keyword"}
OF_TENANT: Final[Mapping[str, Any]] = {"type": "keyword", "is_tenant": True}


async def ensure_collection(server: VectorServer, name: str, dimension: int, indexes: Indexes) -> None:
    """Makes the collection and its indexes where they are missing. Again, and from two processes, is legal.

    Raises ``ConfigurationError`` if a collection of this name has another form.
    """
    if await server.create_collection(name, _layout(dimension)):
        log.info("vector_collection_created", collection=name)
    found = await server.collection(name)
    if found is not None:
        _check_layout(name, dimension, found)
    for field, schema in indexes.items():
        await server.create_index(name, field, schema)


def check_vector(vector: NDArray[np.float32], dimension: int) -> None:
    """Raises ``InvalidInputError`` for a vector of the wrong length, or one that is not finite or has no direction."""
    if vector.shape != (dimension,):
        raise InvalidInputError(f"{vector.shape} is not ({dimension},)", field="vector")
    if not np.isfinite(vector).all() or not vector.any():
        raise InvalidInputError("the vector has no direction", field="vector")


def check_query(vector: NDArray[np.float32] | None, dimension: int) -> None:
    """Raises ``InvalidInputError`` for a query's vector of the wrong length."""
    if vector is not None and len(vector) != dimension:
        raise InvalidInputError(f"the query has {len(vector)} dimensions, not {dimension}", field="query")


def _layout(dimension: int) -> dict[str, Any]:
    return {
        "vectors": {DENSE: {"size": dimension, "distance": "Cosine"}},
        "sparse_vectors": {WORDS: {"modifier": "idf"}},
    }


def _check_layout(name: str, dimension: int, described: Mapping[str, Any]) -> None:
    params = described["config"]["params"]
    dense = (params.get("vectors") or {}).get(DENSE) or {}
    words = (params.get("sparse_vectors") or {}).get(WORDS) or {}
    found = (dense.get("size"), dense.get("distance"), words.get("modifier"))
    if found != (dimension, "Cosine", "idf"):
        raise ConfigurationError(f"the collection {name} has another form than ours: {found}")
