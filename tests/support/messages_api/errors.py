"""What the API answers instead of a message."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class ApiError(Exception):
    """One error answer: its status, type and text, and what the client may branch on."""

    status: int
    kind: str
    message: str
    error_code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def body(self, request_id: str) -> dict[str, Any]:
        """The envelope, which names the request as the header does."""
        error: dict[str, Any] = {"type": self.kind, "message": self.message}
        if self.error_code is not None:
            error["details"] = {"error_code": self.error_code}
        return {"type": "error", "error": error, "request_id": request_id}


def invalid(message: str, error_code: str | None = None) -> ApiError:
    """400: the request is wrong as it stands."""
    return ApiError(400, "invalid_request_error", message, error_code)


KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    500: "api_error",
    502: "api_error",
    503: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""The usual type of each status."""
