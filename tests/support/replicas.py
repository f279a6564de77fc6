"""A real replica beside a real primary, to freeze, thaw, cut off and join again."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from redis import Redis

from prefold.stack.places import free_port
from prefold.stack.redis_server import session_options, with_options
from tests.support.redis import RunningRedis, running_redis
from tests.support.waiting import wait_until

LOOPBACK = "127.0.0.1"


@dataclass
class Pair:
    """A primary and the server that may follow it."""

    primary: RunningRedis
    replica: RunningRedis

    def __post_init__(self) -> None:
        self._port = free_port(LOOPBACK)
        with Redis.from_url(self.primary.url) as client:
            client.config_set("port", self._port)

    def join(self) -> None:
        """The replica follows; returns once it has everything."""
        with Redis.from_url(self.replica.url) as follower, Redis.from_url(self.primary.url) as client:
            follower.replicaof(LOOPBACK, self._port)
            wait_until("the replica confirms a write", lambda: self._confirms(client), timeout=20)

    def _confirms(self, client: Redis) -> bool:
        with client.pipeline(transaction=False) as pipe:
            pipe.set("joined", "", px=1)
            pipe.wait(1, 100)
            return bool(pipe.execute()[1])

    def part(self) -> None:
        """The replica stops following."""
        with Redis.from_url(self.replica.url) as follower, Redis.from_url(self.primary.url) as client:
            follower.replicaof("NO", "ONE")
            wait_until("the primary is alone", lambda: client.info("replication")["connected_slaves"] == 0)


@contextmanager
def replicated_pair(options: Sequence[str] | None = None, *, joined: bool = True) -> Iterator[Pair]:
    """A durable primary with a replica that follows it."""
    chosen = with_options(options or session_options("durable"), repl_diskless_sync_delay="0")
    with running_redis(chosen) as primary, running_redis() as replica:
        pair = Pair(primary, replica)
        if joined:
            pair.join()
        yield pair
