"""Words as a sparse vector, so that the store's dot product with its idf is BM25.

BM25 of a turn for a query is the sum, over the query's words w, of ``idf(w) x weight(w, turn)`` with
``weight = tf (k1 + 1) / (tf + k1 (1 - b + b length / average))`` (Robertson and Zaragoza, 2009). The weights are
stored with the turn, the idf is the store's, the query's weights are 1.

A long text is taken by passages: BM25 of the text is that of its best passage, and the stored weight of a word is its
weight in the passage where it weighs most. So the store's score is never below the true one, and brings up what has it.
"""

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from prefold.recall.bag import packed
from prefold.recall.words import words_of

K1: Final = 0.9
B: Final = 0.4
AVERAGE_WORDS: Final = 40
"""Average length of a turn, fixed: the store holds no running average, and BM25 hardly feels it at this ``B``.
Between chat (13 words) and technical advice (200)."""
PASSAGE_WORDS: Final = 60
"""About 120 tokens of English."""
ONE_PASSAGE_WORDS: Final = 90
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
    """A 32-bit id of a word, the same in every process and release. Two words in two billion share one.

    Odd for a word with a digit in it: texts with different numbers never say the same.
    """
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "big") & ~1 | any(map(str.isdecimal, word))


@dataclass(frozen=True, slots=True)
class DocumentWords(SparseWords):
    """What is stored of a text's words: the vector that finds it, and the bag that says how good the find is."""

    bag: str = ""
    """See ``prefold.recall.bag``."""


def document_words(text: str, heading: str = "") -> DocumentWords:
    """The stored words of a text; none for a text without words. ``heading`` counts with each of its passages."""
    above = words_of(heading)
    passages = passages_of(words_of(text))
    weights: dict[int, float] = {}
    for passage in passages or ([()] if above else []):
        for word, weight in _weights([*above, *passage]).items():
            weights[word] = max(weight, weights.get(word, 0.0))
    return DocumentWords(tuple(weights), tuple(weights.values()), packed(_counted(above), map(_counted, passages)))


def passages_of(words: Sequence[str]) -> list[Sequence[str]]:
    """Runs of about the same length, so long that a run says one thing; a text that is hardly longer is one run."""
    if not words:
        return []
    runs = 1 if len(words) <= ONE_PASSAGE_WORDS else -(-len(words) // PASSAGE_WORDS)
    ends = [round(len(words) * number / runs) for number in range(runs + 1)]
    return [words[start:end] for start, end in itertools.pairwise(ends)]


def query_words(text: str) -> SparseWords:
    """The vector to search with: every word once, weight 1."""
    ids = _unique(word_id(word) for word in words_of(text))[:MAX_QUERY_WORDS]
    return SparseWords(ids, (1.0,) * len(ids))


def damping(length: float) -> float:
    """What stands beside the count in the weight of a word of a text of so many words."""
    return K1 * (1 - B + B * length / AVERAGE_WORDS)


def _weights(words: Sequence[str]) -> dict[int, float]:
    beside = damping(len(words))
    return {word: tf * (K1 + 1) / (tf + beside) for word, tf in _counted(words).items()}


def _counted(words: Iterable[str]) -> Counter[int]:
    return Counter(word_id(word) for word in words)


def _unique(ids: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(ids))
