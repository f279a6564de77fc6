"""Texts that are derived from turns, as the index takes them: the same whoever brings a vector up to date."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefold.facts import Fact, text_of
from prefold.recall.derived import DerivedKind, DerivedPoint, text_digest
from prefold.recall.sparse import document_words

__all__ = ["DerivedText", "fact_text"]


@dataclass(frozen=True, slots=True)
class DerivedText:
    """A text under its key; see ``DerivedPoint``."""

    kind: DerivedKind
    key: str
    text: str
    ts_ms: int | None = None
    category: str = ""

    def point(
        self, tenant: str, user: str, vector: NDArray[np.float32], *, session: str = "", incarnation: str = ""
    ) -> DerivedPoint:
        """The text as the index stores it, from that life of the session; a fact is of none."""
        return DerivedPoint(
            tenant=tenant,
            user=user,
            kind=self.kind,
            session=session,
            incarnation=incarnation,
            key=self.key,
            digest=text_digest(self.text),
            category=self.category,
            ts_ms=self.ts_ms,
            vector=vector,
            words=document_words(self.text),
        )


def fact_text(fact: Fact) -> DerivedText:
    """What a fact is found by."""
    return DerivedText("fact", fact.id, text_of(fact), fact.last_confirmed_ms, fact.category)
