"""What failures of the queue's Redis mean to us."""

from collections.abc import Iterator
from contextlib import contextmanager

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from prefold.errors import UnavailableError


@contextmanager
def queue_failures() -> Iterator[None]:
    """Turns whatever Redis raises into ``UnavailableError``."""
    try:
        yield
    except (RedisConnectionError, RedisTimeoutError) as error:
        raise UnavailableError(f"the job queue does not answer: {error}") from error
    except RedisError as error:
        raise UnavailableError(f"the job queue refused a command: {error}") from error
