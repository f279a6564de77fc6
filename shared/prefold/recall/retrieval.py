"""What a search begins with, in one round trip: the candidates of both kinds, and how rare the query's words are.

A batch of searches goes out. The first brings up what is near by the vector and what has the words, and scores all of
it by the vector, so that a text found by its words alone has its true cosine, too. The rest ask for one text a word:
from the score of a single word and that text's stored weight for it follows the word's idf, which the store alone
knows. The idf is counted among the texts that are searched, all of one tenant: what others say must not move its scores.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import structlog
from numpy.typing import NDArray

from prefold.embedding.protocol import CosineScale
from prefold.recall.bag import Bag, unpacked
from prefold.recall.fuse import WordScale
from prefold.recall.points import DENSE, WORDS
from prefold.recall.scope import Scope
from prefold.recall.server import VectorServer
from prefold.recall.sparse import SparseWords
from prefold.recall.text_counts import TextCounts

log = structlog.get_logger()

Vector = NDArray[np.float32]
Hits = Sequence[Mapping[str, Any]]


class Candidate(NamedTuple):
    """A stored text that may answer."""

    payload: Mapping[str, Any]
    cosine: float | None
    """On the common scale; None when the search had no vector."""
    bag: Bag


@dataclass(frozen=True, slots=True)
class Found:
    """The candidates of a search, in no order that matters, and the idf of those of its words that are known."""

    candidates: list[Candidate]
    idf: Mapping[int, float]
    unknown_words: int


class Retrieval:
    """Reads one collection."""

    def __init__(self, server: VectorServer, collection: str, scale: CosineScale) -> None:
        self._server = server
        self._collection = collection
        self._scale = scale
        self._texts = TextCounts(server, collection)

    async def first(self, scope: Scope, vector: Vector | None, words: SparseWords, *, near: int, worded: int) -> Found:
        """At most ``near`` texts by the vector and ``worded`` by the words."""
        if vector is None and not words:
            return Found([], {}, 0)
        found = await self._server.search(self._collection, list(_searches(scope, vector, words, near, worded)))
        idf = {word: _idf(word, probe[0]) for word, probe in zip(words.indices, found[1:], strict=True) if probe}
        return Found(self._candidates(scope, found[0], vector), idf, len(words.indices) - len(idf))

    async def within(self, scope: Scope, vector: Vector | None, limit: int) -> list[Candidate]:
        """What lies in the scope, with its cosines."""
        query = {} if vector is None else {"query": vector, "using": DENSE}
        search = {**query, "filter": scope.filter(), "limit": limit, "with_payload": True}
        found = await self._server.search(self._collection, [search])
        return self._candidates(scope, found[0], vector)

    async def word_scale(self, scope: Scope, found: Found) -> WordScale:
        """What BM25 could reach for the query among the texts of the scope."""
        texts = 0
        if found.idf and found.unknown_words:
            texts = await self._texts.of(scope)
        return WordScale.of(found.idf.values(), found.unknown_words, texts)

    def _candidates(self, scope: Scope, hits: Hits, vector: Vector | None) -> list[Candidate]:
        admitted = [hit for hit in hits if scope.admits(hit["payload"])]
        if len(admitted) < len(hits):
            log.error("foreign_text_withheld", collection=self._collection, texts=len(hits) - len(admitted))
        if vector is None:
            return [Candidate(hit["payload"], None, unpacked(hit["payload"].get("bag"))) for hit in admitted]
        apply = self._scale.apply
        return [Candidate(hit["payload"], apply(hit["score"]), unpacked(hit["payload"].get("bag"))) for hit in admitted]


def _searches(
    scope: Scope, vector: Vector | None, words: SparseWords, near: int, worded: int
) -> Iterator[dict[str, Any]]:
    chosen = scope.filter()
    params = {"idf": {"corpus": chosen}}
    dense = {"query": vector, "using": DENSE, "filter": chosen, "limit": near}
    sparse = {"query": _query(words.indices), "using": WORDS, "filter": chosen, "params": params, "limit": worded}
    if vector is None:
        yield {**sparse, "with_payload": True}
    elif not words:
        yield {**dense, "with_payload": True}
    else:
        yield {**dense, "prefetch": [dense, sparse], "limit": near + worded, "with_payload": True}
    for word in words.indices:
        probe = {"query": _query([word]), "using": WORDS, "params": params, "with_vector": [WORDS], "limit": 1}
        yield {**probe, "filter": chosen}


def _query(indices: Sequence[int]) -> dict[str, Any]:
    return {"indices": indices, "values": [1.0] * len(indices)}


def _idf(word: int, hit: Mapping[str, Any]) -> float:
    """The store's idf of a word, from the score that the word alone gives to a text."""
    stored = hit["vector"][WORDS]
    weight = stored["values"][stored["indices"].index(word)]
    return float(hit["score"]) / float(weight)
