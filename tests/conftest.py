"""Fixtures of every folder. Each xdist worker has its own servers, started when a test first asks for one."""

import gc
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import HealthCheck, settings
from redis.asyncio import Redis

from prefold.stack.redis_server import session_options
from tests.support.cluster import RunningCluster, running_cluster
from tests.support.redis import RunningRedis, endless_keys, running_redis

# A busy machine is no fault of a test: neither an example's time nor the making of its input fails it.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_collection() -> None:
    """Nothing that is collected becomes garbage before it has run."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What is there now stays to the end: a full collection would go through all of it, for a third of a second."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RunningRedis]:
    """The worker's session server, not flushed: use ``redis_url``."""
    with running_redis() as server:
        yield server


@pytest.fixture(scope="session")
def queue_server() -> Iterator[RunningRedis]:
    """The worker's queue server, not flushed: use ``queue_url``."""
    with running_redis() as server:
        yield server


@pytest.fixture
def redis_url(redis_server: RunningRedis) -> Iterator[str]:
    """URL of an empty session server. The test fails when it leaves a key of ours that nothing will ever end."""
    redis_server.flush()
    yield redis_server.url
    assert endless_keys(redis_server.url) == []


@pytest.fixture(scope="session")
def cluster() -> Iterator[RunningCluster]:
    """The worker's cluster: three primaries, a replica of each. Not flushed, and roles change: use ``cluster_url``."""
    with running_cluster(3, 3, options=session_options("durable")) as running:
        yield running


@pytest.fixture
def cluster_url(cluster: RunningCluster) -> Iterator[str]:
    """URL of an empty cluster. The test fails when it leaves a key of ours that nothing will ever end."""
    cluster.wait_until_healthy()
    cluster.flush()
    yield cluster.url
    assert cluster.endless_keys() == []


@pytest.fixture
def queue_url(queue_server: RunningRedis) -> str:
    """URL of an empty queue server, another than ``redis_url``'s."""
    queue_server.flush()
    return queue_server.url


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    """An asyncio client (bytes in, bytes out) of the empty session server."""
    async with Redis.from_url(redis_url) as client:
        yield client
