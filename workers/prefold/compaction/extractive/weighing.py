"""How much a unit matters by its own wording and its place in its turn. The conversation is weighed in elsewhere.

The figures were set on the development conversations (tests, ``test_compaction_quality``): a person's own
statement is 1, and what binds, corrects or tells who somebody is counts a multiple of it.
"""

from collections.abc import Sequence

from prefold.compaction.reading.cue import Cue
from prefold.compaction.reading.units import Unit
from prefold.compaction.reading.values import ValueKind

_CUES = {
    Cue.CONSTRAINT: 1.5,
    Cue.CONDITION: 0.2,
    Cue.CORRECTION: 1.0,
    Cue.PREFERENCE: 0.6,
    Cue.IDENTITY: 0.9,
    Cue.UPDATE: 0.8,
    Cue.DECISION: 0.6,
    Cue.OUTCOME: 0.2,
    Cue.FIRST_PERSON: 0.25,
}
_VALUES = {
    ValueKind.EMAIL: 0.8,
    ValueKind.ID: 0.6,
    ValueKind.PHONE: 0.6,
    ValueKind.AMOUNT: 0.6,
    ValueKind.DATE: 0.6,
    ValueKind.TIME: 0.3,
    ValueKind.ERROR: 0.7,
    ValueKind.QUANTITY: 0.4,
    ValueKind.VERSION: 0.3,
    ValueKind.TITLE: 0.5,
    ValueKind.PATH: 0.3,
    ValueKind.URL: 0.2,
    ValueKind.CODE: 0.1,
    ValueKind.NUMBER: 0.2,
}
_MOST_FOR_VALUES = 1.4
_ASSISTANT = 0.35
_MUSING = ("think", "thought", "plan", "reflect", "todo")
_CHANGING = (
    "book", "update", "create", "delete", "cancel", "send", "edit", "write", "insert", "replace", "modify", "submit", "add",
    "remove", "set", "save", "apply", "install", "commit", "push", "pay", "refund", "transfer", "upgrade", "move", "reserve", "order", "schedule", "assign", "close",
)  # fmt: skip
"""Beginnings of words in the name of a tool that changes something."""


def base_weights(units: Sequence[Unit], *, is_person: bool) -> list[float]:
    """A weight of 0 or more for each of a turn's units. ``is_person``: a user, or an assistant with a name."""
    total = sum(unit.tokens for unit in units)
    said = 0
    weights = []
    for unit in units:
        weights.append(_weight(unit, is_person) * _place(said, total, is_person))
        said += unit.kind in ("prose", "item") and not unit.cues & Cue.FILLER
    return weights


def _place(said: int, total_tokens: int, is_person: bool) -> float:
    """The answer comes first; the more a turn says, the less each sentence of it weighs."""
    first = 1.0 if said == 0 else max(0.55, 0.9 - 0.05 * said)
    long = min(1.0, (150 / max(total_tokens, 1)) ** 0.25) if not is_person else 1.0
    return first * long


def _weight(unit: Unit, is_person: bool) -> float:
    if unit.kind == "call":
        return 1.6 if changes_something(unit.name) else 0.6 if not unit.name.lower().startswith(_MUSING) else 0.25
    if unit.kind == "result":
        return 0.8 if unit.is_error else 0.25
    if unit.kind == "image":
        return 0.5 if unit.tokens > 4 else 0.1
    return _statement(unit, is_person) * _form(unit)


def _form(unit: Unit) -> float:
    """By the kind of line."""
    if unit.kind == "code":
        return 0.05 if not unit.values else 0.5
    return {"heading": 0.15, "table": 0.3, "item": 0.8}.get(unit.kind, 1.0)


def _statement(unit: Unit, is_person: bool) -> float:
    cues = unit.cues
    strong = cues & (Cue.CONSTRAINT | Cue.CORRECTION | Cue.IDENTITY | Cue.UPDATE)
    if cues & Cue.FILLER and not (is_person and strong) and not unit.values:
        return 0.03
    values = min(_MOST_FOR_VALUES, sum(_VALUES[value.kind] for value in unit.values))
    if not is_person:
        outcome = 0.3 if cues & (Cue.OUTCOME | Cue.DECISION) else 0.0
        talk = 0.4 if cues & (Cue.QUESTION | Cue.NARRATION) else 1.0
        return (_ASSISTANT + 0.5 * values + outcome) * talk
    wording = sum(weight for cue, weight in _CUES.items() if cues & cue)
    return (1.0 + wording + values) * (_asks(cues) if cues & Cue.QUESTION else 1.0)


def _asks(cues: Cue) -> float:
    """A question that says something of the speaker is half a statement; any other only shows a topic."""
    return 0.7 if cues & Cue.FIRST_PERSON else 0.5


def changes_something(tool: str) -> bool:
    """Whether a tool's name says that it changes something."""
    words = tool.lower().replace("-", "_").split("_")
    return any(word.startswith(_CHANGING) for word in words)
