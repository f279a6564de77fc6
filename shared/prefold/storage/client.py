"""Connections to Redis, and what its failures mean to us."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta

from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from prefold.errors import OverloadedError, UnavailableError

__all__ = ["connect", "redis_failures"]

_RETRY_AFTER = timedelta(seconds=1)
_BUSY = ("BUSY", "MISCONF", "OOM", "NOREPLICAS", "CLUSTERDOWN", "MASTERDOWN", "LOADING", "TRYAGAIN")


@asynccontextmanager
async def connect(
    url: str,
    *,
    max_connections: int = 64,
    timeout: timedelta = timedelta(seconds=5),
    retries: int = 3,
) -> AsyncIterator[Redis]:
    """A client of ``redis://…`` or ``unix:///path``; closed at the end.

    ``timeout`` bounds each reply, so a blocking read must ask for less. Commands are resent after a lost connection
    up to ``retries`` times: everything that we send is safe to repeat.
    """
    # Blocking, because a short queue for a connection is better than a refusal.
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=max_connections,
        timeout=timeout.total_seconds(),
        socket_timeout=timeout.total_seconds(),
        socket_connect_timeout=timeout.total_seconds(),
        retry=Retry(ExponentialBackoff(cap=0.5, base=0.02), retries),
    )
    client = Redis.from_pool(pool)
    try:
        yield client
    finally:
        await client.aclose()


@contextmanager
def redis_failures() -> Iterator[None]:
    """Turns what Redis raises into our tree: away or not writable → Unavailable, full → Unavailable (store_full), no connection → Overloaded."""
    try:
        yield
    except exceptions.OutOfMemoryError as error:
        raise UnavailableError("the session store is full", code="store_full", retry_after=_RETRY_AFTER) from error
    except exceptions.MaxConnectionsError as error:
        raise OverloadedError("no free connection to the session store", retry_after=_RETRY_AFTER) from error
    except (
        exceptions.ConnectionError,
        exceptions.TimeoutError,
        exceptions.BusyLoadingError,
        exceptions.ReadOnlyError,
        OSError,
    ) as error:
        raise UnavailableError("the session store does not answer", retry_after=_RETRY_AFTER) from error
    except exceptions.ResponseError as error:
        if str(error).startswith(_BUSY):
            raise UnavailableError("the session store does not take writes now", retry_after=_RETRY_AFTER) from error
        raise
