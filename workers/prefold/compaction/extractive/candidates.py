"""What a conversation offers to a summary: its sentences, and its tool calls with what came back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prefold.compaction.extractive.ranking import Pool
from prefold.compaction.extractive.weighing import changes_something
from prefold.compaction.gate.injection import Order, gives_orders, order_of
from prefold.compaction.ledger.collect import Ledger, is_person
from prefold.compaction.reading.cue import Cue
from prefold.compaction.reading.turns import TurnReading, fold, terms_of
from prefold.compaction.reading.units import Unit

LINE_TOKENS = 6
"""About what the start of a line, ``[12 user]``, costs."""
_DATE_TOKENS = 3
"""What dates add to it on average: a date costs 7, and stands where it changes."""
_NOTE_TOKENS = 9
_BRIEF = 80
_RECENT_SHARE = 0.12
_MOST_REPEATS = 99


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that may be quoted."""

    reading: TurnReading
    unit: Unit
    text: str
    tokens: int
    repeats: int
    """How often the same words were said in all."""
    result: Unit | None = None
    """Of a call: what came back."""
    outdated: tuple[tuple[str, int], ...] = ()
    """Values in it that a later turn, of this seq, has replaced."""


def candidates_of(
    readings: Sequence[TurnReading], ledger: Ledger, carried: Sequence[str] = ()
) -> tuple[list[Candidate], Pool]:
    """All that may be quoted, in order, and its figures.

    Repeated words are offered once, a person's words that stand in ``carried`` not at all.
    """
    elsewhere = fold("\n".join(carried))
    results = {unit.call_id: (reading, unit) for reading in readings for unit in reading.units if unit.kind == "result"}
    found: dict[str, int] = {}
    kept: list[Candidate] = []
    weights: list[float] = []
    terms: list[NDArray[np.uint32]] = []
    for reading, index, unit in _offered(readings, ledger, elsewhere):
        key = unit.text.lower()
        if unit.kind != "call" and key in found:
            first = kept[found[key]]
            kept[found[key]] = _again(first)
            continue
        candidate, own = _candidate(reading, index, unit, results)
        if outdated := ledger.outdated_values(reading.seq, unit):
            tokens = candidate.tokens + _NOTE_TOKENS * len(outdated)
            candidate = replace(candidate, outdated=outdated, tokens=tokens)
        found[key] = len(kept)
        kept.append(candidate)
        weights.append(float(reading.weights[index]))
        terms.append(own)
    return kept, _pool(kept, weights, terms)


def _offered(
    readings: Sequence[TurnReading], ledger: Ledger, elsewhere: str
) -> Iterator[tuple[TurnReading, int, Unit]]:
    for reading in readings:
        if reading.role == "system":
            continue
        by_person = is_person(reading)
        for index, unit in enumerate(reading.units):
            known = by_person and bool(elsewhere) and unit.text in elsewhere
            if unit.kind == "result" or known or ledger.is_outdated(reading.seq, unit):
                continue
            if not _steers(unit):
                yield reading, index, unit


def _steers(unit: Unit) -> bool:
    """Whether nobody in the conversation says it, and it wants to steer who reads it: not even quoted then."""
    if unit.quoted:
        return order_of(unit.text) is Order.OVERRIDE
    return unit.kind in ("call", "image") and gives_orders(f"{unit.name} {unit.text}")


def _again(candidate: Candidate) -> Candidate:
    return replace(candidate, repeats=min(_MOST_REPEATS, candidate.repeats + 1))


def _candidate(
    reading: TurnReading, index: int, unit: Unit, results: dict[str, tuple[TurnReading, Unit]]
) -> tuple[Candidate, NDArray[np.uint32]]:
    own = reading.terms[reading.bounds[index] : reading.bounds[index + 1]]
    if unit.kind != "call":
        return Candidate(reading, unit, unit.text, unit.tokens, 1), own
    result = results.get(unit.call_id, (reading, None))[1]
    came_back = _outcome(unit, result)
    text = f"{unit.name}({unit.text}){came_back}"
    tokens = unit.tokens + len(came_back) // 3 + 6
    words = np.array(terms_of(text), dtype=np.uint32)
    return Candidate(reading, unit, text, tokens, 1, result), words


def _outcome(call: Unit, result: Unit | None) -> str:
    """What came back, as short as it can be: a change that went well needs no more than that."""
    if result is None:
        return " → (no result)"
    if gives_orders(result.text):
        return " → (orders, left out)"
    if result.is_error:
        return f" → ERROR: {result.text}"
    if changes_something(call.name) and len(result.text) > _BRIEF:
        return " → ok"
    news = result.text.removeprefix(call.text).lstrip(", ") if call.text else result.text
    return f" → {news or '(empty)'}"


def _pool(kept: list[Candidate], weights: list[float], terms: list[NDArray[np.uint32]]) -> Pool:
    bounds = np.zeros(len(kept) + 1, dtype=np.int64)
    np.cumsum([len(one) for one in terms], out=bounds[1:])
    base = np.array(weights, dtype=np.float64) * _place(kept)
    for index, candidate in enumerate(kept):
        if candidate.result is not None and candidate.result.is_error:
            base[index] = max(base[index], 0.9)
    line_tokens = LINE_TOKENS + _DATE_TOKENS * any(candidate.reading.date for candidate in kept)
    costs = np.array([candidate.tokens + line_tokens for candidate in kept], dtype=np.float64)
    flat = np.concatenate(terms) if terms else np.zeros(0, dtype=np.uint32)
    groups = np.array([candidate.reading.seq for candidate in kept], dtype=np.int64)
    return Pool(flat, bounds, base, costs, groups, float(line_tokens))


def _place(kept: list[Candidate]) -> NDArray[np.float64]:
    """The end of the conversation, where work was left, weighs more; its beginning a little."""
    place = np.linspace(0.0, 1.0, num=len(kept)) if len(kept) > 1 else np.ones(len(kept))
    late = np.where(place > 1 - _RECENT_SHARE, 1.3, 1.0)
    return np.asarray(np.where(place < 0.05, 1.15, late), dtype=np.float64)


def is_binding(candidate: Candidate, *, by_person: bool) -> bool:
    """Whether it goes under constraints and corrections."""
    strong = Cue.CONSTRAINT | Cue.CORRECTION | Cue.CONDITION | Cue.PREFERENCE
    unit = candidate.unit
    return by_person and not unit.quoted and bool(unit.cues & strong) and not unit.cues & Cue.QUESTION
