"""Which stated values a newer statement has replaced: newest wins, the old is marked.

A value that was taken back openly ("no, I meant …", "… has moved to …") is gone: it is only named beside what came in
its place. One that merely stands under a label of which something newer was said stays, marked as replaced, for the
talk may have been of another thing.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from prefold.compaction.ledger.labels import (
    Stated,
    adds,
    announces_correction,
    bare_correction,
    corrected_pairs,
    counted,
    denied_words,
    respelled,
    stated_values,
    tells_news,
    unit_of,
)
from prefold.compaction.ledger.moves import Moves, is_tentative
from prefold.compaction.ledger.things import possessors
from prefold.compaction.reading.cue import Cue
from prefold.compaction.reading.units import Unit
from prefold.compaction.reading.values import Value, ValueKind, find_values

_RECENT_TURNS = 12
"""How far back a correction without a name for what it corrects may reach."""
_NAMED_TURNS = 60
"""How far back one may reach that names what was wrong."""
_RECENT_UNITS = 240
_OF_ONE_THING = frozenset({ValueKind.EMAIL, ValueKind.PHONE, ValueKind.ID})
"""Kinds whose value means the same wherever it stands: replaced once, it is replaced in a tool's answer too."""
_OPEN = int(Cue.CORRECTION | Cue.UPDATE | Cue.RETRACTS)
_LABELS = int(Cue.LABELS)
_QUESTION = int(Cue.QUESTION)
"""As numbers: flags are compared very often."""


def keys_of(unit: Unit) -> tuple[str, ...]:
    """What a unit states: keys of its exact values, else its labelled words."""
    exact = tuple(value.key for value in unit.values)
    if exact or not int(unit.cues) & _LABELS:
        return exact
    return tuple(_word_key(one.label, one.value) for one in stated_values(unit.text))


@dataclass(frozen=True, slots=True)
class News:
    """What a sentence replaced."""

    old: str
    seq: int
    """The turn that had it last."""
    openly: bool


class Replacements:
    """Takes in the sentences of people in the order of the conversation."""

    def __init__(self) -> None:
        self._by_place: dict[tuple[int, str], int] = {}
        self._newer: dict[tuple[int, str], int] = {}
        """Values under a label that has got another one since, without being taken back."""
        self._words: dict[int, list[tuple[str, int]]] = {}
        """Turn -> words of it that were taken back, and by which turn."""
        self._everywhere: dict[str, int] = {}
        self._last_everywhere = 0
        self._held: dict[str, tuple[str, list[int]]] = {}
        """Label -> its value now, and the turns that said so."""
        self._latest: dict[tuple[ValueKind, str], tuple[int, Value]] = {}
        self._kinds: dict[ValueKind, set[str]] = {}
        self._told: dict[str, list[int]] = {}
        self._news: dict[tuple[int, str], News] = {}
        self._recent: deque[tuple[int, str]] = deque(maxlen=_RECENT_UNITS)
        self._moves = Moves()
        self._announced = 0
        """A turn that has said that something was wrong, and not yet what is right."""
        self.seqs: set[int] = set()
        """Turns in which something was said that has been replaced since."""

    def note(self, seq: int, unit: Unit) -> None:
        """One sentence of a person."""
        announced, self._announced = self._announced == seq, 0
        cues = int(unit.cues)
        corrects = bool(cues & _OPEN) or announced
        moved = self._note_moves(seq, unit)
        denied = self._note_correction(seq, unit, announced=announced) if corrects and not moved else ()
        if cues & _LABELS and not cues & _QUESTION:
            for stated in stated_values(unit.text):
                openly = corrects or tells_news(unit.text)
                self._note_label(seq, unit.text, stated, openly=openly)
        if corrects and not unit.values and announces_correction(unit.text):
            self._announced = seq
        for value in unit.values:
            if value not in denied:
                self._tell(seq, value)
        self._recent.append((seq, unit.text))

    def concern(self, seq: int) -> bool:
        """Whether anything that turn ``seq`` may state can have been replaced: spares the looking for most turns."""
        return seq in self.seqs or seq < self._last_everywhere

    def since(self, seq: int, key: str) -> int:
        """Seq of what has replaced ``key`` as turn ``seq`` states it; 0: nothing has."""
        return self._taken_back(seq, key) or self._newer.get((seq, key), 0)

    def words_since(self, seq: int, text: str) -> tuple[tuple[str, int], ...]:
        """Words in ``text``, of turn ``seq``, that were taken back, and by which turn."""
        return tuple((word, by) for word, by in self._words.get(seq, ()) if word in text)

    def is_gone(self, seq: int, keys: Iterable[str]) -> bool:
        """Whether all of ``keys``, and at least one, has been taken back."""
        found = [self._taken_back(seq, key) for key in keys]
        return bool(found) and all(found)

    def news_of(self, seq: int, sentence: str) -> News | None:
        """The value that a sentence replaced."""
        return self._news.get((seq, sentence))

    def _taken_back(self, seq: int, key: str) -> int:
        everywhere = self._everywhere.get(key, 0)
        return self._by_place.get((seq, key), 0) or (everywhere if everywhere > seq else 0)

    def _tell(self, seq: int, value: Value) -> None:
        self._latest[value.kind, unit_of(value)] = seq, value
        self._kinds.setdefault(value.kind, set()).add(value.key)
        told = self._told.setdefault(value.key, [])
        if not told or told[-1] != seq:
            told.append(seq)

    def _note_moves(self, seq: int, unit: Unit) -> bool:
        """Plans that the sentence changes; not where it names old and new value itself."""
        moves = self._moves.note(seq, unit)
        if not moves or (len(unit.values) > 1 and corrected_pairs(unit.text, unit.values)):
            return False
        for move in moves:
            self._replace(move.seqs, move.old, seq, unit.text, openly=move.openly)
        return True

    def _note_correction(self, seq: int, unit: Unit, *, announced: bool) -> tuple[Value, ...]:
        """The values that the sentence itself names as wrong."""
        pairs = corrected_pairs(unit.text, unit.values)
        for old, _ in pairs:
            self._replace(self._told.pop(old.key, ()), old, seq, unit.text)
        if pairs or self._note_bare(seq, unit, announced=announced):
            return tuple(old for old, _ in pairs)
        if unit.cues & Cue.QUESTION or self._note_counted(seq, unit.text):
            return ()
        self._note_words(seq, unit)
        return ()

    def _note_bare(self, seq: int, unit: Unit, *, announced: bool) -> bool:
        fresh = bare_correction(unit.text, unit.values)
        if fresh is None and announced and len(unit.values) == 1:
            fresh = unit.values[0]
        before = self._latest.get((fresh.kind, unit_of(fresh))) if fresh is not None else None
        if fresh is None or before is None or before[1].key == fresh.key:
            return False
        if is_tentative(unit.text) or not self._is_of_same(unit.text, before[0]):
            return False
        lone = fresh.kind in _OF_ONE_THING and len(self._kinds[fresh.kind] - {fresh.key}) == 1
        if seq - before[0] > _RECENT_TURNS and not lone:
            return False
        self._replace(self._told.pop(before[1].key, ()), before[1], seq, unit.text)
        return True

    def _is_of_same(self, sentence: str, old_seq: int) -> bool:
        """Whether what a sentence tells of somebody else's was told of them before."""
        theirs = possessors(sentence)
        return not theirs or any(seq == old_seq and theirs & possessors(text) for seq, text in self._back_to(old_seq))

    def _note_counted(self, seq: int, sentence: str) -> bool:
        """``correction: 19 chairs`` after ``14 chairs``."""
        fresh = counted(sentence) if not adds(sentence) else {}
        for old_seq, text in self._back_to(seq - _RECENT_TURNS) if fresh else ():
            before = counted(text)
            for noun, number in fresh.items():
                if noun in before and before[noun] != number and old_seq < seq:
                    old = before[noun].replace(",", "")
                    self._mark([old_seq], old, before[noun], seq, sentence)
                    return True
        return False

    def _note_words(self, seq: int, unit: Unit) -> None:
        """Names, which are no exact values."""
        wrong = denied_words(unit.text)
        may_respell = not wrong and not unit.values and announces_correction(unit.text)
        for old_seq, text in self._back_to(seq - _NAMED_TURNS):
            word = next((one for one in wrong if one in text), "")
            if may_respell and old_seq >= seq - _RECENT_TURNS:
                word = respelled(unit.text, text)
            if word and old_seq < seq:
                self._words.setdefault(old_seq, []).append((word, seq))
                self.seqs.add(old_seq)
                self._news.setdefault((seq, unit.text), News(word, old_seq, openly=True))
                if not wrong:
                    return

    def _back_to(self, first_seq: int) -> Iterable[tuple[int, str]]:
        """Sentences of people from ``first_seq`` on, newest first."""
        for seq, text in reversed(self._recent):
            if seq < first_seq:
                return
            yield seq, text

    def _note_label(self, seq: int, sentence: str, stated: Stated, *, openly: bool) -> None:
        label, value = stated.label, stated.value
        before, seqs = self._held.get(label, ("", []))
        if not seqs or _restates(value, before):
            if not seqs or seqs[-1] != seq:
                seqs.append(seq)
            self._held[label] = value, seqs
            return
        if stated.loose and not (openly and _same_kinds(value, before)):
            self._held[label] = value, [seq]
            return
        for one in find_values(before):
            self._replace(seqs, one, seq, sentence, openly=openly)
        self._mark(seqs, _word_key(label, before), before, seq, sentence, openly=openly)
        self._held[label] = value, [seq]

    def _replace(self, seqs: Iterable[int], old: Value, seq: int, sentence: str, *, openly: bool = True) -> None:
        told = list(seqs)
        self._mark(told, old.key, old.text, seq, sentence, openly=openly)
        if told and openly and old.kind in _OF_ONE_THING:
            self._everywhere[old.key] = seq
            self._last_everywhere = max(self._last_everywhere, seq)

    def _mark(self, seqs: Iterable[int], key: str, text: str, seq: int, sentence: str, *, openly: bool = True) -> None:
        for old_seq in seqs:
            if old_seq < seq:
                (self._by_place if openly else self._newer)[old_seq, key] = seq
                self.seqs.add(old_seq)
                self._news.setdefault((seq, sentence), News(text, old_seq, openly))


def _word_key(label: str, value: str) -> str:
    return f"{label}={value.lower()}"


def _restates(value: str, before: str) -> bool:
    """Whether a label got the same again, in other words: an exact value that both name decides."""
    if value.lower() == before.lower():
        return True
    return bool({one.key for one in find_values(value)} & {one.key for one in find_values(before)})


def _same_kinds(value: str, before: str) -> bool:
    return bool({one.kind for one in find_values(value)} & {one.kind for one in find_values(before)})
