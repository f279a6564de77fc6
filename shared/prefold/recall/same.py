"""Whether two texts say the same."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from prefold.recall.bag import Bag, Columns, columns
from prefold.recall.matrix import Floats
from prefold.recall.retrieval import Candidate

SAME_WORDS: Final = 0.85
"""Share of common words, headings (who and when) apart, from which two texts say the same."""

_LOOKED_THROUGH: Final = 3
"""Times as many as are wanted: copies further down are not counted."""

Body = frozenset[int]


def body_of(bag: Bag) -> Body:
    """The words of a text, without who said it and when."""
    return frozenset(bag.ids[bag.distinct[0] :].tolist())


def say_the_same(words: Body, others: Body) -> bool:
    """True if nearly all words are common; never for texts without words, nor for texts with different numbers."""
    if not words or not others:
        return False
    common = len(words & others)
    return common >= SAME_WORDS * (len(words) + len(others) - common) and not any(word & 1 for word in words ^ others)


def texts_say_the_same(words: frozenset[str], others: frozenset[str]) -> bool:
    """The same for words that are still words."""
    common = len(words & others)
    if not common or common < SAME_WORDS * len(words | others):
        return False
    return not any(any(map(str.isdecimal, word)) for word in words ^ others)


def best_without_copies(
    candidates: Sequence[Candidate], scores: Floats, limit: int
) -> list[tuple[int, tuple[int, ...]]]:
    """Places of the best ``limit``, best first, of equals the later; each with those of the others that say the same."""
    order = _best_first(candidates, scores)[: limit * _LOOKED_THROUGH]
    bodies = _that_others_may_repeat([candidates[place].bag for place in order])
    kept: dict[int, list[int]] = {}
    for n in range(len(order)):
        twin = _twin(n, kept, bodies) if n in bodies else None
        if twin is not None:
            kept[twin].append(order[n])
        elif len(kept) < limit:
            kept[n] = []
    return [(order[n], tuple(others)) for n, others in kept.items()]


def _best_first(candidates: Sequence[Candidate], scores: Floats) -> list[int]:
    seqs = [one.payload["seq"] for one in candidates]
    return np.lexsort((np.negative(seqs), -scores)).tolist() if seqs else []


def _twin(n: int, kept: Mapping[int, object], bodies: Mapping[int, Body]) -> int | None:
    ours = bodies[n]
    return next((other for other in kept if other in bodies and say_the_same(ours, bodies[other])), None)


def _that_others_may_repeat(bags: Sequence[Bag]) -> dict[int, Body]:
    """The bodies of which enough words stand in any other: no text without them says what another one says."""
    texts, words = _bodies(columns(bags))
    found = np.sort(words)
    repeated = found[1:][found[1:] == found[:-1]]
    if not len(repeated):
        return {}
    is_repeated = repeated[np.minimum(np.searchsorted(repeated, words), len(repeated) - 1)] == words
    lengths, common = np.bincount(texts, minlength=len(bags)), np.bincount(texts[is_repeated], minlength=len(bags))
    places = np.flatnonzero((common >= SAME_WORDS * lengths) & (lengths > 0)).tolist()
    return {n: body_of(bags[n]) for n in places}


def _bodies(bags: Columns) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """The words of each text, without who said it and when, each word once: which text, and which word."""
    texts = np.repeat(np.arange(len(bags.parts)), bags.parts)
    is_passage = np.ones(len(texts), dtype=bool)
    is_passage[np.cumsum(bags.parts) - bags.parts] = False
    words = np.flatnonzero(np.repeat(is_passage, bags.distinct))
    texts, ids = np.repeat(texts, bags.distinct)[words], bags.ids[words]
    if bags.parts.max(initial=0) <= 2:
        return texts, ids
    both = np.unique(texts << 32 | ids)
    return both >> 32, (both & 0xFFFF_FFFF).astype(np.uint32)
