"""What is stored of a turn: its vectors, its ids and its words' numbers, never its text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prefold.recall.names import turn_place, turn_point_id
from prefold.recall.sparse import DocumentWords
from prefold.storage.types import SessionRef

DENSE = "dense"
WORDS = "words"

Voice = Literal["user", "assistant", "call", "tool", "system"]
"""Who speaks in a turn. ``call``: the assistant, with a tool call; ``tool``: results of tools, whatever the role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPoint:
    """One turn, ready to be stored."""

    ref: SessionRef
    user: str
    seq: int
    revision: int
    role: str
    ts_ms: int | None
    """When it was said, milliseconds since 1970, if known."""
    vector: NDArray[np.float32]
    words: DocumentWords
    voice: Voice = "user"
    speaker: tuple[int, ...] = ()
    """The words of the speaker's name; none for a nameless user or assistant."""

    @property
    def id(self) -> str:
        """The same for the same turn and revision."""
        return turn_point_id(self.ref, self.seq, self.revision)

    def to_json(self) -> dict[str, Any]:
        """The point as Qdrant takes it."""
        vector: dict[str, Any] = {DENSE: self.vector}
        if self.words:
            vector[WORDS] = {"indices": self.words.indices, "values": self.words.values}
        return {"id": self.id, "vector": vector, "payload": self.payload()}

    def payload(self) -> dict[str, Any]:
        """Ids only, of words, too."""
        return {
            "tenant": self.ref.tenant,
            "user": self.user,
            "session": self.ref.session,
            "incarnation": self.ref.incarnation,
            "seq": self.seq,
            "place": turn_place(self.ref.session, self.ref.incarnation, self.seq),
            "revision": self.revision,
            "role": self.role,
            "ts": self.ts_ms,
            "voice": self.voice,
            "speaker": self.speaker,
            "bag": self.words.bag,
        }


class TurnHit(NamedTuple):
    """A turn that was found. Its text is in the log, under ``ref`` and ``seq``."""

    ref: SessionRef
    user: str
    seq: int
    revision: int
    role: str
    ts_ms: int | None
    score: float
    """The fused score; higher is better; comparable within one search only."""
    cosine: float | None
    """On the common scale; None when the search had no vector."""
    word_share: float
    """0..1: how much of the query's words it has, weighted by their rarity."""
    others: tuple["TurnHit", ...] = ()
    """Those that say the same, best first: they take no place, but stand in where the log does not confirm this one."""

    @property
    def copies(self) -> int:
        """How many others that were found say the same."""
        return len(self.others)


def ref_of(payload: Mapping[str, Any]) -> SessionRef:
    """Whose turn a payload speaks of. Raises ``KeyError`` for a payload that is not ours."""
    return SessionRef(payload["tenant"], payload["session"], payload["incarnation"])
