"""JSON bodies as checked values: read strictly, then converted, with the place of a fault as a path."""

import re
from typing import Any, TypeVar

import msgspec
from starlette.responses import Response

from prefold.conversation.strict_json import parse_json
from prefold.errors import InvalidInputError

T = TypeVar("T")

_AT = re.compile(r"^(.*?)(?: - at (?:`key` in )?`\$\.?([^`]*)`)?$", re.DOTALL)
_NAMED = re.compile(r"(?:unknown|missing required) field `([^`]*)`")
_encoder = msgspec.json.Encoder()


def read_object(raw: bytes, most_bytes: int) -> dict[str, Any]:
    """The JSON object of a body. Refuses (400) what is not strict JSON or no object."""
    value = parse_json(raw, max_bytes=most_bytes)
    if not isinstance(value, dict):
        raise InvalidInputError("the body must be a JSON object", code="malformed_body", field="body")
    return value


def convert(value: Any, kind: type[T]) -> T:
    """The value as ``kind``. Raises ``InvalidInputError`` naming the place, ``turns[2].content`` for instance."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        detail, field = _explain(str(error))
        raise InvalidInputError(detail, field=field) from error


def json_response(answer: msgspec.Struct, status: int = 200) -> Response:
    """An answer of a documented shape."""
    return raw_response(_encoder.encode(answer), status)


def raw_response(body: bytes, status: int = 200) -> Response:
    """An answer that is JSON bytes already."""
    return Response(body, status, media_type="application/json")


def stored_json(text: str) -> Any:
    """JSON that we stored, to be spliced into an answer byte for byte; ``None`` for nothing."""
    return msgspec.Raw(text.encode()) if text else None


def _explain(message: str) -> tuple[str, str]:
    found = _AT.match(message)
    assert found is not None
    detail, path = found.group(1), found.group(2) or ""
    named = _NAMED.search(detail)
    if named is not None:
        path = f"{path}.{named.group(1)}" if path else named.group(1)
    return detail, path or "body"
