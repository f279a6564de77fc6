"""Values as JSON bytes: compact, UTF-8, nothing escaped that need not be."""

import json
from typing import TYPE_CHECKING, Any

from prefold.errors import InvalidInputError

if TYPE_CHECKING:
    import orjson
else:
    try:
        import orjson
    except ImportError:  # a backend that has the base dependencies only
        from prefold.conversation import plain_json as orjson

__all__ = ["encode", "encode_canonically", "orjson"]


def encode(value: Any) -> bytes:
    """JSON bytes of a value that ``strict_json`` gave, keys in their order.

    Raises ``InvalidInputError`` on what cannot be stored (a lone surrogate, a type that JSON has not).
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        return _encode_slowly(value, sort_keys=False)


def encode_canonically(value: Any) -> bytes:
    """The same with sorted keys: equal values give equal bytes."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return _encode_slowly(value, sort_keys=True)


def _encode_slowly(value: Any, *, sort_keys: bool) -> bytes:
    # orjson has no integers beyond 64 bits.
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"cannot be stored as JSON: {error}", code="invalid_json") from error
