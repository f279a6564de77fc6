"""Dense and words together, in one round trip.

A batch of searches goes out. Two bring up the candidates of both kinds and score all of them, one by the vector, one
by the words, so that a turn found by its words alone has its true cosine, too. The rest ask for one turn a word: from
the score of a single word and that turn's stored weight for it follows the word's idf, which the store alone knows
and the fusion needs. The idf is counted among the tenant's own turns: what others say must not move its scores.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import structlog
from numpy.typing import NDArray

from prefold.embedding.protocol import CosineScale
from prefold.recall.fuse import Candidate, WordScale, fused
from prefold.recall.points import DENSE, WORDS, TurnHit, ref_of
from prefold.recall.scope import Scope
from prefold.recall.server import VectorServer
from prefold.recall.sparse import SparseWords

log = structlog.get_logger()

CANDIDATES: Final = 50
"""Of each kind."""

Hits = Sequence[Mapping[str, Any]]


class HybridSearch:
    """Searches one collection."""

    def __init__(self, server: VectorServer, collection: str, scale: CosineScale) -> None:
        self._server = server
        self._collection = collection
        self._scale = scale

    async def run(
        self, scope: Scope, vector: NDArray[np.float32] | None, words: SparseWords, limit: int
    ) -> list[TurnHit]:
        """The best ``limit`` turns of the scope, best first; of equals the later one."""
        if vector is None and not words:
            return []
        searches = list(_searches(scope, vector, words))
        found = await self._server.search(self._collection, searches)
        by_vector = found.pop(0) if vector is not None else []
        by_words = found.pop(0) if words else []
        candidates = _candidates(by_vector, by_words)
        scale = await self._word_scale(scope, words, found)
        return self._ranked(scope, candidates, scale)[:limit]

    async def _word_scale(self, scope: Scope, words: SparseWords, probes: Sequence[Hits]) -> WordScale:
        known = [_idf(word, probe[0]) for word, probe in zip(words.indices, probes, strict=True) if probe]
        unknown = len(words.indices) - len(known)
        turns = 0
        if known and unknown:
            turns = await self._server.count(self._collection, Scope(tenant=scope.tenant).filter(), exact=False)
        return WordScale.of(known, unknown, turns)

    def _ranked(self, scope: Scope, candidates: Mapping[str, Candidate], scale: WordScale) -> list[TurnHit]:
        newest: dict[tuple[Any, int], TurnHit] = {}
        for candidate in candidates.values():
            hit = self._hit(scope, candidate, scale)
            if hit is None:
                continue
            key = (hit.ref, hit.seq)
            if key not in newest or newest[key].revision < hit.revision:
                newest[key] = hit
        return sorted(newest.values(), key=lambda hit: (-hit.score, -hit.seq, hit.ref.session))

    def _hit(self, scope: Scope, candidate: Candidate, scale: WordScale) -> TurnHit | None:
        payload = candidate.payload
        if not scope.admits(payload):
            log.error("foreign_turn_withheld", collection=self._collection)
            return None
        cosine = None if candidate.cosine is None else self._scale.apply(candidate.cosine)
        share = scale.share(candidate.bm25)
        return TurnHit(
            ref=ref_of(payload),
            user=payload["user"],
            seq=payload["seq"],
            revision=payload["revision"],
            role=payload["role"],
            ts_ms=payload["ts"],
            score=fused(cosine, share),
            cosine=cosine,
            word_share=share,
        )


def _searches(scope: Scope, vector: NDArray[np.float32] | None, words: SparseWords) -> Iterator[dict[str, Any]]:
    chosen = scope.filter()
    params = {"idf": {"corpus": Scope(tenant=scope.tenant).filter()}}
    dense = {"query": vector, "using": DENSE, "filter": chosen}
    sparse = {"query": _query(words.indices), "using": WORDS, "filter": chosen, "params": params}
    sources = [source for source, wanted in ((dense, vector is not None), (sparse, bool(words))) if wanted]
    both = {"prefetch": [{**source, "limit": CANDIDATES} for source in sources]} if len(sources) > 1 else {}
    for position, source in enumerate(sources):
        yield {**source, **both, "limit": CANDIDATES * len(sources), "with_payload": position == 0}
    for word in words.indices:
        probe = {"query": _query([word]), "using": WORDS, "params": params, "with_vector": [WORDS], "limit": 1}
        yield {**probe, "filter": Scope(tenant=scope.tenant).filter()}


def _query(indices: Sequence[int]) -> dict[str, Any]:
    return {"indices": indices, "values": [1.0] * len(indices)}


def _candidates(by_vector: Hits, by_words: Hits) -> dict[str, Candidate]:
    """Every turn has a vector, so a search with one scores all candidates, and its hits carry the payload."""
    candidates = {hit["id"]: Candidate(hit["payload"], cosine=hit["score"]) for hit in by_vector}
    for hit in by_words:
        if "payload" in hit:
            candidates[hit["id"]] = Candidate(hit["payload"])
        if hit["id"] in candidates:
            candidates[hit["id"]].bm25 = hit["score"]
    return candidates


def _idf(word: int, hit: Mapping[str, Any]) -> float:
    """The store's idf of a word, from the score that the word alone gives to a turn."""
    stored = hit["vector"][WORDS]
    weight = stored["values"][stored["indices"].index(word)]
    return float(hit["score"]) / float(weight)
