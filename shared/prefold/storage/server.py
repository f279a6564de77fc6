"""What a Redis server says of itself: its settings and its state, as far as it lets us ask."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from redis import exceptions
from redis.asyncio import Redis

from prefold.errors import ConfigurationError
from prefold.storage.client import redis_failures
from prefold.storage.cluster import Server, servers_of

__all__ = ["SeenServers", "ServerFacts", "ask_server", "read_servers"]

_PATIENCE_SECONDS = 2.0
"""A server that does not tell of itself in this time counts as away."""
_SETTINGS = (
    "appendonly",
    "appendfsync",
    "no-appendfsync-on-rewrite",
    "maxmemory",
    "maxmemory-policy",
    "lazyfree-lazy-server-del",
    "stream-node-max-bytes",
)


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """One server at one moment."""

    address: str
    """Of a server of a cluster; empty for the one that the URL names."""
    info: Mapping[str, Any]
    settings: Mapping[str, str] | None
    """None: it does not let us ask (CONFIG is refused)."""
    cluster_state: str | None = None
    """As a server of a cluster sees it: ``ok`` or ``fail``. None: there is no cluster, or it does not let us ask."""

    @property
    def version(self) -> str:
        """Of Redis; for Valkey the one that it is compatible with."""
        return str(self.info.get("redis_version", ""))

    @property
    def is_primary(self) -> bool:
        return self.info.get("role") == "master"

    @property
    def replicas(self) -> int:
        """Replicas that follow it; one that is still being sent the data does not count."""
        return len(self._replicas())

    @property
    def confirming(self) -> int:
        """Those of them that have confirmed something: one that still loads what it was sent has not."""
        return sum(int(one.get("offset", 0)) > 0 for one in self._replicas())

    def _replicas(self) -> list[Mapping[str, Any]]:
        lines = (self.info.get(f"slave{number}") for number in range(int(self.info.get("connected_slaves", 0))))
        return [one for one in lines if isinstance(one, Mapping) and one.get("state") == "online"]

    @property
    def maxmemory(self) -> int:
        """Bytes; 0: no bound."""
        return int(self.info.get("maxmemory", 0))

    @property
    def used_share(self) -> float:
        """Share of ``maxmemory`` that is used, as the server itself counts it; 0 without a bound."""
        used = int(self.info.get("used_memory", 0)) - int(self.info.get("mem_not_counted_for_evict", 0))
        return used / self.maxmemory if self.maxmemory else 0.0

    def setting(self, name: str) -> str | None:
        """A setting as the server writes it; None: not known."""
        return None if self.settings is None else self.settings.get(name)


class SeenServers(NamedTuple):
    """What one look at a store has found."""

    facts: list[ServerFacts]
    away: list[str]
    """Addresses of primaries of a cluster that did not answer; the others go on without them."""


async def read_servers(client: Redis) -> SeenServers:
    """The server, or every primary of a cluster.

    ``UnavailableError``: none answers within ``_PATIENCE_SECONDS``. ``ConfigurationError``: one refuses INFO.
    """
    with redis_failures():
        servers = await servers_of(client)
        found = await asyncio.gather(*map(_read, servers), return_exceptions=True)
        failures = [one for one in found if isinstance(one, BaseException)]
        for failure in failures:
            if not isinstance(failure, exceptions.ConnectionError | exceptions.TimeoutError | OSError):
                raise failure
        if len(failures) == len(servers):
            raise failures[0]
    away = [server.name for server, one in zip(servers, found, strict=True) if isinstance(one, BaseException)]
    return SeenServers([one for one in found if isinstance(one, ServerFacts)], away)


async def _read(server: Server) -> ServerFacts:
    async with asyncio.timeout(_PATIENCE_SECONDS):
        return await ask_server(server)


async def ask_server(server: Server) -> ServerFacts:
    """What one server tells, however long it takes. ``ConfigurationError``: it refuses INFO."""
    try:
        info: Any = await server.client.info()  # every section: servers before 7.0 take no list of them
    except exceptions.ResponseError as error:
        raise ConfigurationError(f"the session store refuses INFO: {error}", field="PREFOLD_REDIS_URL") from error
    settings = await _told(server.client.config_get(*_SETTINGS))
    named = None if settings is None else {_text(name): _text(value) for name, value in settings.items()}
    state = await _told(server.client.execute_command("CLUSTER INFO")) if info.get("cluster_enabled") else None  # type: ignore[no-untyped-call]
    return ServerFacts(server.name, info, named, (state or {}).get("cluster_state"))


async def _told(asked: Awaitable[Any]) -> Any:
    """The reply, or None when the server does not let us ask."""
    try:
        return await asked
    except exceptions.ResponseError:
        return None


def _text(value: str | bytes | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""
