"""The ledger: exact values, constraints and corrections of a conversation, collected without a model.

It is made from the source turns every time, so it cannot drift, and it does not depend on what a summary says.
``Ledger.entries`` are ranked, best first; what a newer statement replaced is not among them but noted at the
newer one. A gate asks ``missing_from(text)`` and ``coverage(text)``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import log1p

from prefold.compaction.cue import Cue
from prefold.compaction.reading import TurnReading
from prefold.compaction.replacements import Replacements, keys_of
from prefold.compaction.units import Unit
from prefold.compaction.values import Value, ValueKind


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
    keys: tuple[str, ...] = ()
    """What it states, in the form in which newer statements replace it."""
    replaces: str = ""
    """The value that this one has replaced."""
    replaces_seq: int = 0
    outdated: tuple[tuple[str, int], ...] = ()
    """Values in ``text`` that have been replaced, and by which turn; at least one has not."""

    def is_in(self, folded_text: str) -> bool:
        """Whether ``folded_text`` (lower case, white space folded) carries it."""
        return all(" ".join(value.lower().split()) in folded_text for value in self.values)


@dataclass(frozen=True, slots=True)
class Ledger:
    """All entries, ranked."""

    entries: tuple[LedgerEntry, ...]
    replacements: Replacements = field(default_factory=Replacements, compare=False)

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
        if not self.replacements.concern(seq):
            return False
        return self.replacements.is_gone(seq, keys_of(unit))

    def outdated_values(self, seq: int, unit: Unit) -> tuple[tuple[str, int], ...]:
        """Exact values of a unit that have been replaced since, and by which turn."""
        if not self.replacements.concern(seq):
            return ()
        since = [(value.text, self.replacements.since(seq, value.key)) for value in unit.values]
        return tuple((text, by) for text, by in since if by)


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
_CORRECTS = 1.0
"""What a statement gains when it replaced another."""


def collect_ledger(readings: Sequence[TurnReading]) -> Ledger:
    """The ledger of ``readings``, in their order. Deterministic, linear but for one sort."""
    mentions = _mentions(readings)
    replaced = Replacements()
    drafts: dict[str, LedgerEntry] = {}
    for reading in readings:
        by_person = is_person(reading)
        for unit in reading.units:
            if by_person and unit.kind in ("prose", "item", "heading"):
                replaced.note(reading.seq, unit)
            for entry in _entries(reading, unit, mentions, by_person):
                _add(drafts, entry)
    standing = [_dated(entry, replaced) for entry in drafts.values() if not replaced.is_gone(entry.seq, entry.keys)]
    ranked = sorted(standing, key=lambda entry: (-entry.score, -entry.seq, entry.text))
    return Ledger(tuple(ranked), replaced)


def _dated(entry: LedgerEntry, replaced: Replacements) -> LedgerEntry:
    """``entry`` with what it replaced, and what of it has been replaced."""
    since = [(value, replaced.since(entry.seq, key)) for value, key in zip(entry.values, entry.keys, strict=False)]
    outdated = tuple((value, by) for value, by in since if by)
    news = replaced.news_of(entry.seq, entry.text) if entry.by_person else None
    if news is None:
        return replace(entry, outdated=outdated) if outdated else entry
    text, seq = news
    return replace(entry, outdated=outdated, replaces=text, replaces_seq=seq, score=entry.score + _CORRECTS)


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
    return (LedgerEntry(kind, unit.text, values, reading.seq, reading.speaker, True, often, score, keys_of(unit)),)


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
    return LedgerEntry(
        EntryKind.VALUE, text, (value.text,), reading.seq, reading.speaker, False, often, score, (value.key,)
    )
