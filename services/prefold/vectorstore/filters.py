"""Qdrant's filters, from JSON to qdrant-edge."""

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, TypeVar

import orjson
import qdrant_edge as edge

from prefold.vectorstore.fields import MAX_DEPTH, Fields, array, number
from prefold.vectorstore.identifiers import payload_path, point_ids
from prefold.vectorstore.rejections import RejectedError, malformed, unsupported

T = TypeVar("T")

Condition = Any
"""One of qdrant-edge's condition classes; they share no base."""


_REMEMBERED_BYTES: Final = 512


def remembered(parse: Callable[[object, str], T]) -> Callable[[object, str], T]:
    """``parse`` of small JSON, done once for all that is written alike: the searches of a tenant say much the same."""

    @lru_cache(maxsize=1024)
    def read(written: bytes) -> T:
        return parse(orjson.loads(written), "")

    def reading(value: object, path: str) -> T:
        with suppress(RejectedError, orjson.JSONEncodeError):  # it is read again, to say where
            written = orjson.dumps(value)
            if len(written) <= _REMEMBERED_BYTES:
                return read(written)
        return parse(value, path)

    return reading


def optional_filter(value: object, path: str) -> edge.Filter | None:
    """A filter, or None where there is none."""
    return None if value is None else whole_filter(value, path)


@remembered
def whole_filter(value: object, path: str) -> edge.Filter:
    """A filter."""
    return parse_filter(value, path)


def parse_filter(value: object, path: str, depth: int = 0) -> edge.Filter:
    """A filter object with ``must``, ``should``, ``must_not``, ``min_should``."""
    if depth > MAX_DEPTH:
        raise malformed("filter", f"nested deeper than {MAX_DEPTH}")
    fields = Fields(value, path)
    parsed = edge.Filter(
        must=_conditions(fields, "must", depth),
        should=_conditions(fields, "should", depth),
        must_not=_conditions(fields, "must_not", depth),
        min_should=_min_should(fields, depth),
    )
    fields.done()
    return parsed


def _conditions(fields: Fields, name: str, depth: int) -> list[Condition] | None:
    value = fields.take(name)
    if value is None:
        return None
    items = value if isinstance(value, list) else [value]
    return [_condition(item, f"{fields.at(name)}[{index}]", depth) for index, item in enumerate(items)]


def _min_should(fields: Fields, depth: int) -> edge.MinShould | None:
    value = fields.take("min_should")
    if value is None:
        return None
    inner = Fields(value, fields.at("min_should"))
    conditions = _conditions(inner, "conditions", depth)
    count = inner.integer("min_count", None, 0, 1_000_000)
    inner.done()
    if conditions is None:
        raise malformed(inner.at("conditions"), "expected an array")
    return edge.MinShould(conditions, count)


def _condition(value: object, path: str, depth: int) -> Condition:
    fields = Fields(value, path)
    if "key" in fields:
        return _field_condition(fields)
    if "has_id" in fields:
        condition: Condition = edge.HasIdCondition(set(point_ids(fields.take("has_id"), fields.at("has_id"))))
    elif "is_empty" in fields:
        condition = edge.IsEmptyCondition(_payload_key(fields, "is_empty"))
    elif "is_null" in fields:
        condition = edge.IsNullCondition(_payload_key(fields, "is_null"))
    else:
        return parse_filter(value, path, depth + 1)
    fields.done()
    return condition


def _payload_key(fields: Fields, name: str) -> str:
    inner = Fields(fields.take(name), fields.at(name))
    key = payload_path(inner.take("key"), inner.at("key"))
    inner.done()
    return key


def _field_condition(fields: Fields) -> edge.FieldCondition:
    key = payload_path(fields.take("key"), fields.at("key"))
    match = fields.take("match")
    bounds = fields.take("range")
    fields.done()
    if (match is None) == (bounds is None):
        raise malformed(fields.path, "expected either match or range")
    if match is not None:
        return edge.FieldCondition(key, match=_match(match, fields.at("match")))
    return edge.FieldCondition(key, range=_range(bounds, fields.at("range")))


def _match(value: object, path: str) -> Any:
    fields = Fields(value, path)
    if "value" in fields:
        wanted = fields.take("value")
        if not isinstance(wanted, str | int | bool):
            raise malformed(fields.at("value"), "expected a string, an integer or a boolean")
        match: Any = edge.MatchValue(wanted)
    elif "any" in fields:
        match = edge.MatchAny(_values(fields.take("any"), fields.at("any")))
    elif "except" in fields:
        match = edge.MatchExcept(_values(fields.take("except"), fields.at("except")))
    else:
        raise unsupported(path, "this kind of match")
    fields.done()
    return match


def _values(value: object, path: str) -> list[str] | list[int]:
    items = array(value, path)
    strings = [item for item in items if isinstance(item, str)]
    if len(strings) == len(items):
        return strings
    integers = [item for item in items if isinstance(item, int) and not isinstance(item, bool)]
    if len(integers) == len(items):
        return integers
    raise malformed(path, "expected only strings or only integers")


def _range(value: object, path: str) -> edge.RangeFloat | edge.RangeDateTime:
    fields = Fields(value, path)
    given = {name: bound for name in ("gt", "gte", "lt", "lte") if (bound := fields.take(name)) is not None}
    fields.done()
    dates = {name: bound for name, bound in given.items() if isinstance(bound, str)}
    if not dates:
        return edge.RangeFloat(**{name: number(bound, fields.at(name)) for name, bound in given.items()})
    if len(dates) != len(given):
        raise malformed(path, "expected only numbers or only dates")
    try:
        return edge.RangeDateTime(**dates)
    except ValueError as error:
        raise malformed(path, str(error)) from error
