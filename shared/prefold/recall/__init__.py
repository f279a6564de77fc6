"""Finding turns again: how they are indexed, where, and how a question becomes a ranked list of them."""

from prefold.recall.derived import DerivedHit, DerivedKind, DerivedPoint, text_digest
from prefold.recall.forgetting import forget_turns, forget_user
from prefold.recall.index import CollectionSpec, OtherCollection, VectorIndex, connect_vectors
from prefold.recall.index_text import IndexedTurn, index_turn
from prefold.recall.memory import MemoryIndex, connect_memory
from prefold.recall.names import collection_name, memory_collection_name, turn_point_id
from prefold.recall.points import TurnHit, TurnPoint
from prefold.recall.scope import TurnRange
from prefold.recall.search import TurnSearch
from prefold.recall.sparse import DocumentWords, SparseWords, document_words, query_words

__all__ = [
    "CollectionSpec",
    "DerivedHit",
    "DerivedKind",
    "DerivedPoint",
    "DocumentWords",
    "IndexedTurn",
    "MemoryIndex",
    "OtherCollection",
    "SparseWords",
    "TurnHit",
    "TurnPoint",
    "TurnRange",
    "TurnSearch",
    "VectorIndex",
    "collection_name",
    "connect_memory",
    "connect_vectors",
    "document_words",
    "forget_turns",
    "forget_user",
    "index_turn",
    "memory_collection_name",
    "query_words",
    "text_digest",
    "turn_point_id",
]
