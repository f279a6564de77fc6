"""Every error that Prefold raises on purpose.

PrefoldError
├── RefusedError              permanent: the same input is refused again (a worker dead-letters it)
│   ├── InvalidInputError     malformed or out of bounds; ``field`` names the place            422
│   ├── UnauthenticatedError  no credential, or one that is not known                          401
│   ├── NotFoundError         no such session, turn, or user                                   404
│   ├── ConflictError         the stored state says otherwise (turn_conflict, user_conflict)   409
│   ├── GoneError             the session was erased; an explicit PUT creates it anew          410
│   ├── TooLargeError         over a size limit                                                413
│   ├── UnsupportedError      this transport of the client cannot do it; another one can
│   └── ConfigurationError    a setting makes the work impossible; the process does not start
└── TransientError            worth a retry, after ``retry_after`` when that is known
    ├── UnavailableError      a part that we need does not answer                              503
    └── OverloadedError       refused before it would harm the others                          429
"""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

__all__ = [
    "NO_MEMBERS",
    "ConfigurationError",
    "ConflictError",
    "GoneError",
    "InvalidInputError",
    "NotFoundError",
    "OverloadedError",
    "PrefoldError",
    "RefusedError",
    "TooLargeError",
    "TransientError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnsupportedError",
    "place_of",
]


NO_MEMBERS: Final[Mapping[str, object]] = MappingProxyType({})


class PrefoldError(Exception):
    """Base of the tree. ``code`` is stable and part of the API; ``detail`` is for people."""

    code = "error"
    members: Mapping[str, object] = NO_MEMBERS
    """What a problem document tells beside them, by the names that it has there."""

    def __init__(self, detail: str, *, code: str | None = None, field: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or type(self).code
        self.field = field


class RefusedError(PrefoldError):
    """Permanent: trying again with the same input is refused again."""

    code = "refused"


class InvalidInputError(RefusedError):
    """The input breaks a rule. ``field`` is a path such as ``turns[2].content[0].text``."""

    code = "invalid_input"

    def __str__(self) -> str:
        """As a traceback shows it: with the place, where the detail does not name it."""
        if self.field is None or self.field in self.detail:
            return self.detail
        return f"{self.detail} (field {self.field})"


class UnauthenticatedError(RefusedError):
    """The request carries no credential that we know."""

    code = "unauthenticated"


class NotFoundError(RefusedError):
    """There is no such thing for this tenant."""

    code = "not_found"


class ConflictError(RefusedError):
    """What is stored contradicts the request."""

    code = "conflict"


class GoneError(RefusedError):
    """The session was erased. Only an explicit PUT creates it anew."""

    code = "session_erased"


class TooLargeError(RefusedError):
    """The input is over a size limit; ``detail`` names the limit."""

    code = "too_large"


class UnsupportedError(RefusedError):
    """The client cannot do it the way that it is connected; ``detail`` says how it can be done."""

    code = "unsupported"


class ConfigurationError(RefusedError):
    """A setting, or a server that a setting names, makes the work impossible."""

    code = "configuration"


class TransientError(PrefoldError):
    """Worth a retry: ``retry_after`` says when, ``None`` when we do not know."""

    code = "transient"

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        field: str | None = None,
        retry_after: timedelta | None = None,
    ) -> None:
        super().__init__(detail, code=code, field=field)
        self.retry_after = retry_after


class UnavailableError(TransientError):
    """A part that the request needs does not answer."""

    code = "unavailable"


class OverloadedError(TransientError):
    """Refused before it would do harm."""

    code = "overloaded"


def place_of(error: BaseException) -> str:
    """Type of an error and the function that raised it. Not its message, which may quote a conversation."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" in {trace.tb_frame.f_code.co_qualname}, line {trace.tb_lineno}" if trace is not None else ""
    return f"{type(error).__qualname__}{place}"
