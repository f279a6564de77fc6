"""What must be true of one life of a session, kept in the simplest way."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from prefold.conversation import PreparedTurn, TurnKind
from prefold.conversation.markers import REMOVED_TEXT
from tests.property.histories.author import Raw

REMOVED = "removed"
"""The version of a turn that was removed: it has no words."""


@dataclass(frozen=True)
class Said:
    """What one turn says now."""

    raw: Raw
    prepared: PreparedTurn
    mark: str
    """Of its words; ``REMOVED`` without."""
    revision: int = 0

    @property
    def removed(self) -> bool:
        return self.mark == REMOVED

    def given_back(self, seq: int) -> Raw:
        """The turn as the log must give it back."""
        if not self.removed:
            return {"seq": seq, **self.raw}
        kept: Raw = {name: self.raw[name] for name in ("id", "role", "ts") if name in self.raw}
        return {"seq": seq, **kept, "content": REMOVED_TEXT, "removed": True}


@dataclass
class Oracle:
    said: dict[int, Said] = field(default_factory=dict)
    """By seq, ascending. A rewind leaves holes."""
    head: int = 0
    """Newest seq that was ever given out."""
    seqs: dict[str, int] = field(default_factory=dict)
    """Of every id that was ever published in this life."""
    digests: dict[str, str] = field(default_factory=dict)
    """Of the first publication."""
    removed: set[str] = field(default_factory=set)
    """Ids of removed turns, also of those that were taken back since."""
    raws: dict[str, Raw] = field(default_factory=dict)
    """The first publication."""
    heads: dict[int, int] = field(default_factory=lambda: {0: 0})
    """Tokens of the head that was committed, by what it covers."""
    changes: int = 0

    # What is done to the log. Each returns the marks of the words that are gone with it.

    def publish(self, raw: Raw, prepared: PreparedTurn) -> int:
        self.head += 1
        self.said[self.head] = Said(raw, prepared, raw["id"])
        self.seqs[raw["id"]], self.digests[raw["id"]] = self.head, prepared.digest
        self.raws[raw["id"]] = raw
        return self.head

    def edit(self, seq: int, raw: Raw, prepared: PreparedTurn, mark: str) -> set[str]:
        before = self.said[seq]
        self.said[seq] = Said(raw, prepared, mark, before.revision + 1)
        self.changes += 1
        return {before.mark}

    def remove(self, seq: int) -> set[str]:
        before = self.said[seq]
        self.said[seq] = replace(before, mark=REMOVED, revision=before.revision + 1)
        self.removed.add(before.raw["id"])
        self.changes += 1
        return {before.mark}

    def rewind(self, to_seq: int) -> set[str]:
        taken = [seq for seq in self.said if seq > to_seq]
        self.changes += bool(taken)
        return {self.said.pop(seq).mark for seq in taken} - {REMOVED}

    def forked(self, upto: int) -> "Oracle":
        """The life that a fork of the turns up to ``upto`` begins with."""
        other = deepcopy(self)
        other.rewind(upto)
        other.seqs = {said.raw["id"]: seq for seq, said in other.said.items()}
        other.removed &= set(other.seqs)
        other.raws = {turn_id: self.raws[turn_id] for turn_id in other.seqs}
        other.head, other.changes = max(other.said, default=0), 0
        return other

    # What may be asked of it

    def refusal(self, turn_id: str, digest: str | None) -> str:
        """Code of the error that an id meets; ``digest``: it is published, None: it is to be changed."""
        seq = self.seqs.get(turn_id)
        if seq is None:
            return "" if digest is not None else "turn_not_found"
        if digest is not None and turn_id in self.removed:
            return "turn_removed"
        if seq not in self.said:
            return "turn_rewound"
        if self.said[seq].removed:
            return "turn_removed"
        return "turn_conflict" if digest not in (None, self.digests[turn_id]) else ""

    def marks(self) -> set[str]:
        return {said.mark for said in self.said.values()} - {REMOVED}

    def versions(self, covers_to: int) -> list[str]:
        """What a summary of the turns up to ``covers_to`` was made of."""
        return [
            said.mark if not said.removed else f"{said.raw['id']} {REMOVED}"
            for seq, said in self.said.items()
            if seq <= covers_to
        ]

    def standing(self) -> Iterable[tuple[int, Said]]:
        return self.said.items()

    def newest_user(self) -> int:
        """Seq of the newest plain user turn; 0: none."""
        plain = (seq for seq, one in self.said.items() if _is_plain_user(one))
        return max(plain, default=0)

    def users(self) -> set[int]:
        """What may count as a user's turn: plain ones, and words beside results for calls that are not open; 0: none."""
        return {0, *(seq for seq, one in self.said.items() if _has_words_of_user(one))}

    def mark(self, seq: int) -> str:
        """The words with which the turn's text begins: no other text has them."""
        return f"<{self.said[seq].mark}>"


def _is_plain_user(one: Said) -> bool:
    return not one.removed and one.prepared.kind is TurnKind.PLAIN and one.prepared.role == "user"


def _has_words_of_user(one: Said) -> bool:
    spoke: Any = (TurnKind.PLAIN, TurnKind.RESULTS)
    return not one.removed and one.prepared.role == "user" and one.prepared.kind in spoke and bool(one.prepared.content)
