"""Which units of a conversation to keep within a number of tokens.

The weight of a term is its rarity times how much the conversation comes back to it (the centroid of TF-IDF);
a unit is worth the terms it adds to what is already kept, so that the second telling of a thing counts little.
Everything is linear in the number of units, but for the choice itself, which looks at the best few thousand.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefold.compaction.reading.turns import TERM_SPACE

Floats = NDArray[np.float64]

_SHORTLIST = 4000
_REPEAT_FACTOR = 0.12
"""What a term is still worth when it has been said once more."""
_GROUP_SHARE = 0.2
"""Most of the budget that one turn may take."""
_LEAST_FOR_GROUP = 80
_COST_EXPONENT = 0.65
_LENGTH_EXPONENT = 0.4


@dataclass(frozen=True, slots=True)
class Pool:
    """Units to choose from, as arrays."""

    terms: NDArray[np.uint32]
    bounds: NDArray[np.int64]
    weights: Floats
    costs: Floats
    """Tokens of each, its share of a line's start included."""
    groups: NDArray[np.int64]
    """Units of one group share a line: the line's start is paid once."""
    group_cost: float


def term_weights(pool: Pool) -> Floats:
    """Weight of each term of the term space: rarity times centrality."""
    owners = _owners(pool)
    spread = np.bincount(pool.terms, minlength=TERM_SPACE).astype(np.float64)
    central = np.bincount(pool.terms, weights=pool.weights[owners], minlength=TERM_SPACE)
    units = max(1, len(pool.weights))
    rarity = np.log1p(units / np.maximum(spread, 1.0))
    return np.asarray(rarity * np.log1p(central), dtype=np.float64)


def choose(pool: Pool, budget: int, covered: Sequence[int] = (), most: int = 4000) -> list[int]:
    """Indexes of the units to keep, best first, whose costs sum to at most ``budget``.

    ``covered`` are terms that stand elsewhere already: they count as said once.
    """
    if not len(pool.weights):
        return []
    weights = term_weights(pool)
    residual = np.ones(TERM_SPACE)
    residual[np.asarray(covered, dtype=np.int64)] = _REPEAT_FACTOR
    values = _values(pool, weights, residual)
    shortlist = _best(values, min(_SHORTLIST, most))
    return _greedy(pool, budget, weights, residual, [(float(values[index]), int(index)) for index in shortlist])


def _values(pool: Pool, weights: Floats, residual: Floats) -> Floats:
    owners = _owners(pool)
    sums = np.bincount(owners, weights=(weights * residual)[pool.terms], minlength=len(pool.weights))
    lengths = np.maximum(np.diff(pool.bounds), 1).astype(np.float64)
    worth = pool.weights * sums / lengths**_LENGTH_EXPONENT
    return np.asarray(worth / pool.costs**_COST_EXPONENT, dtype=np.float64)


def _greedy(pool: Pool, budget: int, weights: Floats, residual: Floats, best: list[tuple[float, int]]) -> list[int]:
    """Lazy greedy choice: a value is only computed again when its unit comes to the top."""
    heap = [(-value, index) for value, index in best]
    heapq.heapify(heap)
    chosen: list[int] = []
    groups: set[int] = set()
    left = float(budget)
    spent: dict[int, float] = {}
    most = max(_LEAST_FOR_GROUP, budget * _GROUP_SHARE)
    while heap and left > 4:
        negative, index = heapq.heappop(heap)
        group = int(pool.groups[index])
        cost = float(pool.costs[index]) - (pool.group_cost if group in groups else 0.0)
        if cost > left or spent.get(group, 0.0) + cost > most:
            continue
        value = _value(pool, weights, residual, index)
        if heap and value < -heap[0][0] - 1e-12 and -negative > value + 1e-12:
            heapq.heappush(heap, (-value, index))
            continue
        if value <= 0:
            continue
        chosen.append(index)
        groups.add(group)
        left -= cost
        spent[group] = spent.get(group, 0.0) + cost
        residual[pool.terms[pool.bounds[index] : pool.bounds[index + 1]]] *= _REPEAT_FACTOR
    return chosen


def _value(pool: Pool, weights: Floats, residual: Floats, index: int) -> float:
    terms = pool.terms[pool.bounds[index] : pool.bounds[index + 1]]
    worth = float(pool.weights[index]) * float((weights[terms] * residual[terms]).sum())
    return float(worth / max(len(terms), 1) ** _LENGTH_EXPONENT / float(pool.costs[index]) ** _COST_EXPONENT)


def _best(values: Floats, count: int) -> list[int]:
    """Indexes of the ``count`` largest values, ties by index: the same on every machine."""
    order = np.argsort(-values, kind="stable")
    return [int(index) for index in order[:count] if values[index] > 0]


def _owners(pool: Pool) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(pool.weights), dtype=np.int64), np.diff(pool.bounds))
