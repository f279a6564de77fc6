"""JSON values as checked records: msgspec, or our own stand-in where only the base dependencies are installed."""

import re
from typing import TYPE_CHECKING, Any, TypeVar

from prefold.errors import InvalidInputError

if TYPE_CHECKING:
    import msgspec
else:
    try:
        import msgspec
    except ImportError:
        from prefold.conversation import plain_structs as msgspec

__all__ = ["convert", "msgspec"]

T = TypeVar("T")

_AT = re.compile(r"^(.*?)(?: - at (?:`key` in )?`\$\.?([^`]*)`)?$", re.DOTALL)
_NAMED = re.compile(r"(?:unknown|missing required) field `([^`]*)`")


def convert(value: Any, kind: type[T]) -> T:
    """The value as ``kind``. Raises ``InvalidInputError`` naming the place, ``turns[2].content`` for instance."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        detail, field = _explain(str(error))
        raise InvalidInputError(detail, field=field) from error


def _explain(message: str) -> tuple[str, str]:
    found = _AT.match(message)
    assert found is not None
    detail, path = found.group(1), found.group(2) or ""
    named = _NAMED.search(detail)
    if named is not None:
        path = f"{path}.{named.group(1)}" if path else named.group(1)
    return detail, path or "body"
