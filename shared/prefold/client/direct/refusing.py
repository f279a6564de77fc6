"""What cannot be done on Redis itself, and what Redis does not let this user do."""

from typing import Any

from redis.connection import parse_url
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError

from prefold.client.calls import Call
from prefold.config.redis_urls import ClusterAddress, is_cluster_url
from prefold.errors import InvalidInputError, PrefoldError, TransientError, UnauthenticatedError, UnsupportedError

__all__ = ["checked_url", "patient", "refused_by_store", "unsupported"]

_NOT_LET_IN = ("NOPERM", "NOAUTH", "WRONGPASS")


def checked_url(redis_url: str) -> str:
    """The URL, if a client can be made of it. InvalidInputError that never tells it: there may be a password in it."""
    try:
        if is_cluster_url(redis_url):
            ClusterAddress.parse(redis_url)
        else:
            parse_url(redis_url)  # type: ignore[no-untyped-call]  # redis-py has no types here
    except ValueError:
        raise InvalidInputError(
            "expected redis://host:port/db, rediss://…, unix:///path or redis+cluster://host:port,host:port",
            field="redis_url",
        ) from None
    return redis_url


def unsupported(call: Call[Any]) -> UnsupportedError:
    """The error for a call that a gateway has to answer."""
    what = "a context with a query" if call.path.endswith("/context") else f"{call.method} {call.path}"
    return UnsupportedError(f"{what} needs a gateway: connect over HTTP, with Prefold(url) or AsyncPrefold(url)")


def patient(error: TransientError) -> TransientError:
    """The error, when it is worth a wait. Raises ``UnauthenticatedError`` where it stands for a wrong password."""
    cause = error.__cause__
    while cause is not None:  # redis-py's asyncio client wraps what the server said
        if isinstance(cause, AuthenticationError):
            raise refused_by_store(cause) from error
        cause = cause.__cause__
    return error


def refused_by_store(error: RedisError) -> PrefoldError:
    """What Redis's own refusal means: no such user, or one that may not do this (the wrong tenant, for instance)."""
    if isinstance(error, AuthenticationError | NoPermissionError) or str(error).startswith(_NOT_LET_IN):
        return UnauthenticatedError(
            f"the session store does not let this user do that: {error}", code="store_refuses", field="redis_url"
        )
    return PrefoldError(f"the session store answers with an error: {error}", code="store_error")
