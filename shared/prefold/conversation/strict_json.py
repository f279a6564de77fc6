"""Request bodies as values that can be stored: one reading, no surprises, bounded time."""

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

from prefold.errors import InvalidInputError, TooLargeError

_read_fast: Callable[[bytes], Any] | None
try:
    from orjson import loads as _read_fast
except ImportError:  # a backend that has the base dependencies only
    _read_fast = None

MAX_DEPTH = 64
"""Containers inside containers. No message format comes near it."""

MAX_BYTES = 8 * 1024 * 1024

_UNSTORABLE = re.compile("[\ud800-\udfff\x00]")
_MAY_BE_UNSTORABLE = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")
"""Only escapes bring such characters in: UTF-8 has no surrogates, and JSON no raw control characters."""

_QUOTED_CHARS = 60
_SURE_DIGITS = 308
"""An integer of so many digits is within a double; what is not, many readers of JSON refuse."""


def parse_json(body: bytes, *, max_bytes: int = MAX_BYTES) -> Any:
    """The value of a JSON text in UTF-8.

    Refused: text that is not UTF-8, a duplicate key, ``NaN`` and ``Infinity``, a number beyond a double, more than
    64 levels, and anything that is not JSON. Lone surrogates and NUL in strings and keys come back as U+FFFD. Integers keep
    all their digits. Raises ``InvalidInputError`` (code ``invalid_json``; the offset is in ``detail``, the key, where
    one is at fault, in ``field``), and ``TooLargeError`` above ``max_bytes``.
    """
    if len(body) > max_bytes:
        raise TooLargeError(f"the body has {len(body):,} bytes; the limit is {max_bytes:,}", field="body")
    flat = _flat_object(body)
    if flat is not None:
        return flat
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise _invalid(f"not UTF-8 at byte {error.start}") from error
    return parse_json_text(text)


def _flat_object(body: bytes) -> dict[str, Any] | None:
    """The object of strings that most bodies are, read several times faster; None: something else, or not as surely.

    The quotes are counted: a key that stands twice leaves more of them than the object that was read has strings.
    """
    has_escapes = b"\\" in body
    if _read_fast is None or (has_escapes and (b"\\\\" in body or b"\\u0000" in body)):
        return None
    try:
        value = _read_fast(body)
    except ValueError:  # the slower reader says what is wrong, or takes it
        return None
    if type(value) is not dict:
        return None
    for member in value.values():
        if type(member) is not str:
            return None
    quotes = body.count(b'"') - (body.count(b'\\"') if has_escapes else 0)
    return value if quotes == 4 * len(value) else None


def parse_json_text(text: str) -> Any:
    """The same for text that is decoded already."""
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _invalid(f"not JSON at character {error.pos}: {error.msg}") from error
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:  # int() refuses more than 4,300 digits
        raise _invalid("a number has too many digits") from error
    if text.count("{") + text.count("[") > MAX_DEPTH:
        _check_depth(value)
    if _MAY_BE_UNSTORABLE.search(text):
        value = storable(value)
    return value


def is_storable(text: str) -> bool:
    """True for a string that ``storable`` leaves as it is."""
    return "\x00" not in text if text.isascii() else _UNSTORABLE.search(text) is None


def storable(value: Any) -> Any:
    """The value with lone surrogates and NUL replaced by U+FFFD in every string and key.

    Raises ``InvalidInputError`` when two keys of one object become the same.
    """
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return _object([(storable(key), storable(member)) for key, member in value.items()])
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _duplicate(pairs)
    return members


def _duplicate(pairs: list[tuple[str, Any]]) -> InvalidInputError:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            shown = _UNSTORABLE.sub("\ufffd", key[:_QUOTED_CHARS])
            return InvalidInputError(f"key {shown!r} stands twice in one object", code="invalid_json", field=shown)
        seen.add(key)
    raise AssertionError("no key is doubled")


def _constant(name: str) -> NoReturn:
    raise _invalid(f"{name} is not a JSON number")


def _double(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _invalid(f"number {digits[:_QUOTED_CHARS]} is out of range")
    return value


def _integer(digits: str) -> int:
    value = int(digits)
    if len(digits) > _SURE_DIGITS:
        try:
            float(value)
        except OverflowError:
            raise _invalid(f"number {digits[:_QUOTED_CHARS]}… is out of range") from None
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for container in level for child in _children(container) if isinstance(child, dict | list)]
        if not level:
            return
    raise _too_deep()


def _children(container: Any) -> Any:
    return container.values() if isinstance(container, dict) else container


def _too_deep() -> InvalidInputError:
    return _invalid(f"more than {MAX_DEPTH} levels deep")


def _invalid(detail: str) -> InvalidInputError:
    return InvalidInputError(detail, code="invalid_json", field="body")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_float=_double, parse_int=_integer
)
