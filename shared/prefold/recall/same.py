"""Whether two texts say the same."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from prefold.recall.bag import Bag, Columns
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
    candidates: Sequence[Candidate], bags: Columns, scores: Floats, limit: int
) -> list[tuple[int, tuple[int, ...]]]:
    """Places of the best ``limit``, best first, of equals the later; each with those of the others that say the same.

    ``bags``: what stands in the candidates' bags.
    """
    order = _best_first(candidates, scores)[: limit * _LOOKED_THROUGH]
    bodies = _that_others_may_repeat(bags, order)
    kept: dict[int, list[int]] = {}
    for place in order:
        twin = _twin(place, kept, bodies) if place in bodies else None
        if twin is not None:
            kept[twin].append(place)
        elif len(kept) < limit:
            kept[place] = []
    return [(place, tuple(others)) for place, others in kept.items()]


def _best_first(candidates: Sequence[Candidate], scores: Floats) -> list[int]:
    seqs = [one.payload["seq"] for one in candidates]
    return np.lexsort((np.negative(seqs), -scores)).tolist() if seqs else []


def _twin(place: int, kept: Iterable[int], bodies: Mapping[int, Body]) -> int | None:
    ours = bodies[place]
    return next((other for other in kept if other in bodies and say_the_same(ours, bodies[other])), None)


def _that_others_may_repeat(bags: Columns, among: Sequence[int]) -> dict[int, Body]:
    """Of the bodies of these texts those of which enough words stand in any other: else none says what one of them says."""
    lengths, words = _bodies(bags, among)
    if not len(words):
        return {}
    order = words.argsort()
    found = words[order]
    is_next = found[1:] == found[:-1]
    stands_twice = np.zeros(len(words) + 1, dtype=np.int64)
    is_repeated = np.zeros(len(words), dtype=bool)
    is_repeated[1:] = is_next
    is_repeated[:-1] |= is_next
    stands_twice[1 + order] = is_repeated
    before = stands_twice.cumsum()
    ends = lengths.cumsum()
    common = before[ends] - before[ends - lengths]
    places = np.flatnonzero((common >= SAME_WORDS * lengths) & (lengths > 0)).tolist()
    return {n: frozenset(words[ends[n] - lengths[n] : ends[n]].tolist()) for n in places}


def _bodies(bags: Columns, among: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """The words of these texts, without who said it and when, each word once a text.

    How many of each text of the bags, 0 for one that is not among these; and all of them.
    """
    is_passage = np.zeros(len(bags.parts), dtype=bool)
    is_passage[among] = True
    first = bags.parts.cumsum() - bags.parts
    is_passage = is_passage.repeat(bags.parts)
    is_passage[first] = False
    if bags.parts.max(initial=0) <= 2:
        of_passages = bags.distinct * is_passage
        words = bags.ids[is_passage.repeat(bags.distinct)]
        return np.add.reduceat(of_passages, first) if len(first) else first, words
    texts = np.arange(len(bags.parts)).repeat(bags.parts)
    places = np.flatnonzero(is_passage.repeat(bags.distinct))
    both = np.unique(texts.repeat(bags.distinct)[places] << 32 | bags.ids[places])
    return np.bincount(both >> 32, minlength=len(bags.parts)), (both & 0xFFFF_FFFF).astype(np.uint32)
