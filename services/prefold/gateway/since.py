"""``before`` of an erasure: only what had begun by then goes.

An erasure that is applied again, to a store that was restored from a backup, must not take what was begun after it.
"""

from datetime import UTC, datetime

from prefold.errors import ConflictError, GoneError, InvalidInputError, NotFoundError
from prefold.gateway.exchange import Exchange
from prefold.gateway.operations import QueryParameter
from prefold.storage import Sessions

__all__ = ["BEFORE", "before_of", "check_user", "life_before"]

BEFORE = QueryParameter(
    "before",
    {"type": "string", "format": "date-time"},
    "Only what had begun by this time (ISO 8601): else 409 `begun_since` or `erased_since`, and nothing is done. To "
    "apply an erasure again after a restore.",
)
_ANY = ""
_NONE_THAT_LIVES = "-"
"""No life has this name."""


def before_of(exchange: Exchange) -> int | None:
    """Milliseconds of the parameter ``before``; None without it, 0 for what was before 1970. Refuses what is no time, or has no zone."""
    given = exchange.query(BEFORE.name).get(BEFORE.name)
    if given is None:
        return None
    try:
        at = datetime.fromisoformat(given)
    except ValueError as error:
        raise InvalidInputError("must be a time, as 2026-11-30T10:00:00Z", field=BEFORE.name) from error
    if at.tzinfo is None:
        raise InvalidInputError("the time must name its zone, as 2026-11-30T10:00:00Z", field=BEFORE.name)
    try:
        return max(0, int(at.astimezone(UTC).timestamp() * 1000))  # a store's times have no sign
    except (OverflowError, ValueError) as error:
        raise InvalidInputError("is out of range", field=BEFORE.name) from error


async def life_before(sessions: Sessions, tenant: str, session: str, before_ms: int | None) -> str:
    """The life that may be erased, as ``SessionErasing.run`` takes it: empty for any, a name that none has for none.

    ``ConflictError`` (begun_since): the session that lives was begun later.
    """
    if before_ms is None:
        return _ANY
    try:
        view = await sessions.view(tenant, session)
    except (GoneError, NotFoundError):
        return _NONE_THAT_LIVES
    if view.created_at_ms > before_ms:
        raise ConflictError("the session was begun after that time", code="begun_since", field=BEFORE.name)
    return view.ref.incarnation


async def check_user(sessions: Sessions, tenant: str, user: str, before_ms: int | None) -> None:
    """``ConflictError`` (erased_since): the user was erased at that time or later, and what is there was begun anew."""
    if before_ms is not None and await sessions.users.erased_at_ms(tenant, user) >= before_ms:
        raise ConflictError("the user was erased at that time or later", code="erased_since", field=BEFORE.name)
