"""Which stated values a newer statement has replaced: newest wins, the old is marked."""

from collections.abc import Iterable

from prefold.compaction.cue import Cue
from prefold.compaction.labels import bare_correction, corrected_pairs, stated_values, unit_of
from prefold.compaction.units import Unit
from prefold.compaction.values import Value, ValueKind, find_values

_RECENT_TURNS = 12
"""How far back a correction without a name for what it corrects may reach."""
_OF_ONE_THING = frozenset({ValueKind.EMAIL, ValueKind.PHONE, ValueKind.ID})
"""Kinds whose value means the same wherever it stands: replaced once, it is replaced in a tool's answer too."""


def keys_of(unit: Unit) -> tuple[str, ...]:
    """What a unit states: keys of its exact values, else its labelled words."""
    exact = tuple(value.key for value in unit.values)
    return exact or tuple(_word_key(one.label, one.value) for one in stated_values(unit.text))


class Replacements:
    """Takes in the sentences of people in the order of the conversation."""

    def __init__(self) -> None:
        self._by_place: dict[tuple[int, str], int] = {}
        self._everywhere: dict[str, int] = {}
        self._last_everywhere = 0
        self._held: dict[str, tuple[str, list[int]]] = {}
        """Label -> its value now, and the turns that said so."""
        self._latest: dict[tuple[ValueKind, str], tuple[int, Value]] = {}
        self._told: dict[str, list[int]] = {}
        self._news: dict[tuple[int, str], tuple[str, int]] = {}
        self.seqs: set[int] = set()
        """Turns in which something was said that has been replaced since."""

    def note(self, seq: int, unit: Unit) -> None:
        """One sentence of a person."""
        denied: tuple[Value, ...] = ()
        if unit.cues & (Cue.CORRECTION | Cue.UPDATE):
            denied = self._note_correction(seq, unit)
        if not unit.cues & Cue.QUESTION:
            for stated in stated_values(unit.text):
                self._note_label(seq, unit.text, stated.label, stated.value)
        for value in unit.values:
            if value in denied:
                continue
            self._latest[value.kind, unit_of(value)] = seq, value
            told = self._told.setdefault(value.key, [])
            if not told or told[-1] != seq:
                told.append(seq)

    def concern(self, seq: int) -> bool:
        """Whether anything that turn ``seq`` may state can have been replaced: spares the looking for most turns."""
        return seq in self.seqs or seq < self._last_everywhere

    def since(self, seq: int, key: str) -> int:
        """Seq of what has replaced ``key`` as turn ``seq`` states it; 0: nothing has."""
        everywhere = self._everywhere.get(key, 0)
        return self._by_place.get((seq, key), 0) or (everywhere if everywhere > seq else 0)

    def is_gone(self, seq: int, keys: Iterable[str]) -> bool:
        """Whether all of ``keys``, and at least one, has been replaced."""
        found = [self.since(seq, key) for key in keys]
        return bool(found) and all(found)

    def news_of(self, seq: int, sentence: str) -> tuple[str, int] | None:
        """The value that a sentence replaced, and the turn that had it last."""
        return self._news.get((seq, sentence))

    def _note_correction(self, seq: int, unit: Unit) -> tuple[Value, ...]:
        """The values that the sentence itself names as wrong."""
        pairs = corrected_pairs(unit.text, unit.values)
        for old, _ in pairs:
            self._replace(self._told.pop(old.key, ()), old, seq, unit.text)
        fresh = None if pairs else bare_correction(unit.text, unit.values)
        if fresh is None:
            return tuple(old for old, _ in pairs)
        before = self._latest.get((fresh.kind, unit_of(fresh)))
        if before and seq - before[0] <= _RECENT_TURNS and before[1].key != fresh.key:
            self._replace(self._told.pop(before[1].key, ()), before[1], seq, unit.text)
        return ()

    def _note_label(self, seq: int, sentence: str, label: str, value: str) -> None:
        before, seqs = self._held.get(label, ("", []))
        if not seqs or _restates(value, before):
            if not seqs or seqs[-1] != seq:
                seqs.append(seq)
            self._held[label] = value, seqs
            return
        for one in find_values(before):
            self._replace(seqs, one, seq, sentence)
        self._mark(seqs, _word_key(label, before), before, seq, sentence)
        self._held[label] = value, [seq]

    def _replace(self, seqs: Iterable[int], old: Value, seq: int, sentence: str) -> None:
        told = list(seqs)
        self._mark(told, old.key, old.text, seq, sentence)
        if told and old.kind in _OF_ONE_THING:
            self._everywhere[old.key] = seq
            self._last_everywhere = max(self._last_everywhere, seq)

    def _mark(self, seqs: Iterable[int], key: str, text: str, seq: int, sentence: str) -> None:
        for old_seq in seqs:
            if old_seq < seq:
                self._by_place[old_seq, key] = seq
                self.seqs.add(old_seq)
                self._news.setdefault((seq, sentence), (text, old_seq))


def _word_key(label: str, value: str) -> str:
    return f"{label}={value.lower()}"


def _restates(value: str, before: str) -> bool:
    """Whether a label got the same again, in other words: an exact value that both name decides."""
    if value.lower() == before.lower():
        return True
    return bool({one.key for one in find_values(value)} & {one.key for one in find_values(before)})
