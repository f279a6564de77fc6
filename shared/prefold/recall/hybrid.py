"""A search for turns, in two round trips: candidates, then what was said beside the best of them."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prefold.embedding.protocol import CosineScale
from prefold.recall.bag import Columns, columns, joined
from prefold.recall.fuse import WordScale
from prefold.recall.matrix import WordMatrix
from prefold.recall.points import TurnHit, ref_of
from prefold.recall.question import Question
from prefold.recall.ranking import AFTER, BEFORE, Ranking, Said
from prefold.recall.retrieval import Candidate, Found, Retrieval
from prefold.recall.same import best_without_copies
from prefold.recall.scope import Place, Scope
from prefold.recall.server import VectorServer
from prefold.recall.weights import RECIPE, Weights

NEAR: Final = 40
WORDED: Final = 30
"""Candidates by the vector and by the words."""
_WIDENED: Final = 12
"""So many of the best of them are looked at with what stands beside them."""
_TEXTS_AT_FIRST: Final = 1000
"""Of the scope, until they are counted: it only matters for words that nobody used, and only for who is widened."""


class HybridSearch:
    """Searches one collection."""

    def __init__(self, server: VectorServer, collection: str, scale: CosineScale, weights: Weights = RECIPE) -> None:
        self._retrieval = Retrieval(server, collection, scale)
        self._weights = weights

    async def run(self, scope: Scope, query: str, vector: NDArray[np.float32] | None, limit: int) -> list[TurnHit]:
        """The best ``limit`` turns of the scope, best first; of equals the later one."""
        question = Question.of(query)
        near, worded = max(NEAR, limit), max(WORDED, limit)
        found = await self._retrieval.first(scope, vector, question.words, near=near, worded=worded)
        if not found.candidates:
            return []
        texts = Texts.of(found.candidates, found.idf)
        beside, (scale, said) = await asyncio.gather(
            self._beside(scope, found, texts, vector), self._meanwhile(scope, found, texts)
        )
        more = Texts.of(beside, found.idf)
        said.add(more.candidates)
        candidates, _, bags, words = texts.joined(more)
        ranking = Ranking(question, candidates, words, scale, self._weights, said)
        shares = ranking.word_shares()
        scores = ranking.scores(shares)
        order = best_without_copies(candidates, bags, scores, limit)

        def hit(n: int, others: tuple[TurnHit, ...] = ()) -> TurnHit:
            return hit_of(candidates[n], float(scores[n]), float(shares[n]), others)

        return [hit(n, tuple(map(hit, others))) for n, others in order]

    async def _beside(
        self, scope: Scope, found: Found, texts: "Texts", vector: NDArray[np.float32] | None
    ) -> list[Candidate]:
        """What stands beside the best candidates: their windows need it, and it may answer itself."""
        places = places_beside(self._best_at_first(found, texts), texts.places)
        if not places:
            return []
        wider = Scope(tenant=scope.tenant, user=scope.user, places=places)
        return await self._retrieval.within(wider, vector, 2 * len(places))

    async def _meanwhile(self, scope: Scope, found: Found, texts: "Texts") -> tuple[WordScale, Said]:
        """What can be known while the store looks for what stands beside."""
        said = Said(texts.candidates)
        return await self._retrieval.word_scale(scope, found), said

    def _best_at_first(self, found: Found, texts: "Texts") -> list[Place]:
        scale = WordScale.of(found.idf.values(), found.unknown_words, _TEXTS_AT_FIRST)
        cosines = np.array([one.cosine or 0.0 for one in texts.candidates], dtype=np.float32)
        order = np.argsort(-(cosines + self._weights.words * scale.shares(texts.words.bm25)), kind="stable")
        return [texts.places[number] for number in order[:_WIDENED].tolist()]


class Texts(NamedTuple):
    """Candidates, each turn once, with what stands in their bags and how often they have the query's words."""

    candidates: list[Candidate]
    places: list[Place]
    bags: Columns
    words: WordMatrix

    @classmethod
    def of(cls, candidates: Sequence[Candidate], idf: Mapping[int, float]) -> "Texts":
        """Of each turn its newest revision."""
        kept = newest(candidates)
        bags = columns([one.bag for one in kept.values()])
        return cls(list(kept.values()), list(kept), bags, WordMatrix.of(bags, idf))

    def joined(self, more: "Texts") -> "Texts":
        """These and others, of other turns; what was read of them is not read again."""
        return Texts(
            self.candidates + more.candidates,
            self.places + more.places,
            joined(self.bags, more.bags),
            self.words.joined(more.words),
        )


def newest(candidates: Sequence[Candidate]) -> dict[Place, Candidate]:
    """Of each turn its newest revision."""
    places = list(map(_place, candidates))
    found = dict(zip(places, candidates, strict=True))
    if len(found) < len(places):
        for place, one in zip(places, candidates, strict=True):
            if found[place].payload["revision"] < one.payload["revision"]:
                found[place] = one
    return found


def places_beside(best: Sequence[Place], known: Sequence[Place]) -> frozenset[Place]:
    """What stands around the best turns, as far as it is not known: what windows of turns in question reach."""
    wanted = {
        (session, incarnation, number)
        for session, incarnation, seq in best
        for number in range(max(1, seq - BEFORE - AFTER), seq + BEFORE + AFTER + 1)
    }
    return frozenset(wanted.difference(known))


def _place(candidate: Candidate) -> Place:
    payload = candidate.payload
    return payload["session"], payload["incarnation"], payload["seq"]


def hit_of(candidate: Candidate, score: float, share: float, others: tuple[TurnHit, ...] = ()) -> TurnHit:
    """As it is answered."""
    payload = candidate.payload
    return TurnHit(
        ref=ref_of(payload),
        user=payload["user"],
        seq=payload["seq"],
        revision=payload["revision"],
        role=payload["role"],
        ts_ms=payload["ts"],
        score=score,
        cosine=candidate.cosine,
        word_share=share,
        others=others,
    )
