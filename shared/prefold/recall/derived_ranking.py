"""From candidates to derived texts in order: the cosine, the share of the query's words, and a fact's category."""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from prefold.recall.bag import Bag, columns
from prefold.recall.derived import DerivedHit, derived_hit
from prefold.recall.fuse import WordScale, fused
from prefold.recall.matrix import WordMatrix
from prefold.recall.retrieval import Found
from prefold.recall.same import Body, body_of, say_the_same

_CATEGORY: Final = 1.0
"""More than what the better fit of another fact is usually worth: category first, similarity second."""


def ranked_derived(found: Found, scale: WordScale, categories: Collection[str]) -> list[DerivedHit]:
    """Best first, of equals the newer; of those that say the same, the best, with the number of the others."""
    reached = WordMatrix.of(columns([one.bag for one in found.candidates]), found.idf).bm25
    pairs = []
    for one, bm25 in zip(found.candidates, reached, strict=True):
        share = scale.share(float(bm25))
        bonus = _CATEGORY if one.payload["kind"] == "fact" and one.payload["category"] in categories else 0.0
        pairs.append((derived_hit(one.payload, fused(one.cosine, share) + bonus, one.cosine, share), one.bag))
    pairs.sort(key=lambda pair: (-pair[0].score, -(pair[0].ts_ms or 0), pair[0].key))
    return _once(pairs)


def _once(pairs: list[tuple[DerivedHit, Bag]]) -> list[DerivedHit]:
    kept: list[tuple[DerivedHit, Body]] = []
    for hit, bag in pairs:
        words = body_of(bag)
        for place, (other, taken) in enumerate(kept):
            if (hit.kind, hit.user) == (other.kind, other.user) and say_the_same(words, taken):
                kept[place] = (replace(other, others=(*other.others, hit)), taken)
                break
        else:
            kept.append((hit, words))
    return [hit for hit, _ in kept]
