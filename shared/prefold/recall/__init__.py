"""Finding turns again: how they are indexed, where, and how a question becomes a ranked list of them."""

from prefold.recall.forgetting import forget_turns
from prefold.recall.index import CollectionSpec, OtherCollection, VectorIndex, connect_vectors
from prefold.recall.index_text import IndexedTurn, index_turn
from prefold.recall.names import collection_name, turn_point_id
from prefold.recall.points import TurnHit, TurnPoint
from prefold.recall.scope import TurnRange
from prefold.recall.search import TurnSearch
from prefold.recall.sparse import SparseWords, document_words, query_words

__all__ = [
    "CollectionSpec",
    "IndexedTurn",
    "OtherCollection",
    "SparseWords",
    "TurnHit",
    "TurnPoint",
    "TurnRange",
    "TurnSearch",
    "VectorIndex",
    "collection_name",
    "connect_vectors",
    "document_words",
    "forget_turns",
    "index_turn",
    "query_words",
    "turn_point_id",
]
