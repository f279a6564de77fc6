"""The ledger: exact values, constraints and corrections of a conversation, collected without a model.

It is made from the source turns every time, so it cannot drift, and it does not depend on what a summary says.
``Ledger.entries`` are ranked, best first; what a newer statement replaced is not among them but noted at the
newer one. A gate asks ``missing_from(text)`` and ``coverage(text)``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import log1p

from prefold.compaction.cue import Cue
from prefold.compaction.labels import bare_correction, corrected_pairs, stated_values, unit_of
from prefold.compaction.reading import TurnReading
from prefold.compaction.units import Unit
from prefold.compaction.values import Value, ValueKind, find_values


class EntryKind(StrEnum):
    """Why something is in the ledger."""

    CORRECTION = "correction"
    CONSTRAINT = "constraint"
    IDENTITY = "identity"
    PREFERENCE = "preference"
    STATEMENT = "statement"
    """A sentence of a person with an exact value in it."""
    VALUE = "value"
    """A value that a tool or the assistant brought up."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One line, or one value of a line."""

    kind: EntryKind
    text: str
    """A sentence as it was said, or ``label: value``."""
    values: tuple[str, ...]
    """What must be carried letter by letter: exact values; the text itself where there are none."""
    seq: int
    speaker: str
    by_person: bool
    mentions: int
    """In how many turns it, or its rarest value, occurs."""
    score: float
    replaces: str = ""
    """The value that this one has replaced."""
    replaces_seq: int = 0

    def is_in(self, folded_text: str) -> bool:
        """Whether ``folded_text`` (lower case, white space folded) carries it."""
        return all(" ".join(value.lower().split()) in folded_text for value in self.values)


@dataclass(frozen=True, slots=True)
class Ledger:
    """All entries, ranked."""

    entries: tuple[LedgerEntry, ...]
    replaced: Mapping[tuple[int, str], int] = field(default_factory=dict)
    """(seq, key of a value or text of a labelled value) -> seq of what replaced it."""

    outdated_seqs: frozenset[int] = frozenset()
    """Turns in which something was said that has been replaced."""

    @property
    def owed(self) -> tuple[LedgerEntry, ...]:
        """What a summary owes: what a person stated, and values that more than one turn speaks of."""
        return tuple(entry for entry in self.entries if entry.by_person or entry.mentions > 1)

    def missing_from(self, text: str) -> tuple[LedgerEntry, ...]:
        """Entries of ``owed`` that ``text`` does not carry."""
        folded = " ".join(text.lower().split())
        return tuple(entry for entry in self.owed if not entry.is_in(folded))

    def coverage(self, text: str) -> float:
        """Share of ``owed``, weighted by their scores, that ``text`` carries; 1 without any."""
        total = sum(entry.score for entry in self.owed)
        missing = sum(entry.score for entry in self.missing_from(text))
        return 1.0 - missing / total if total else 1.0

    def is_outdated(self, seq: int, unit: Unit) -> bool:
        """Whether all that a unit of turn ``seq`` states exactly has been replaced since."""
        if seq not in self.outdated_seqs:
            return False
        stated = [value.key for value in unit.values] or [one.value.lower() for one in stated_values(unit.text)]
        return bool(stated) and all((seq, key) in self.replaced for key in stated)


_STATEMENTS = (
    (Cue.CORRECTION, EntryKind.CORRECTION, 3.0),
    (Cue.CONSTRAINT, EntryKind.CONSTRAINT, 3.0),
    (Cue.IDENTITY, EntryKind.IDENTITY, 2.0),
    (Cue.UPDATE, EntryKind.STATEMENT, 1.8),
    (Cue.PREFERENCE, EntryKind.PREFERENCE, 1.4),
    (Cue.CONDITION, EntryKind.PREFERENCE, 1.0),
)
_VALUE_SCORES = {
    ValueKind.EMAIL: 1.6,
    ValueKind.ID: 1.2,
    ValueKind.PHONE: 1.4,
    ValueKind.AMOUNT: 1.2,
    ValueKind.DATE: 1.1,
    ValueKind.ERROR: 1.1,
    ValueKind.TIME: 0.7,
    ValueKind.QUANTITY: 0.7,
    ValueKind.TITLE: 0.7,
    ValueKind.VERSION: 0.6,
    ValueKind.PATH: 0.7,
    ValueKind.URL: 0.6,
    ValueKind.CODE: 0.2,
    ValueKind.NUMBER: 0.3,
}
_TAKEN_UP = frozenset({ValueKind.EMAIL, ValueKind.ID, ValueKind.PHONE, ValueKind.AMOUNT, ValueKind.DATE})
"""Kinds of an assistant's values that count when somebody took them up."""
_LEAST_CHARACTERS = 4
_LEAST_WORTH = 0.6
"""A sentence that nothing but its values speaks for needs better ones than a bare number."""
_RECENT_TURNS = 12
"""How far back a correction without a name for what it corrects may reach."""


def collect_ledger(readings: Sequence[TurnReading]) -> Ledger:
    """The ledger of ``readings``, in their order. Deterministic, linear but for one sort."""
    mentions = _mentions(readings)
    replaced = _Replacements()
    drafts: dict[str, LedgerEntry] = {}
    for reading in readings:
        by_person = is_person(reading)
        for unit in reading.units:
            if by_person and unit.kind in ("prose", "item", "heading"):
                replaced.note(reading.seq, unit)
            for entry in _entries(reading, unit, mentions, by_person):
                _add(drafts, entry)
    standing = [done for entry in drafts.values() if (done := replaced.applied_to(entry)) is not None]
    ranked = sorted(standing, key=lambda entry: (-entry.score, -entry.seq, entry.text))
    return Ledger(tuple(ranked), replaced.by_place, frozenset(seq for seq, _ in replaced.by_place))


def is_person(reading: TurnReading) -> bool:
    """Whether a turn was said by a person: a user, or a partner with a name."""
    return reading.role == "user" or (reading.role == "assistant" and reading.speaker != "assistant")


def _mentions(readings: Sequence[TurnReading]) -> dict[str, int]:
    """In how many turns each value was taken up: said by a person, or used in a call."""
    counts: dict[str, int] = {}
    for reading in readings:
        by_person = is_person(reading)
        used = (unit for unit in reading.units if unit.kind == "call" or (by_person and unit.kind != "result"))
        for key in {value.key for unit in used for value in unit.values}:
            counts[key] = counts.get(key, 0) + 1
    return counts


def _add(drafts: dict[str, LedgerEntry], entry: LedgerEntry) -> None:
    """Folds duplicates: a person's words before a tool's, else the first telling."""
    key = " ".join(entry.text.lower().split()).rstrip(".!?。！？") if entry.by_person else entry.values[0].lower()
    known = drafts.get(key)
    if known is None or (entry.by_person and not known.by_person):
        drafts[key] = entry


def _entries(reading: TurnReading, unit: Unit, mentions: Mapping[str, int], by_person: bool) -> Iterable[LedgerEntry]:
    if unit.kind in ("code", "table", "image"):
        return ()
    if by_person and unit.kind != "result":
        return _statement(reading, unit, mentions)
    if unit.kind == "result":
        return _tool_values(reading, unit, mentions)
    return _assistant_values(reading, unit, mentions) if unit.kind in ("prose", "item") else ()


def _statement(reading: TurnReading, unit: Unit, mentions: Mapping[str, int]) -> Iterable[LedgerEntry]:
    found = [(kind, score) for cue, kind, score in _STATEMENTS if unit.cues & cue]
    if (unit.cues & Cue.FILLER and not found) or len(unit.text) < _LEAST_CHARACTERS:
        return ()
    if unit.cues & Cue.QUESTION and not unit.cues & Cue.FIRST_PERSON and not unit.values:
        return ()
    worth = sum(sorted((_VALUE_SCORES[value.kind] for value in unit.values), reverse=True)[:3])
    if not found and (worth < _LEAST_WORTH or unit.text.endswith((":", "："))):
        return ()
    kind = found[0][0] if found else EntryKind.STATEMENT
    score = (found[0][1] + 0.3 * (len(found) - 1) if found else 0.6) + 0.6 * worth
    if unit.cues & Cue.QUESTION and not unit.cues & (Cue.CONSTRAINT | Cue.CORRECTION):
        score *= 0.5
    score *= 1.0 if unit.opens or unit.values else 0.8
    values = tuple(value.text for value in unit.values) or (unit.text,)
    often = max((mentions.get(value.key, 0) for value in unit.values), default=1)
    return (LedgerEntry(kind, unit.text, values, reading.seq, reading.speaker, True, often, score),)


def _tool_values(reading: TurnReading, unit: Unit, mentions: Mapping[str, int]) -> Iterable[LedgerEntry]:
    if unit.is_error:
        error = LedgerEntry(EntryKind.VALUE, unit.text, (unit.text,), reading.seq, "tool", False, 1, 0.9)
        return (error,)
    return (_value(reading, value, mentions, 0.45) for value in unit.values if _is_telling(value, mentions))


def _is_telling(value: Value, mentions: Mapping[str, int]) -> bool:
    """A tool's value counts when it says what it is, or when somebody took it up."""
    if value.kind in (ValueKind.CODE, ValueKind.NUMBER) or (value.kind is ValueKind.ERROR and ":" not in value.text):
        return False
    return bool(value.label) or value.key in mentions


def _assistant_values(reading: TurnReading, unit: Unit, mentions: Mapping[str, int]) -> Iterable[LedgerEntry]:
    return (
        _value(reading, value, mentions, 0.3)
        for value in unit.values
        if value.key in mentions and value.kind in _TAKEN_UP
    )


def _value(reading: TurnReading, value: Value, mentions: Mapping[str, int], factor: float) -> LedgerEntry:
    often = 1 + mentions.get(value.key, 0)
    text = f"{value.label}: {value.text}" if value.label else value.text
    score = _VALUE_SCORES[value.kind] * factor * (1 + log1p(often - 1))
    return LedgerEntry(EntryKind.VALUE, text, (value.text,), reading.seq, reading.speaker, False, often, score)


def _restates(value: str, before: str) -> bool:
    """Whether a label got the same again, in other words: an exact value that both name decides."""
    if value.lower() == before.lower():
        return True
    return bool({one.key for one in find_values(value)} & {one.key for one in find_values(before)})


class _Replacements:
    """Which stated values a newer statement has replaced, found in the order of the conversation."""

    def __init__(self) -> None:
        self.by_place: dict[tuple[int, str], int] = {}
        self._labelled: dict[str, tuple[int, str]] = {}
        self._latest: dict[tuple[ValueKind, str], tuple[int, Value]] = {}
        self._told: dict[str, int] = {}
        self._news: dict[tuple[int, str], tuple[str, int]] = {}
        self._sentence = ""

    def note(self, seq: int, unit: Unit) -> None:
        """Takes in one sentence of a person."""
        self._sentence = unit.text
        if unit.cues & (Cue.CORRECTION | Cue.UPDATE):
            self._note_correction(seq, unit)
        if not unit.cues & Cue.QUESTION:
            for stated in stated_values(unit.text):
                self._note_label(seq, stated.label, stated.value)
        for value in unit.values:
            self._latest[value.kind, unit_of(value)] = seq, value
            self._told[value.key] = seq

    def _note_correction(self, seq: int, unit: Unit) -> None:
        pairs = corrected_pairs(unit.text, unit.values)
        for old, _ in pairs:
            if old.key in self._told:
                self._replace(self._told[old.key], old.key, old.text, seq)
        fresh = None if pairs else bare_correction(unit.text, unit.values)
        if fresh is None:
            return
        before = self._latest.get((fresh.kind, unit_of(fresh)))
        if before and seq - before[0] <= _RECENT_TURNS and before[1].key != fresh.key:
            self._replace(before[0], before[1].key, before[1].text, seq)

    def _note_label(self, seq: int, label: str, value: str) -> None:
        before = self._labelled.get(label)
        if before and before[0] < seq and not _restates(value, before[1]):
            self._replace(before[0], before[1].lower(), before[1], seq)
            for old in find_values(before[1]):
                self._replace(before[0], old.key, old.text, seq)
        self._labelled[label] = seq, value

    def _replace(self, old_seq: int, key: str, text: str, seq: int) -> None:
        self.by_place[old_seq, key] = seq
        self._news.setdefault((seq, self._sentence), (text, old_seq))

    def applied_to(self, entry: LedgerEntry) -> LedgerEntry | None:
        """``entry`` with what it replaced; None when it is replaced itself."""
        gone = [value for value in entry.values if (entry.seq, " ".join(value.lower().split())) in self.by_place]
        stated = [one.value.lower() for one in stated_values(entry.text)] if entry.by_person else []
        outdated = [value for value in stated if (entry.seq, value) in self.by_place]
        if (gone and len(gone) == len(entry.values)) or (
            outdated and len(outdated) == len(stated) and len(entry.values) <= 1
        ):
            return None
        old = self._news.get((entry.seq, entry.text))
        if old is None or not entry.by_person:
            return entry
        return LedgerEntry(
            entry.kind,
            entry.text,
            entry.values,
            entry.seq,
            entry.speaker,
            True,
            entry.mentions,
            entry.score + 1.0,
            *old,
        )
