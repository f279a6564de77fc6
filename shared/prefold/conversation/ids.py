"""Names and ids that come from outside, checked before they become part of a key or of a context."""

import hashlib
import re

from prefold.errors import InvalidInputError

MAX_TURN_ID_BYTES = 256
MAX_CALL_ID_BYTES = 1024

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+=|~-]{0,127}")
_PROVIDER_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_FOR_TOOL_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_TOOL_NAME_CHARS = 128
_SHOWN_CHARS = 40


def check_name(value: object, field: str) -> str:
    """The name of a session, user or tenant, unchanged.

    1 to 128 of the ASCII letters, digits and ``._@+=|~-``, the first a letter or digit: no separator of keys, paths or
    patterns, and no two names that look alike. Raises ``InvalidInputError`` (code ``invalid_name``).
    """
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise InvalidInputError(
        f"{_shown(value)} is not a name: 1 to 128 of A-Z a-z 0-9 . _ @ + = | ~ -, beginning with a letter or digit",
        code="invalid_name",
        field=field,
    )


def check_turn_id(value: object, field: str) -> str:
    """A producer's id of a turn, exactly as given: two spellings of one character are two ids.

    1 to 256 bytes of printable Unicode. Raises ``InvalidInputError`` (code ``invalid_id``).
    """
    if not isinstance(value, str):
        raise InvalidInputError("an id is a string", code="invalid_id", field=field)
    # U+FFFD stands for characters that could not be kept: two such ids could be one afterwards.
    is_kept = value.isprintable() and "\ufffd" not in value
    if not value.strip() or not is_kept or len(value.encode()) > MAX_TURN_ID_BYTES:
        raise InvalidInputError(
            f"{_shown(value)} is not an id: 1 to {MAX_TURN_ID_BYTES} bytes of printable characters",
            code="invalid_id",
            field=field,
        )
    return value


def check_call_id(value: object, field: str) -> str:
    """The id of a tool call as it stands in the context.

    Kept when every provider takes it (``[A-Za-z0-9_-]{1,64}``), else ``call_`` and 24 hex digits of its hash: the same
    for the call and its result. Raises ``InvalidInputError`` on what is no id at all.
    """
    if not isinstance(value, str) or not value or len(value.encode()) > MAX_CALL_ID_BYTES:
        raise InvalidInputError(f"a call id is a string of 1 to {MAX_CALL_ID_BYTES} bytes", field=field)
    if _PROVIDER_CALL_ID.fullmatch(value):
        return value
    return "call_" + hashlib.sha256(value.encode()).hexdigest()[:24]


def check_tool_name(value: object, field: str) -> str:
    """The name of a tool as it stands in the context: what no provider takes becomes ``_``, cut at 128 characters."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidInputError("the name of a tool is a non-empty string", field=field)
    return _NOT_FOR_TOOL_NAMES.sub("_", value)[:_TOOL_NAME_CHARS]


def _shown(value: object) -> str:
    if not isinstance(value, str):
        return f"a {type(value).__name__}"
    return ascii(value) if len(value) <= _SHOWN_CHARS else f"{value[:_SHOWN_CHARS]!a}… ({len(value)} characters)"
