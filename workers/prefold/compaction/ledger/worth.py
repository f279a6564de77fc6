"""How much a sentence of a person is worth to the ledger, by its wording, its values, its length and its place.

What somebody states once and means for good (an allergy, a standing order, a limit, an address) counts most; a goal
or a figure told while asking for help counts little, however many values it has. A short sentence says more for its
room than a long one, and the opening of a conversation sets what the rest of it goes by.
"""

import re
from math import exp

from prefold.compaction.ledger.entry import EntryKind
from prefold.compaction.reading.cue import Cue
from prefold.compaction.reading.units import Unit
from prefold.compaction.reading.values import ValueKind

VALUE_SCORES = {
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
_WORTHS = (
    (Cue.HEALTH.value, 4.0),
    (Cue.STANDING.value, 3.6),
    (Cue.CORRECTION.value, 3.2),
    (Cue.CONTACT.value, 3.0),
    (Cue.LIMIT.value, 3.0),
    (Cue.CONSTRAINT.value, 1.9),
    (Cue.IDENTITY.value, 1.9),
    (Cue.UPDATE.value, 1.6),
    (Cue.PREFERENCE.value, 1.2),
    (Cue.CONDITION.value, 0.9),
)
_KINDS = (
    (Cue.CORRECTION.value, EntryKind.CORRECTION),
    (int(Cue.CONSTRAINT | Cue.HEALTH | Cue.STANDING | Cue.LIMIT), EntryKind.CONSTRAINT),
    (int(Cue.IDENTITY | Cue.CONTACT), EntryKind.IDENTITY),
    (Cue.UPDATE.value, EntryKind.STATEMENT),
    (int(Cue.PREFERENCE | Cue.CONDITION), EntryKind.PREFERENCE),
)
_PLAIN = 0.6
"""A sentence that nothing but its values speaks for."""
_LEAST_VALUES = 0.6
"""And these must be better than a bare number."""
_OPENING = 2.2
"""At the very beginning, where people say what it is about; it fades."""
_OPENING_WORDS = 1.8
"""The same, of a sentence without a value or a name in it."""
_OPENING_TURNS = 40
_OPENING_FADES = 40.0
_EARLY = 0.5
_EARLY_TURNS = 30.0
_MOST_FOR_VALUES = 1.1
_MOST_FOR_CUES = 0.6
_SHORT_TOKENS = 14
_LEAST_CHARACTERS = 4
_MOST_OPENING_TOKENS = 30
_LASTING = int(Cue.HEALTH | Cue.STANDING)
_PLAINLY_NOT = int(Cue.QUESTION | Cue.MUSING | Cue.REQUEST)
_FILLER = Cue.FILLER.value
_QUESTION = Cue.QUESTION.value
_FIRST_PERSON = Cue.FIRST_PERSON.value
_MUSING = Cue.MUSING.value
_CORRECTION = Cue.CORRECTION.value
"""As numbers: every sentence of a person is asked at every build."""
_LABELS = Cue.LABELS.value
_NAME = re.compile(r"(?<=[^\W\d_][ ,])[^\W\d_a-zà-ÿ][\w'’-]+")
_NAME_INSIDE = re.compile(r"(?<=[^\W\d_][ ,])[^\W\d_a-zà-ÿ][\w'’-]+|\d")


def statement_worth(unit: Unit, place: int) -> tuple[EntryKind, float] | None:
    """Kind and score of a person's sentence, None where it states nothing. ``place``: which turn of a person it is in."""
    cues = int(unit.cues)
    found = [score for cue, score in _WORTHS if cues & cue]
    values = sum(sorted((VALUE_SCORES[value.kind] for value in unit.values), reverse=True)[:3])
    if not found and not _states_plainly(unit, cues, values, place):
        return None
    if cues & _QUESTION and not cues & _FIRST_PERSON and not unit.values:
        return None
    kind = next((kind for cue, kind in _KINDS if cues & cue), EntryKind.STATEMENT)
    worth = max(found, default=_plain(unit, cues, values, place))
    worth += min(_MOST_FOR_CUES, 0.2 * (len(found) - 1)) if found else 0.0
    worth += min(_MOST_FOR_VALUES, 0.5 * values)
    return kind, worth * _wording(unit, cues) * _brevity(unit) * (1 + _EARLY * exp(-place / _EARLY_TURNS))


def _states_plainly(unit: Unit, cues: int, values: float, place: int) -> bool:
    """Whether a sentence without a cue may stand for its values, or its place."""
    if cues & _FILLER or len(unit.text) < _LEAST_CHARACTERS or unit.text.endswith((":", "：")):
        return False
    if values >= _LEAST_VALUES:
        return True
    return _is_of_opening(unit, cues, place) and bool(cues & _FIRST_PERSON or _NAME_INSIDE.search(unit.text))


def _is_of_opening(unit: Unit, cues: int, place: int) -> bool:
    """Whether it is a short whole sentence near the beginning that neither asks nor muses."""
    if place >= _OPENING_TURNS or cues & _PLAINLY_NOT or not unit.opens:
        return False
    return unit.tokens <= _MOST_OPENING_TOKENS


def _plain(unit: Unit, cues: int, values: float, place: int) -> float:
    """What a sentence without a cue is worth beside its values."""
    if not _is_of_opening(unit, cues, place) or _only_counts(unit, cues):
        return _PLAIN
    telling = values >= _LEAST_VALUES or _NAME_INSIDE.search(unit.text)
    return _PLAIN + (_OPENING if telling else _OPENING_WORDS) * exp(-place / _OPENING_FADES)


def _only_counts(unit: Unit, cues: int) -> bool:
    """Whether a bare number is all that it has, and nobody speaks of themselves."""
    if cues & (_FIRST_PERSON | _LABELS) or not unit.values or _NAME.search(unit.text):
        return False
    return all(value.kind is ValueKind.NUMBER for value in unit.values)


def _wording(unit: Unit, cues: int) -> float:
    """Less for a question, for musing, and for a piece of a long sentence."""
    lasting = bool(cues & _LASTING)
    factor = 1.0
    if cues & _QUESTION and not cues & (_LASTING | _CORRECTION):
        factor *= 0.5
    if cues & _MUSING:
        factor *= 0.85 if lasting else 0.5
    return factor * (1.0 if unit.opens else 0.8)


def _brevity(unit: Unit) -> float:
    return float((_SHORT_TOKENS / max(_SHORT_TOKENS, unit.tokens)) ** 0.4)
