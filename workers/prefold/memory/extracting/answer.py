"""A model's answer into rows, whatever came: fences, sentences around the JSON, half a list, other types, other names."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["AnswerRow", "Answered", "read_answer"]

MOST_CHARACTERS: Final = 400_000
"""Of an answer; what comes behind is not looked at."""
MOST_ROWS: Final = 200
MOST_OBJECT_CHARACTERS: Final = 240
_MOST_SCANNED: Final = 3 * MOST_CHARACTERS
"""Characters that attempts may read in vain."""
_DEEP: Final = 100_000
_OPENS: Final = re.compile(r"[\[{]")
_MOST_READ: Final = 2_000
_MOST_DEPTH: Final = 6
_LISTS: Final = ("facts", "rows", "memories", "items", "data", "results", "result", "entries", "output", "statements")
_NAMING: Final = ("name", "value", "text", "label", "object", "title", "id", "entity")
_TRUE: Final = frozenset({"true", "yes", "1"})
_SURENESS: Final = {
    "high": 0.9,
    "certain": 0.95,
    "very high": 0.95,
    "medium": 0.7,
    "moderate": 0.7,
    "low": 0.3,
    "uncertain": 0.2,
}
_DEFAULT_CONFIDENCE: Final = 0.7


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One row as the model meant it, nothing of it checked against what was said."""

    turn: int
    subject: str
    relation: str
    object: str
    category: Any
    confidence: float
    is_entity: bool
    is_single: bool
    retracts: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """What could be read of an answer."""

    rows: tuple[AnswerRow, ...]
    refused: Counter[str]
    """Rows that are none, by reason."""
    is_json: bool
    """There was a list or an object, even an empty one."""


def read_answer(text: str) -> Answered:
    """Never raises. Time is linear in the length of what is looked at."""
    refused: Counter[str] = Counter()
    found = list(_decoded(text[:MOST_CHARACTERS]))
    rows: list[AnswerRow] = []
    for item in _items(found, 0):
        if len(rows) >= MOST_ROWS:
            refused["too_many"] += 1
        elif not isinstance(item, dict):
            refused["no_object"] += 1
        else:
            rows.extend(_rows(item, refused))
    return Answered(tuple(rows[:MOST_ROWS]), refused, bool(found))


def _decoded(text: str) -> Iterator[Any]:
    """The first JSON value of ``text`` that is a list or an object; of one that breaks off, its whole objects."""
    decoder = json.JSONDecoder(parse_constant=lambda _: None, parse_int=_integer)
    at, left = _next(text, 0), _MOST_SCANNED
    while at >= 0 and left > 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            left -= getattr(error, "pos", at + _DEEP) - at + 1
            at = _next(text, at + 1)
            continue
        yield value
        if isinstance(value, dict) and any(name in value for name in _LISTS):
            return
        at = _next(text, end)


def _next(text: str, at: int) -> int:
    found = _OPENS.search(text, at)
    return found.start() if found else -1


def _integer(digits: str) -> int:
    return int(digits[:18])


def _items(node: object, depth: int) -> Iterator[object]:
    """Rows in lists of lists, and in the members that lists of rows are called by."""
    if isinstance(node, list):
        if depth >= _MOST_DEPTH:
            return
        for one in node:
            yield from _items(one, depth + 1)
    elif isinstance(node, dict) and (
        name := next((name for name in _LISTS if isinstance(node.get(name), list | dict)), "")
    ):
        yield from _items(node[name], depth + 1)
    else:
        yield node


def _rows(item: dict[str, Any], refused: Counter[str]) -> Iterator[AnswerRow]:
    turn = _turn(item)
    relation = _text(_first(item, "relation", "predicate", "property", "attribute", "key", "type"))
    named = _first(item, "object", "value", "entity", "target", "content")
    objects = [one for one in (_text(part) for part in (named if isinstance(named, list) else [named])) if one]
    for reason, is_wrong in (("no_turn", turn is None), ("no_relation", not relation), ("no_object", not objects)):
        if is_wrong:
            refused[reason] += 1
            return
    assert turn is not None
    for one in objects[:20]:
        if len(one) > MOST_OBJECT_CHARACTERS:
            refused["object_too_long"] += 1
            continue
        yield AnswerRow(
            turn=turn,
            subject=_text(item.get("subject")),
            relation=relation,
            object=one,
            category=item.get("category"),
            confidence=_confidence(item.get("confidence")),
            is_entity=_flag(item.get("is_entity"), isinstance(named, dict)),
            is_single=_flag(item.get("is_single"), False),
            retracts=_flag(item.get("retracts"), False),
        )


def _first(item: dict[str, Any], *names: str) -> object:
    return next((item[name] for name in names if item.get(name) not in (None, "", [], {})), None)


def _turn(item: dict[str, Any]) -> int | None:
    value = _first(item, "turn", "n", "seq", "turn_number", "turn_id", "source")
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        value = _first(value, "n", "turn", "seq", "number", "id")
    if isinstance(value, str):
        found = re.search(r"\d{1,15}", value[:60])
        return int(found.group()) if found else None
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value == int(value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str:
    """Words of a value: of an object its name."""
    if isinstance(value, dict):
        value = next((value[name] for name in _NAMING if isinstance(value.get(name), str | int | float)), None)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    if isinstance(value, float) and not math.isfinite(value):
        return ""
    said = str(value).encode("utf-8", "replace").decode()
    return " ".join("".join(mark if mark.isprintable() else " " for mark in said[:_MOST_READ]).split())


def _confidence(value: object) -> float:
    if isinstance(value, str):
        lowered = value.strip().lower()
        if lowered in _SURENESS:
            return _SURENESS[lowered]
        try:
            value = float(lowered.rstrip("%")) / (100 if lowered.endswith("%") else 1)
        except ValueError:
            return _DEFAULT_CONFIDENCE
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return _DEFAULT_CONFIDENCE
    return max(0.0, min(1.0, value / 100 if 1 < value <= 100 else float(value)))


def _flag(value: object, otherwise: bool) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in _TRUE
    return value if isinstance(value, bool) else otherwise
