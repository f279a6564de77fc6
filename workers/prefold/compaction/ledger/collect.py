"""The ledger: exact values, constraints and corrections of a conversation, collected without a model.

It is made from the source turns every time, so it cannot drift, and it does not depend on what a summary says.
``Ledger.entries`` are ranked, best first; what a newer statement replaced is not among them but noted at the
newer one. A gate asks ``missing_from(text)`` and ``coverage(text)``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log1p

from prefold.compaction.ledger.entry import EntryKind, LedgerEntry
from prefold.compaction.ledger.replacements import Replacements, keys_of
from prefold.compaction.ledger.worth import VALUE_SCORES, statement_worth
from prefold.compaction.reading.turns import TurnReading
from prefold.compaction.reading.units import Unit
from prefold.compaction.reading.values import Value, ValueKind

__all__ = ["EntryKind", "Ledger", "LedgerEntry", "collect_ledger", "is_person"]


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
        return (*((text, by) for text, by in since if by), *self.replacements.words_since(seq, unit.text))


_TAKEN_UP = frozenset({ValueKind.EMAIL, ValueKind.ID, ValueKind.PHONE, ValueKind.AMOUNT, ValueKind.DATE})
"""Kinds of an assistant's values that count when somebody took them up."""
_SAID = ("prose", "item", "heading")
_CORRECTS = 1.0
"""What a statement gains when it takes another back."""
_LEAST_OF_CORRECTION = 3.0


def collect_ledger(readings: Sequence[TurnReading]) -> Ledger:
    """The ledger of ``readings``, in their order. Deterministic, linear but for one sort."""
    mentions = _mentions(readings)
    replaced = Replacements()
    drafts: dict[str, LedgerEntry] = {}
    people = 0
    for reading in readings:
        by_person = is_person(reading)
        for unit in reading.units:
            said = by_person and not unit.quoted
            if said and unit.kind in _SAID:
                replaced.note(reading.seq, unit)
            for entry in _entries(reading, unit, mentions, people if said else None):
                _add(drafts, entry)
            if said and replaced.news_of(reading.seq, unit.text):
                _add(drafts, _corrected(reading, unit, mentions))
        people += by_person
    standing = [_dated(entry, replaced) for entry in drafts.values() if not replaced.is_gone(entry.seq, entry.keys)]
    ranked = sorted(standing, key=lambda entry: (-entry.score, -entry.seq, entry.text))
    return Ledger(tuple(ranked), replaced)


def _dated(entry: LedgerEntry, replaced: Replacements) -> LedgerEntry:
    """``entry`` with what it replaced, and what of it has been replaced."""
    since = [(value, replaced.since(entry.seq, key)) for value, key in zip(entry.values, entry.keys, strict=False)]
    outdated = tuple((value, by) for value, by in since if by)
    if entry.by_person:
        outdated += replaced.words_since(entry.seq, entry.text)
    news = replaced.news_of(entry.seq, entry.text) if entry.by_person else None
    if news is None:
        return replace(entry, outdated=outdated) if outdated else entry
    entry = replace(entry, outdated=outdated, replaces=news.old, replaces_seq=news.seq)
    if not news.openly:
        return entry
    return replace(entry, kind=EntryKind.CORRECTION, score=max(entry.score, _LEAST_OF_CORRECTION) + _CORRECTS)


def is_person(reading: TurnReading) -> bool:
    """Whether a turn was said by a person: a user, or a partner with a name."""
    return reading.role == "user" or (reading.role == "assistant" and reading.speaker != "assistant")


def _mentions(readings: Sequence[TurnReading]) -> dict[str, int]:
    """In how many turns each value was taken up: said by a person, or used in a call."""
    counts: dict[str, int] = {}
    for reading in readings:
        by_person = is_person(reading)
        used = (
            unit
            for unit in reading.units
            if unit.kind == "call" or (by_person and not unit.quoted and unit.kind != "result")
        )
        for key in {value.key for unit in used for value in unit.values}:
            counts[key] = counts.get(key, 0) + 1
    return counts


def _add(drafts: dict[str, LedgerEntry], entry: LedgerEntry) -> None:
    """Folds duplicates: a person's words before a tool's, else the first telling."""
    key = " ".join(entry.text.lower().split()).rstrip(".!?。！？") if entry.by_person else entry.values[0].lower()
    known = drafts.get(key)
    if known is None or (entry.by_person and not known.by_person):
        drafts[key] = entry


def _entries(reading: TurnReading, unit: Unit, mentions: Mapping[str, int], place: int | None) -> Iterable[LedgerEntry]:
    """``place``: which turn of a person says it; None where no person does, or only quotes it."""
    if unit.kind in ("code", "table", "image"):
        return ()
    if place is not None and unit.kind != "result":
        return _statement(reading, unit, mentions, place)
    if unit.kind == "result":
        return _tool_values(reading, unit, mentions)
    return _assistant_values(reading, unit, mentions) if unit.kind in ("prose", "item") else ()


def _statement(reading: TurnReading, unit: Unit, mentions: Mapping[str, int], place: int) -> Iterable[LedgerEntry]:
    found = statement_worth(unit, place)
    if found is None:
        return ()
    kind, score = found
    values = tuple(value.text for value in unit.values) or (unit.text,)
    often = max((mentions.get(value.key, 0) for value in unit.values), default=1)
    return (LedgerEntry(kind, unit.text, values, reading.seq, reading.speaker, True, often, score, keys_of(unit)),)


def _corrected(reading: TurnReading, unit: Unit, mentions: Mapping[str, int]) -> LedgerEntry:
    """A sentence that replaced something, whatever its wording is worth."""
    values = tuple(value.text for value in unit.values) or (unit.text,)
    often = max((mentions.get(value.key, 0) for value in unit.values), default=1)
    return LedgerEntry(
        EntryKind.STATEMENT, unit.text, values, reading.seq, reading.speaker, True, often, 1.0, keys_of(unit)
    )


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
    score = VALUE_SCORES[value.kind] * factor * (1 + log1p(often - 1))
    return LedgerEntry(
        EntryKind.VALUE, text, (value.text,), reading.seq, reading.speaker, False, often, score, (value.key,)
    )
