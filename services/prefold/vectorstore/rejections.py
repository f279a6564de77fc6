"""What a request is refused with, in Qdrant's words and status codes."""

from http import HTTPStatus


class RejectedError(Exception):
    """A request that is answered with ``status`` and Qdrant's error body."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def malformed(path: str, problem: str) -> RejectedError:
    """400: the body breaks the form of the call at ``path``."""
    return RejectedError(HTTPStatus.BAD_REQUEST, f"Format error in JSON body: {path}: {problem}")


def wrong(message: str) -> RejectedError:
    """400: the body is well formed and cannot be done."""
    return RejectedError(HTTPStatus.BAD_REQUEST, f"Wrong input: {message}")


def unsupported(path: str, what: str) -> RejectedError:
    """400: a real Qdrant would do it; the embedded store refuses rather than ignore it."""
    return RejectedError(HTTPStatus.BAD_REQUEST, f"Wrong input: {path}: the embedded store does not support {what}")


def no_collection(name: str) -> RejectedError:
    """404."""
    return RejectedError(HTTPStatus.NOT_FOUND, f"Not found: Collection `{name}` doesn't exist!")


def collection_exists(name: str) -> RejectedError:
    """409."""
    return RejectedError(HTTPStatus.CONFLICT, f"Wrong input: Collection `{name}` already exists!")


def too_large(limit_bytes: int) -> RejectedError:
    """413."""
    return RejectedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {limit_bytes} bytes")
