"""What is stored of a text that was made from turns: its vectors and its ids, never the text."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prefold.recall.names import derived_point_id
from prefold.recall.points import DENSE, WORDS
from prefold.recall.sparse import DocumentWords

DerivedKind = Literal["segment", "summary", "fact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedPoint:
    """A segment's summary, a session's summary or a fact, ready to be stored."""

    tenant: str
    user: str
    """Empty: nobody's."""
    kind: DerivedKind
    session: str
    """Where it came from; empty for a fact, which belongs to the user."""
    incarnation: str
    """That life of the session; empty for a fact."""
    key: str
    """``level:first-last`` of a segment, ``digest`` of a session, the id of a fact."""
    digest: str
    """Hex digest of the text: who reads it somewhere else sees whether it is still the same."""
    category: str = ""
    """Of a fact."""
    ts_ms: int | None = None
    """When it was said, or ended, if known."""
    vector: NDArray[np.float32]
    words: DocumentWords

    @property
    def id(self) -> str:
        """The same for the same key, whatever the text."""
        return derived_point_id(self.tenant, self.user, self.kind, self.session, self.incarnation, self.key)

    def to_json(self) -> dict[str, Any]:
        """The point as Qdrant takes it."""
        vector: dict[str, Any] = {DENSE: self.vector}
        if self.words:
            vector[WORDS] = {"indices": self.words.indices, "values": self.words.values}
        return {"id": self.id, "vector": vector, "payload": self.payload()}

    def payload(self) -> dict[str, Any]:
        """Ids, and the words' numbers."""
        names = ("tenant", "user", "kind", "session", "incarnation", "key", "digest", "category")
        return {**{name: getattr(self, name) for name in names}, "ts": self.ts_ms, "bag": self.words.bag}


@dataclass(frozen=True, slots=True)
class DerivedHit:
    """A derived text that was found. The text itself is in the sessions or with the user, under ``key``."""

    tenant: str
    user: str
    kind: DerivedKind
    session: str
    incarnation: str
    key: str
    digest: str
    category: str
    ts_ms: int | None
    score: float
    """Higher is better; comparable within one search only."""
    cosine: float | None
    word_share: float
    others: tuple["DerivedHit", ...] = ()
    """Those that say the same, best first: they take no place, but stand in where the stores do not confirm this one."""

    @property
    def copies(self) -> int:
        """How many others that were found say the same."""
        return len(self.others)


def derived_hit(payload: Mapping[str, Any], score: float, cosine: float | None, word_share: float) -> DerivedHit:
    """From a stored payload. Raises ``KeyError`` for one that is not ours."""
    names = ("tenant", "user", "kind", "session", "incarnation", "key", "digest", "category")
    return DerivedHit(
        **{name: payload[name] for name in names},
        ts_ms=payload["ts"],
        score=score,
        cosine=cosine,
        word_share=word_share,
    )


def text_digest(text: str) -> str:
    """Of a derived text: what its point bears, and what whoever reads the text somewhere else compares it with."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
