"""BM25 of many texts at once, from their bags: of a text's best passage, and of a window of neighbours."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefold.recall.bag import Bag, Columns, columns
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
        found = columns(bags)
        self._first = np.concatenate([[0], np.cumsum(found.parts)]).astype(np.int64)
        self._passages = found.parts - 1
        headings = self._first[:-1]
        is_heading = np.zeros(len(found.lengths), dtype=bool)
        is_heading[headings] = True
        owner = np.repeat(np.arange(len(bags)), found.parts)
        counts, lengths = self._counted(found), found.lengths.astype(np.float32)
        self._counts = np.where(is_heading[:, None], 0, counts + counts[headings[owner]])
        self._lengths = np.where(is_heading, lengths, lengths + lengths[headings[owner]])
        self._rows_bm25 = self._bm25(self._counts, self._lengths, AVERAGE_WORDS)
        self._best = self._best_rows(owner)

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

    def _best_rows(self, owner: Places) -> Places:
        """The row of each text's best passage; of equals the first one; of a text without words its heading."""
        best = self._first[:-1] + (self._passages > 0)
        rows = np.flatnonzero(self._passages[owner] > 1)
        rows = rows[~np.isin(rows, self._first)]
        order = np.lexsort((rows, -self._rows_bm25[rows], owner[rows]))
        texts, first = np.unique(owner[rows][order], return_index=True)
        best[texts] = rows[order[first]]
        return best

    def _counted(self, bags: Columns) -> Floats:
        """A row a part, a column a word."""
        counts = np.zeros((len(bags.distinct), len(self._words)), dtype=np.float32)
        if not len(bags.ids) or not len(self._words):
            return counts
        columns = np.minimum(np.searchsorted(self._words, bags.ids), len(self._words) - 1)
        ours = np.flatnonzero(self._words[columns] == bags.ids)
        rows = np.repeat(np.arange(len(bags.distinct)), bags.distinct)
        counts[rows[ours], columns[ours]] = bags.counts[ours]
        return counts

    def _bm25(self, counts: Floats, lengths: NDArray[Any], average: float) -> Floats:
        beside = K1 * (1 - B + B * lengths / average)
        weights = counts * (K1 + 1) / (counts + beside[:, None])
        found: Floats = (weights @ self._idf).astype(np.float32)
        return found
