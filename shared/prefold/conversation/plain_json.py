"""What we use of orjson, in the standard library's JSON: the same bytes for the same values.

Turns are told apart by the hash of their JSON, so a turn has the same bytes wherever it is published.
"""

import json
from typing import Any

OPT_SORT_KEYS = 1
JSONDecodeError = json.JSONDecodeError
_MOST_INTEGER = 2**64 - 1
_LEAST_INTEGER = -(2**63)
_quoted = json.encoder.encode_basestring
_SIMPLE: dict[object, str] = {None: "null", True: "true", False: "false"}


def dumps(value: Any, *, option: int = 0) -> bytes:
    """JSON in UTF-8. ``TypeError`` for what orjson refuses: a lone surrogate, an integer beyond 64 bits, another type."""
    try:
        return _text(value, bool(option & OPT_SORT_KEYS)).encode()
    except UnicodeEncodeError as error:
        raise TypeError("str is not valid UTF-8: surrogates not allowed") from error
    except RecursionError as error:
        raise TypeError("Recursion limit reached") from error


def loads(text: bytes | str) -> Any:
    """The value of a JSON text."""
    return json.loads(text)


def _text(value: Any, is_sorted: bool) -> str:
    kind = type(value)
    if kind is str:
        return _quoted(value)
    if kind is dict:
        members = sorted(value.items()) if is_sorted else value.items()
        return "{" + ",".join([f"{_key(name)}:{_text(member, is_sorted)}" for name, member in members]) + "}"
    if kind is list or kind is tuple:
        return "[" + ",".join([_text(one, is_sorted) for one in value]) + "]"
    if kind is int:
        if not _LEAST_INTEGER <= value <= _MOST_INTEGER:
            raise TypeError("Integer exceeds 64-bit range")
        return str(value)
    if kind is float:
        return _float(value)
    if value is None or kind is bool:
        return _SIMPLE[value]
    raise TypeError(f"Type is not JSON serializable: {kind.__name__}")


def _key(name: object) -> str:
    if type(name) is not str:
        raise TypeError("Dict key must be str")
    return _quoted(name)


def _float(value: float) -> str:
    """Shortest digits that give the number back; ``null`` for what is no number."""
    text = repr(value)
    digits, _, exponent = text.partition("e-")
    if exponent == "05":  # Python's is the longer notation only from the next power on
        sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
        return f"{sign}0.0000{digits.replace('.', '')}"
    if exponent:
        return f"{digits}e-{int(exponent)}"
    return "null" if text in ("nan", "inf", "-inf") else text
