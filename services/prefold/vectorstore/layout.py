"""What a collection is made of: its named vectors, as Qdrant's JSON and as qdrant-edge's configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import qdrant_edge as edge

from prefold.vectorstore.fields import Fields
from prefold.vectorstore.rejections import malformed, unsupported, wrong

DEFAULT_VECTOR: Final = ""
"""Name of the vector of a collection that was made without names."""

_DISTANCES = {
    "Cosine": edge.Distance.Cosine,
    "Dot": edge.Distance.Dot,
    "Euclid": edge.Distance.Euclid,
    "Manhattan": edge.Distance.Manhattan,
}
_TUNING = ("hnsw_config", "on_disk", "memory")
_SERVER_TUNING = (
    "shard_number",
    "replication_factor",
    "write_consistency_factor",
    "on_disk_payload",
    "hnsw_config",
    "wal_config",
    "optimizers_config",
    "payload",
    "id_tracker",
    "metadata",
)
_NEVER_INDEXED_KB = 2**40
"""With it ``optimize`` only clears what was deleted: building an HNSW index holds the GIL for seconds, and up to
100,000 points a tenant's query takes 0.4 ms without one."""


@dataclass(frozen=True, slots=True)
class DenseLayout:
    """One dense vector."""

    size: int
    distance: str

    @property
    def is_cosine(self) -> bool:
        """A vector of length zero has no place in it."""
        return self.distance == "Cosine"


@dataclass(frozen=True, slots=True)
class Layout:
    """The vectors of a collection by name."""

    dense: Mapping[str, DenseLayout]
    sparse: Mapping[str, bool]
    """True: scored with the inverse document frequency."""

    def to_json(self) -> dict[str, object]:
        """``vectors`` and ``sparse_vectors`` as Qdrant writes them."""
        vectors: dict[str, object] = {
            name: {"size": dense.size, "distance": dense.distance} for name, dense in self.dense.items()
        }
        sparse = {name: {"modifier": "idf"} if idf else {} for name, idf in self.sparse.items()}
        return {"vectors": vectors.get(DEFAULT_VECTOR, vectors), "sparse_vectors": sparse}

    def edge_config(self) -> edge.EdgeConfig:
        """The configuration of a new shard. The log stays on: without it nothing survives a crash."""
        return edge.EdgeConfig(
            vectors={
                name: edge.EdgeVectorParams(size=dense.size, distance=_DISTANCES[dense.distance])
                for name, dense in self.dense.items()
            },
            sparse_vectors={
                name: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf if idf else None)
                for name, idf in self.sparse.items()
            },
            # A vacuum that is asked for clears all that is deleted away: qdrant-edge's own rule leaves 20 % of it.
            optimizers=edge.EdgeOptimizersConfig(
                indexing_threshold=_NEVER_INDEXED_KB, deleted_threshold=0.0, vacuum_min_vector_number=0
            ),
            wal_enabled=True,
            max_search_threads=1,  # a tenant's search is short: to share it out takes longer than the search itself
        )


def parse_creation(body: object) -> Layout:
    """The layout that a call to create a collection asks for."""
    fields = Fields(body, "")
    fields.drop(*_SERVER_TUNING)
    layout = Layout(_dense(fields.take("vectors")), _sparse(fields.take("sparse_vectors")))
    fields.done()
    if not layout.dense and not layout.sparse:
        raise wrong("a collection needs at least one vector")
    if set(layout.dense) & set(layout.sparse):
        raise wrong("a dense and a sparse vector have the same name")
    return layout


def parse_layout(value: Mapping[str, object]) -> Layout:
    """The reverse of ``Layout.to_json``."""
    return Layout(_dense(value["vectors"]), _sparse(value["sparse_vectors"]))


def _dense(value: object) -> dict[str, DenseLayout]:
    if value is None:
        return {}
    if isinstance(value, dict) and "size" in value and not isinstance(value["size"], dict):
        return {DEFAULT_VECTOR: _one_dense(value, "vectors")}
    if not isinstance(value, dict):
        raise malformed("vectors", "expected an object")
    return {_vector_name(name): _one_dense(params, f"vectors.{name}") for name, params in value.items()}


def _one_dense(value: object, path: str) -> DenseLayout:
    fields = Fields(value, path)
    fields.drop(*_TUNING)
    size = fields.integer("size", None, 1, 65_536)
    distance = fields.text("distance")
    if distance not in _DISTANCES:
        raise malformed(f"{path}.distance", f"expected one of {', '.join(_DISTANCES)}")
    if fields.optional_text("datatype") not in (None, "float32"):
        raise unsupported(path, "a datatype other than float32")
    fields.done()
    return DenseLayout(size, distance)


def _sparse(value: object) -> dict[str, bool]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise malformed("sparse_vectors", "expected an object")
    return {_vector_name(name): _one_sparse(params, f"sparse_vectors.{name}") for name, params in value.items()}


def _one_sparse(value: object, path: str) -> bool:
    fields = Fields(value, path)
    fields.drop("index")
    modifier = fields.optional_text("modifier")
    if modifier not in (None, "none", "idf"):
        raise malformed(f"{path}.modifier", "expected idf or none")
    fields.done()
    return modifier == "idf"


def _vector_name(name: str) -> str:
    if not name or len(name) > 255:
        raise malformed("vectors", "a name has 1 to 255 characters")
    return name
