"""The recipe without a server: every turn of a conversation is a candidate. What the index comes close to.

For trying weights: a whole set takes seconds once its vectors are kept in a folder.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.recall.sets import Talk
from prefold.embedding import Embedder, Matrix, Vector
from prefold.recall import index_turn
from prefold.recall.bag import columns, unpacked
from prefold.recall.fuse import WordScale
from prefold.recall.matrix import WordMatrix
from prefold.recall.question import Question
from prefold.recall.ranking import Ranking
from prefold.recall.retrieval import Candidate
from prefold.recall.same import best_without_copies
from prefold.recall.weights import RECIPE, Weights

_CALL: Final = 32
MOST: Final = 60
"""Turns that are ranked: more than 2,000 tokens hold."""


class ExactTalk:
    """One conversation in memory."""

    def __init__(self, talk: Talk, embedder: Embedder, cache: Path | None) -> None:
        """``cache``: where vectors are kept; None: nowhere."""
        self._embedder = embedder
        self._cache = cache
        found = [index_turn(json.dumps(turn).encode()) for turn in talk.turns]
        self.turns = [
            (n, turn) for n, turn in enumerate(found) if turn.text and not (n == 0 and turn.voice == "system")
        ]
        self._rows = self._kept("d", [turn.text for _, turn in self.turns], embedder.embed_documents)
        self._bags = [unpacked(turn.words().bag) for _, turn in self.turns]
        self._columns = columns(self._bags)
        self._payloads = [self._payload(place) for place in range(len(self.turns))]
        self._frequency = Counter(word for bag in self._bags for word in set(bag.ids.tolist()))
        self.queries = self._kept("q", [asked.text for asked in talk.asked], self._each_query)

    def ranked(self, query: str, vector: Vector, weights: Weights = RECIPE) -> list[int]:
        """Places of turns, best first."""
        question = Question.of(query)
        scale = self._embedder.scale
        candidates = [
            Candidate(payload, scale.apply(float(cosine)), bag)
            for payload, cosine, bag in zip(self._payloads, self._rows @ vector, self._bags, strict=True)
        ]
        idf, words = self._idf(question)
        ranking = Ranking(question, candidates, WordMatrix.of(self._columns, idf), words, weights)
        scores = ranking.scores(ranking.word_shares())
        order = best_without_copies(candidates, self._columns, scores, min(MOST, len(candidates)))
        return [int(candidates[place].payload["seq"]) - 1 for place, _ in order]

    def _idf(self, question: Question) -> tuple[dict[int, float], WordScale]:
        total = len(self._bags)
        known = {word: self._frequency[word] for word in question.words.indices if word in self._frequency}
        idf = {word: math.log(1 + (total - n + 0.5) / (n + 0.5)) for word, n in known.items()}
        return idf, WordScale.of(idf.values(), len(question.words.indices) - len(idf), total)

    def _payload(self, place: int) -> dict[str, Any]:
        number, turn = self.turns[place]
        life = {"tenant": "t", "user": "", "session": "s", "incarnation": "i", "seq": number + 1, "revision": 0}
        return {**life, "role": "user", "ts": turn.ts_ms, "voice": turn.voice, "speaker": turn.speaker_words()}

    def _each_query(self, texts: Sequence[str]) -> Matrix:
        return np.vstack([self._embedder.embed_query(text) for text in texts])

    def _kept(self, kind: str, texts: Sequence[str], embed: Callable[[Sequence[str]], Matrix]) -> Matrix:
        name = hashlib.sha256(json.dumps([self._embedder.id, kind, list(texts)]).encode()).hexdigest()
        path = self._cache / f"{name}.npy" if self._cache else None
        if path is not None and path.exists():
            rows: Matrix = np.load(path)
            return rows
        parts = [embed(texts[start : start + _CALL]) for start in range(0, len(texts), _CALL)]
        made = np.vstack([np.zeros((0, self._embedder.dimension), np.float32), *parts]).astype(np.float32)
        if path is not None:
            np.save(path, made)
        return made
