"""Words as a sparse vector, so that the store's dot product with its idf is BM25.

BM25 of a turn for a query is the sum, over the query's words w, of ``idf(w) x weight(w, turn)`` with
``weight = tf (k1 + 1) / (tf + k1 (1 - b + b length / average))`` (Robertson and Zaragoza, 2009). The weights are
stored with the turn, the idf is the store's, the query's weights are 1.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from prefold.recall.words import words_of

K1: Final = 0.9
B: Final = 0.4
AVERAGE_WORDS: Final = 40
"""Average length of a turn, fixed: the store holds no running average, and BM25 hardly feels it at this ``B``.
Between chat (13 words) and technical advice (200)."""
MAX_QUERY_WORDS: Final = 32
"""A query has at most this many different words, its first ones."""


@dataclass(frozen=True, slots=True)
class SparseWords:
    """Ids of words and their weights, each id once."""

    indices: tuple[int, ...]
    values: tuple[float, ...]

    def __bool__(self) -> bool:
        return bool(self.indices)


@lru_cache(maxsize=65_536)
def word_id(word: str) -> int:
    """A 32-bit id of a word, the same in every process and release. Two words in four billion share one."""
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "big")


def document_words(text: str) -> SparseWords:
    """The stored vector of a text; empty for a text without words."""
    return weighted(words_of(text))


def query_words(text: str) -> SparseWords:
    """The vector to search with: every word once, weight 1."""
    ids = _unique(word_id(word) for word in words_of(text))[:MAX_QUERY_WORDS]
    return SparseWords(ids, (1.0,) * len(ids))


def weighted(words: Sequence[str]) -> SparseWords:
    """BM25's weights of the words of one text."""
    counts = Counter(word_id(word) for word in words)
    damping = K1 * (1 - B + B * len(words) / AVERAGE_WORDS)
    return SparseWords(tuple(counts), tuple(tf * (K1 + 1) / (tf + damping) for tf in counts.values()))


def _unique(ids: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(ids))
