"""Which rows hold: a pure function of what was said, in whatever order it was learnt."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from math import log2
from typing import Final

from prefold.facts.categories import TRAITS
from prefold.facts.evidence import FADED_CONFIDENCE, MOST_MS, Evidence, Row, rank_of
from prefold.facts.known_relations import LASTING
from prefold.facts.names import USER
from prefold.facts.relations import known
from prefold.facts.rows import Fact, Source
from prefold.storage.limits import milliseconds

__all__ = ["faded_at_ms", "is_live", "now_confidence", "settled"]

_EACH_MORE: Final = 0.8
"""Another turn that says the same leaves so much of the doubt."""
_MOST_SOURCES: Final = 16

Order = tuple[object, ...]
_Turn = tuple[str, str, int]
"""Session, life and number."""
_Slot = list[tuple[Row, "_Same"]]


@dataclass(frozen=True, slots=True)
class _End:
    """What may end a row."""

    order: Order
    by: str
    """Id of the row that takes its place; empty: none does."""
    at_ms: int


@dataclass(slots=True)
class _Same:
    """Rows of one subject and relation."""

    is_single: bool
    denials: list[tuple[Row, Evidence]]
    """Retractions of whatever the object was."""


def settled(rows: Iterable[Row]) -> dict[str, Fact]:
    """Facts by id. Newest wins by key; what it replaced is superseded; a row that only ever was denied is none.

    Of turns of one session the later one is the newer, whatever their dates say: see ``_in_turn``.
    """
    by_id = {row.id: row for row in rows}
    facts: dict[str, Fact] = {}
    for found in _slots(by_id.values()):
        if _is_uncontested(found):
            row, same = found[0]
            facts[row.id] = _fact(row, None, same.is_single)
            continue
        slot = _in_turn(found)
        turns = sorted((_told(row, one) for row, _ in slot for one in row.asserted()), key=lambda end: end.order)
        told = turns, [end.order for end in turns]
        ends = {id(same): [_told(other, one, "") for other, one in same.denials] for same in _relations(slot)}
        for row, same in slot:
            if row.asserted():
                facts[row.id] = _fact(row, _end(row, ends[id(same)], told, by_id), same.is_single)
    return facts


def _slots(rows: Iterable[Row]) -> Iterable[_Slot]:
    """Rows that exclude each other: all of a relation with one object, else a relation and its opposite."""
    named: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        named[row.key.subject, row.key.relation].append(row)
    slots: dict[tuple[str, ...], list[tuple[Row, _Same]]] = defaultdict(list)
    for rows_of_it in named.values():
        denials = [(row, one) for row in rows_of_it if not row.key.object for one in row.retracted()]
        same = _Same(_is_single(rows_of_it), denials)
        for row in rows_of_it:
            slots[row.key.slot(same.is_single)].append((row, same))
    return slots.values()


def _in_turn(slot: _Slot) -> _Slot:
    """The slot with no turn said later than a turn of its session after it; the same one where that is so anyway.

    A date in the future, which counts as the time of learning, or a turn without a date, which has the time of its
    page, would else be newer than what was said after it. Such a time is the latest possible one, so it is lowered.
    """
    relations = _relations(slot)
    told = [one for row, _ in slot for one in row.evidence]
    told += [one for same in relations for _, one in same.denials]
    times = _latest_times(told)
    if all(_time(one, times) == one.said_at_ms for one in told):
        return slot
    moved = {id(same): _Same(same.is_single, _all_at(same.denials, times)) for same in relations}
    return [(_at(row, times), moved[id(same)]) for row, same in slot]


def _relations(slot: _Slot) -> list[_Same]:
    """One or two: most rows of a slot are of one relation."""
    return list({id(same): same for _, same in slot}.values())


def _latest_times(told: Iterable[Evidence]) -> dict[_Turn, int]:
    """Of each turn its own time or that of the earliest after it in its session, ms of the wall clock."""
    times: dict[_Turn, int] = {}
    for one in told:
        if (turn := _turn(one)) is not None:
            times[turn] = min(one.said_at_ms, times.get(turn, one.said_at_ms))
    after: dict[tuple[str, str], int] = {}
    for session, incarnation, seq in sorted(times, reverse=True):
        latest = min(times[session, incarnation, seq], after.get((session, incarnation), MOST_MS))
        times[session, incarnation, seq] = after[session, incarnation] = latest
    return times


def _turn(one: Evidence) -> _Turn | None:
    """None: a backend's word, which names a turn to show that it is so, not since when."""
    if one.source is None or one.origin == "backend":
        return None
    return (one.source.session, one.source.incarnation, one.source.seq)


def _time(one: Evidence, times: Mapping[_Turn, int]) -> int:
    turn = _turn(one)
    return one.said_at_ms if turn is None else times[turn]


def _at(row: Row, times: Mapping[_Turn, int]) -> Row:
    evidence = [replace(one, said_at_ms=_time(one, times)) for one in row.evidence]
    return replace(row, evidence=tuple(sorted(evidence, key=Evidence.order)))


def _all_at(denials: Sequence[tuple[Row, Evidence]], times: Mapping[_Turn, int]) -> list[tuple[Row, Evidence]]:
    return [(row, replace(one, said_at_ms=_time(one, times))) for row, one in denials]


def _is_uncontested(slot: Sequence[tuple[Row, _Same]]) -> bool:
    """Most rows: nothing else was ever said about it."""
    row, same = slot[0]
    return len(slot) == 1 and not same.denials and not any(one.retracts for one in row.evidence)


def _is_single(same: Sequence[Row]) -> bool:
    relation = known(same[0].key.relation)
    if relation is not None:
        return relation.is_single
    return not any(one.is_single is False for row in same for one in row.evidence)


def _end(
    row: Row, denials: Sequence[_End], told: tuple[Sequence[_End], Sequence[Order]], by_id: Mapping[str, Row]
) -> _End | None:
    """What ended a row after it was said last; None: it holds."""
    turns, orders = told
    last = _told(row, row.asserted()[-1]).order
    ends = [_told(row, one, one.by or "") for one in row.retracted() if one.by is None or one.by in by_id]
    ends += denials
    ends += turns[bisect_right(orders, last) :][:1]  # all of this row's are before it
    later = [end for end in ends if end.order > last]
    return min(later, key=lambda end: (end.order, end.by)) if later else None


def _told(row: Row, one: Evidence, by: str | None = None) -> _End:
    order = (*one.order(), row.key.relation, row.key.object)
    return _End(order, row.id if by is None else by, one.said_at_ms)


def _fact(row: Row, end: _End | None, is_single: bool) -> Fact:
    asserted = row.asserted()
    shown = max(asserted, key=_describing) if len(asserted) > 1 else asserted[0]
    newest = asserted[-1]
    return Fact(
        id=row.id,
        subject=USER if row.key.subject == USER else shown.subject,
        relation=row.key.relation,
        object=shown.object,
        category=shown.category,
        confidence=_confidence(shown, asserted),
        sources=_sources(asserted),
        origin=shown.origin,
        said=newest.said or shown.said,
        is_entity=shown.is_entity,
        is_single=is_single,
        first_seen_ms=asserted[0].said_at_ms,
        last_confirmed_ms=newest.said_at_ms,
        expires_at_ms=_expiry(shown, newest),
        superseded_by=(end.by or row.id) if end else None,
        superseded_at_ms=end.at_ms if end else None,
    )


def _describing(one: Evidence) -> Order:
    return (rank_of(one.origin), one.order())


def _sources(asserted: Sequence[Evidence]) -> tuple[Source, ...]:
    newest_first = dict.fromkeys(one.source for one in reversed(asserted) if one.source is not None)
    return tuple(reversed(list(newest_first)[:_MOST_SOURCES]))


def _confidence(shown: Evidence, asserted: Sequence[Evidence]) -> float:
    """The backend's own figure; else that of the best turn, with less doubt for each other turn."""
    if shown.origin == "backend":
        return shown.confidence
    best = max(one.confidence for one in asserted)
    return round(1 - (1 - best) * _EACH_MORE ** (len(asserted) - 1), 4)


def _expiry(shown: Evidence, newest: Evidence) -> int | None:
    """The time that was given, unless it was said again after it; else the category's life from when it was said last."""
    if shown.expires_at_ms is not None and shown.expires_at_ms > newest.said_at_ms:
        return shown.expires_at_ms
    if shown.expires_at_ms is not None and shown is newest:
        return shown.expires_at_ms
    life = TRAITS[shown.category].life
    return newest.said_at_ms + milliseconds(life) if life is not None else None


def is_live(fact: Fact, now_ms: int) -> bool:
    """Whether it is served: nothing took its place, and its time has not come."""
    return fact.superseded_by is None and (fact.expires_at_ms is None or fact.expires_at_ms > now_ms)


def _half_life(fact: Fact) -> timedelta | None:
    return None if fact.relation in LASTING else TRAITS[fact.category].half_life


def now_confidence(fact: Fact, now_ms: int) -> float:
    """Confidence as it has decayed by its category's half-life since it was said last; ``LASTING`` ones do not."""
    half_life = _half_life(fact)
    if half_life is None:
        return fact.confidence
    age = max(0, now_ms - fact.last_confirmed_ms) / milliseconds(half_life)
    return float(fact.confidence * 0.5**age)


def faded_at_ms(fact: Fact) -> int | None:
    """From when on ``now_confidence`` is below ``FADED_CONFIDENCE``; None: never."""
    half_life = _half_life(fact)
    if fact.confidence < FADED_CONFIDENCE:
        return 0
    if half_life is None:
        return None
    return fact.last_confirmed_ms + int(milliseconds(half_life) * log2(fact.confidence / FADED_CONFIDENCE)) + 1
