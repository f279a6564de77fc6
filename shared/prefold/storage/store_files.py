"""The files of the session store: they hold what was erased until the server writes them anew."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Literal

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from prefold.storage.client import redis_failures
from prefold.storage.nodes import on_node_of

__all__ = ["FileKind", "KeptFiles", "Started", "StoreFiles"]

FileKind = Literal["log", "snapshot"]
Started = Literal["started", "under_way", "refused"]
"""``under_way``: one that had begun before, so another one is owed. ``refused``: the server does not let us."""

_UNDER_WAY = "in progress"
"""In what the server says when it writes the file already."""


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """What a server keeps. ``None``: it does not let us ask."""

    log: bool | None
    snapshot: bool | None
    replicas: int | None
    """Servers that copy it and keep files of their own."""


class StoreFiles:
    """One server, or the servers of a cluster: ``key`` says which. Raises ``UnavailableError``."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    def place(self, key: str) -> str:
        """Name of the server of ``key``."""
        node = on_node_of(self._client, key).get("target_nodes")
        return str(node.name) if node is not None else ""

    async def kept(self, key: str) -> KeptFiles:
        """What its server keeps now. A server without a log is never asked to write one: that would make a file."""
        node = on_node_of(self._client, key)
        persistence = await _told(self._client.info("persistence", **node))
        replication = await _told(self._client.info("replication", **node))
        saving = await _told(self._client.config_get("save", **node))
        return KeptFiles(
            log=None if persistence is None else bool(int(persistence["aof_enabled"])),
            snapshot=None if saving is None else any(saving.values()),
            replicas=None if replication is None else int(replication.get("connected_slaves", 0)),
        )

    async def write_anew(self, kind: FileKind, key: str) -> Started:
        """Asks the server of ``key`` to write its log or its snapshot anew, in the background."""
        command = ("BGREWRITEAOF",) if kind == "log" else ("BGSAVE", "SCHEDULE")
        try:
            with redis_failures():
                await self._client.execute_command(*command, **on_node_of(self._client, key))  # type: ignore[no-untyped-call]
        except ResponseError as error:
            return "under_way" if _UNDER_WAY in str(error) else "refused"
        return "started"


async def _told(asked: Awaitable[Any]) -> Any:
    """The reply, or None when the server does not let us ask."""
    try:
        with redis_failures():
            return await asked
    except ResponseError:
        return None
