"""Connections to Redis, and what its failures mean to us."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from functools import partial

from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from prefold.config.redis_urls import ClusterAddress, is_cluster_url
from prefold.errors import OverloadedError, UnavailableError
from prefold.storage.cluster import connect_cluster

__all__ = ["connect", "redis_failures"]

_RETRY_AFTER = timedelta(seconds=1)
_BUSY = {
    "OOM": ("store_full", "the session store is full"),
    "MISCONF": ("store_cannot_write", "the session store cannot write its file and takes no writes"),
    "NOREPLICAS": ("not_replicated", "the session store has too few replicas and takes no writes"),
    **dict.fromkeys(
        ("BUSY", "CLUSTERDOWN", "MASTERDOWN", "LOADING", "TRYAGAIN"),
        ("unavailable", "the session store does not take writes now"),
    ),
    **dict.fromkeys(
        ("MOVED", "ASK"),
        ("unavailable", "another server of a cluster serves this: PREFOLD_REDIS_URL has to be redis+cluster://…"),
    ),
}
"""First word of a reply that asks for patience → code and what it means."""
_FIRST_WORDS: tuple[tuple[type[exceptions.ResponseError], str], ...] = (
    (exceptions.ClusterDownError, "CLUSTERDOWN"),
    (exceptions.TryAgainError, "TRYAGAIN"),
    (exceptions.AskError, "MOVED"),
)
"""Of those that redis-py gives a class and takes the first word from."""
_FAILOVER_PATIENCE = timedelta(seconds=2)
"""So long a command waits for a cluster that changes; then it is refused, and its sender may repeat it."""


@asynccontextmanager
async def connect(
    url: str,
    *,
    max_connections: int = 64,
    timeout: timedelta = timedelta(seconds=5),
    retries: int = 3,
) -> AsyncIterator[Redis]:
    """A client of ``redis://…``, ``unix:///path`` or ``redis+cluster://…``; closed at the end. Opens nothing yet.

    ``timeout`` bounds each reply, so a blocking read must ask for less. Commands are resent after a lost connection
    up to ``retries`` times: everything that we send is safe to repeat. One whose reply did not come in time is never
    resent: the caller hears of it, and decides. On a cluster ``retries`` says whether a failover is waited for.
    """
    if is_cluster_url(url):
        make_one = partial(_client, max_connections=max_connections, timeout=timeout, retries=0)
        patience = _FAILOVER_PATIENCE if retries else timedelta(0)
        address = ClusterAddress.parse(url)
        async with connect_cluster(address, make_one, timeout=timeout, patience=patience) as cluster:
            yield cluster
        return
    client = _client(url, max_connections=max_connections, timeout=timeout, retries=retries)
    try:
        yield client
    finally:
        await client.aclose()


def _client(url: str, *, max_connections: int, timeout: timedelta, retries: int) -> Redis:
    # Blocking, because a short queue for a connection is better than a refusal.
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=max_connections,
        timeout=timeout.total_seconds(),
        socket_timeout=timeout.total_seconds(),
        socket_connect_timeout=timeout.total_seconds(),
        retry=Retry(ExponentialBackoff(cap=0.5, base=0.02), retries, supported_errors=(exceptions.ConnectionError,)),
    )
    return Redis.from_pool(pool)


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
        word = next((word for kind, word in _FIRST_WORDS if isinstance(error, kind)), str(error).split(" ", 1)[0])
        code, detail = _BUSY.get(word, ("", ""))
        if not code:
            raise
        raise UnavailableError(detail, code=code, retry_after=_RETRY_AFTER) from error
