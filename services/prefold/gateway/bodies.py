"""JSON values as checked ones, with the place of a fault as a path; answers as JSON."""

from typing import Any

import msgspec
from starlette.responses import Response

from prefold.conversation.shapes import convert

__all__ = ["convert", "json_response", "raw_response", "stored_json"]

_encoder = msgspec.json.Encoder()


def json_response(answer: msgspec.Struct, status: int = 200) -> Response:
    """An answer of a documented shape."""
    return raw_response(_encoder.encode(answer), status)


def raw_response(body: bytes, status: int = 200) -> Response:
    """An answer that is JSON bytes already."""
    return Response(body, status, media_type="application/json")


def stored_json(text: str) -> Any:
    """JSON that we stored, to be spliced into an answer byte for byte; ``None`` for nothing."""
    return msgspec.Raw(text.encode()) if text else None
