"""BM25 of many texts at once, from their bags: of a text's best passage, and of a window of neighbours."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefold.recall.bag import Bag
from prefold.recall.sparse import AVERAGE_WORDS, K1, B

WINDOW_WORDS = 4 * AVERAGE_WORDS
"""Average length of a window of four turns."""

Floats = NDArray[np.float32]
Places = NDArray[np.int64]


class WordMatrix:
    """How often each text has each of the query's words.

    One row a text for what is short, as a whole; one row a passage for what is long.
    """

    def __init__(self, bags: Sequence[Bag], idf: Mapping[int, float]) -> None:
        """``idf``: of the query's words that some text has."""
        self._words = np.array(sorted(idf), dtype=np.uint32)
        self._idf = np.array([idf[word] for word in sorted(idf)], dtype=np.float32)
        parts = [len(bag.distinct) for bag in bags]
        self._first = np.concatenate([[0], np.cumsum(parts)]).astype(np.int64)
        self._passages = np.array(parts, dtype=np.int64) - 1
        lengths = np.array([length for bag in bags for length in bag.lengths], dtype=np.float32)
        owner = np.repeat(np.arange(len(bags)), parts)
        self._counts = self._counted(bags) + 0.0
        self._lengths = lengths
        headings = self._first[:-1]
        self._is_heading = is_heading = np.zeros(len(lengths), dtype=bool)
        is_heading[headings] = True
        with_heading = headings[owner]
        self._counts[~is_heading] += self._counts[with_heading[~is_heading]]
        self._lengths[~is_heading] += lengths[with_heading[~is_heading]]
        self._counts[is_heading] = 0
        self._rows_bm25 = self._bm25(self._counts, self._lengths, AVERAGE_WORDS)
        self._best = self._best_rows(owner, len(bags))

    def best_passages(self) -> Floats:
        """BM25 of each text: that of its best passage."""
        return self._rows_bm25[self._best] if len(self._best) else np.zeros(0, dtype=np.float32)

    def windows(self, neighbours: Places, takes_part: NDArray[np.bool_]) -> Floats:
        """BM25 of each text's best passage together with its neighbours' best; 0 for a text that takes no part.

        ``neighbours``: a row a text, places of others in it, -1 for none. Those that take no part are left out.
        """
        counts = np.where(takes_part[:, None], self._counts[self._best], 0)
        lengths = np.where(takes_part, self._lengths[self._best], 0)
        around = np.concatenate([counts, np.zeros_like(counts[:1])])[neighbours].sum(axis=1) + counts
        length = np.concatenate([lengths, [0]])[neighbours].sum(axis=1) + lengths
        bm25 = self._bm25(around, length, WINDOW_WORDS)
        return np.where(takes_part, bm25, 0).astype(np.float32)

    @property
    def are_short(self) -> NDArray[np.bool_]:
        """True for each text that is one passage."""
        short: NDArray[np.bool_] = self._passages == 1
        return short

    def _best_rows(self, owner: Places, texts: int) -> Places:
        """The row of each text's best passage; of equals the first one."""
        order = np.lexsort((np.arange(len(owner)), -self._rows_bm25, self._is_heading, owner))
        _, first = np.unique(owner[order], return_index=True)
        return order[first] if texts else np.zeros(0, dtype=np.int64)

    def _counted(self, bags: Sequence[Bag]) -> Floats:
        """A row a part, a column a word."""
        counts = np.zeros((int(self._first[-1]), len(self._words)), dtype=np.float32)
        ids = np.concatenate([bag.ids for bag in bags]) if bags else np.zeros(0, np.uint32)
        if not len(ids) or not len(self._words):
            return counts
        distinct = [number for bag in bags for number in bag.distinct]
        rows = np.repeat(np.arange(len(distinct)), distinct)
        columns = np.minimum(np.searchsorted(self._words, ids), len(self._words) - 1)
        ours = self._words[columns] == ids
        values = np.concatenate([bag.counts for bag in bags])
        counts[rows[ours], columns[ours]] = values[ours]
        return counts

    def _bm25(self, counts: Floats, lengths: NDArray[Any], average: float) -> Floats:
        beside = K1 * (1 - B + B * lengths / average)
        weights = counts * (K1 + 1) / (counts + beside[:, None])
        found: Floats = (weights @ self._idf).astype(np.float32)
        return found
