"""BM25 of many texts at once, from their bags: of a text's best passage, and of a window of neighbours."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prefold.recall.bag import Columns
from prefold.recall.sparse import AVERAGE_WORDS, K1, B

WINDOW_WORDS = 4 * AVERAGE_WORDS
"""Average length of a window of four turns."""

Floats = NDArray[np.float32]
Places = NDArray[np.int64]


class WordMatrix(NamedTuple):
    """How often the best passage of each text has each of the query's words: one row a text, one column a word."""

    counts: Floats
    lengths: Floats
    """Words with repeats, a number a text: of the best passage, too."""
    bm25: Floats
    """A number a text: that of its best passage."""
    are_short: NDArray[np.bool_]
    """True for each text that is one passage."""
    idf: Floats

    @classmethod
    def of(cls, bags: Columns, idf: Mapping[int, float]) -> "WordMatrix":
        """``idf``: of the query's words that some text has."""
        words = sorted(idf)
        weights = np.array([idf[word] for word in words], dtype=np.float32)
        counts, lengths = _counted(bags, np.array(words, dtype=np.uint32)), bags.lengths.astype(np.float32)
        passages = bags.parts - 1
        if len(counts) == 2 * len(passages) and (passages == 1).all():
            # Short texts, as most are: a row and its heading's make one.
            counts, lengths = counts[::2] + counts[1::2], lengths[::2] + lengths[1::2]
            bm25 = _bm25(counts, lengths, AVERAGE_WORDS, weights)
            return cls(counts, lengths, bm25, passages == 1, weights)
        first = bags.parts.cumsum() - bags.parts
        # What stands above a text counts with each of its passages; alone it is no text.
        headings = first.repeat(passages)
        rows = np.flatnonzero(_are_passages(len(counts), first))
        counts[rows] += counts[headings]
        lengths[rows] += lengths[headings]
        counts[first], lengths[first] = 0, 0
        bm25 = _bm25(counts, lengths, AVERAGE_WORDS, weights)
        best = first + (passages > 0)
        if passages.max(initial=0) > 1:
            best = _best_rows(best, passages, rows, bm25)
        return cls(counts[best], lengths[best], bm25[best], passages == 1, weights)

    def joined(self, more: "WordMatrix") -> "WordMatrix":
        """The texts of both, for the same words."""
        return WordMatrix(
            np.concatenate([self.counts, more.counts]),
            np.concatenate([self.lengths, more.lengths]),
            np.concatenate([self.bm25, more.bm25]),
            np.concatenate([self.are_short, more.are_short]),
            self.idf,
        )

    def windows(self, neighbours: Places, takes_part: NDArray[np.bool_]) -> Floats:
        """BM25 of each text's best passage together with its neighbours' best; 0 for a text that takes no part.

        ``neighbours``: a row a text, places of others in it, -1 for none. Those that take no part are left out.
        """
        counts, lengths = self.counts, self.lengths
        all_take_part = bool(takes_part.all())
        if not all_take_part:
            counts, lengths = np.where(takes_part[:, None], counts, 0), np.where(takes_part, lengths, 0)
        padded, ends = np.concatenate([counts, np.zeros_like(counts[:1])]), np.concatenate([lengths, [0]])
        around, length = counts, lengths
        for column in neighbours.T:
            around, length = around + padded[column], length + ends[column]
        bm25 = _bm25(around, length, WINDOW_WORDS, self.idf)
        return bm25 if all_take_part else np.where(takes_part, bm25, 0).astype(np.float32)


def _are_passages(parts: int, first: Places) -> NDArray[np.bool_]:
    found = np.ones(parts, dtype=bool)
    found[first] = False
    return found


def _best_rows(best: Places, passages: Places, rows: Places, bm25: Floats) -> Places:
    """The row of each text's best passage; of equals the first one."""
    owner = np.arange(len(passages)).repeat(passages)
    order = np.lexsort((rows, -bm25[rows], owner))
    texts, first = np.unique(owner[order], return_index=True)
    best[texts] = rows[order[first]]
    return best


def _counted(bags: Columns, words: NDArray[np.uint32]) -> Floats:
    """A row a part, a column a word."""
    counts = np.zeros((len(bags.distinct), len(words)), dtype=np.float32)
    if not len(bags.ids) or not len(words):
        return counts
    places, columns = np.divmod(np.flatnonzero(bags.ids[:, None] == words), len(words))
    rows = bags.distinct.cumsum().searchsorted(places, side="right")
    counts[rows, columns] = bags.counts[places]
    return counts


def _bm25(counts: Floats, lengths: NDArray[Any], average: float, idf: Floats) -> Floats:
    beside = K1 * (1 - B + B * lengths / average)
    weights = counts * (K1 + 1) / (counts + beside[:, None])
    found: Floats = (weights @ idf).astype(np.float32)
    return found
