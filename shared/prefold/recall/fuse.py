"""From two scores to one: linear fusion of cosine and words.

``score = cos + 0.8 min(1, bm25 / (0.6 (k1 + 1) sum of idf of the query's words))``

The second term is BM25 as a share of what the query could reach. A weak match of words so stays weak, where rank
fusion or min-max would make the best of a bad lot a full hit. A word that the tenant's turns do not have counts with
the highest idf there is: a query of which one word in ten is known is hardly answered by that word.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from prefold.recall.sparse import K1

WORD_WEIGHT: Final = 0.8
_REACHABLE: Final = 0.6
"""A turn that has all words of a query once reaches about this share of ``(k1 + 1) sum of idf``."""


@dataclass(frozen=True, slots=True)
class WordScale:
    """What BM25 could reach for a query. Zero for a query without words."""

    reachable: float

    @classmethod
    def of(cls, known_idf: Iterable[float], unknown_words: int, turns: int) -> "WordScale":
        """From the idf of the words that some turn has, and the number of words that none of ``turns`` turns has."""
        total = sum(known_idf) + unknown_words * highest_idf(turns)
        return cls(_REACHABLE * (K1 + 1) * total)

    def share(self, bm25: float) -> float:
        """0..1."""
        return min(1.0, bm25 / self.reachable) if self.reachable > 0 else 0.0

    def shares(self, bm25: NDArray[np.float32]) -> NDArray[np.float32]:
        """The same for many."""
        return np.minimum(1, bm25 / np.float32(self.reachable)) if self.reachable > 0 else np.zeros_like(bm25)


def highest_idf(turns: int) -> float:
    """The store's idf of a word that none of ``turns`` turns has: ``ln(1 + (N - n + 0.5) / (n + 0.5))``, n = 0."""
    return math.log(1 + (turns + 0.5) / 0.5)


def fused(cosine: float | None, share: float) -> float:
    """One score from a cosine on the common scale and a share of words."""
    return (cosine or 0.0) + WORD_WEIGHT * share
