"""Every refusal as a problem document (RFC 9457): ``type``, ``title``, ``status``, ``detail``, ``code``, ``field``.

``code`` is stable and part of the API. ``field`` is a path into the body, or the name of a query parameter,
a header or a path segment. Details never carry conversation text.
"""

import math
from collections.abc import Mapping
from http import HTTPStatus

import orjson
from starlette.responses import Response

from prefold.errors import (
    NO_MEMBERS,
    ConflictError,
    GoneError,
    InvalidInputError,
    NotFoundError,
    OverloadedError,
    PrefoldError,
    TooLargeError,
    TransientError,
    UnauthenticatedError,
    UnavailableError,
)

PROBLEM_TYPE = "application/problem+json"
DEFAULT_RETRY_SECONDS = 1
_DETAIL_CHARS = 500

_STATUS: tuple[tuple[type[PrefoldError], int], ...] = (
    (UnauthenticatedError, 401),
    (NotFoundError, 404),
    (ConflictError, 409),
    (GoneError, 410),
    (TooLargeError, 413),
    (InvalidInputError, 422),
    (OverloadedError, 429),
    (UnavailableError, 503),
    (TransientError, 503),
)

MALFORMED_CODES = frozenset({"invalid_json", "malformed_body"})
"""Input that cannot even be read as what it claims to be: 400. What can be read and is refused: 422."""


class HttpRefusalError(PrefoldError):
    """A refusal that only HTTP knows: method, media type, host, a route that does not exist."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail, code=code, field=field)
        self.status = status
        self.headers = dict(headers or {})


def status_of(error: PrefoldError) -> int:
    """HTTP status of an error; 500 for one that has no business at the door."""
    if isinstance(error, HttpRefusalError):
        return error.status
    if isinstance(error, InvalidInputError) and error.code in MALFORMED_CODES:
        return 400
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def problem_response(error: PrefoldError) -> Response:
    """The problem document of an error, with the headers that its status asks for."""
    status = status_of(error)
    if status == 500:
        return internal_problem()
    headers = dict(error.headers) if isinstance(error, HttpRefusalError) else {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="prefold"'
    if isinstance(error, TransientError):
        headers["Retry-After"] = str(_retry_seconds(error))
    return _document(status, error.code, error.detail, error.field, headers, error.members)


def internal_problem() -> Response:
    """What a caller sees of a fault of ours: that there was one."""
    return _document(500, "internal", "The server failed to answer; the failure is logged.", None, {})


def _retry_seconds(error: TransientError) -> int:
    if error.retry_after is None:
        return DEFAULT_RETRY_SECONDS
    return max(1, math.ceil(error.retry_after.total_seconds()))


def _document(
    status: int,
    code: str,
    detail: str,
    field: str | None,
    headers: Mapping[str, str],
    members: Mapping[str, object] = NO_MEMBERS,
) -> Response:
    body: dict[str, object] = {
        **members,
        "type": f"urn:prefold:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail[:_DETAIL_CHARS],
        "code": code,
    }
    if field is not None:
        body["field"] = field
    return Response(orjson.dumps(body), status, headers, PROBLEM_TYPE)
