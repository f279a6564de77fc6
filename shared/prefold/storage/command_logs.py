"""The servers' logs of slow and large commands: they quote the first 128 bytes of each argument, words of turns too."""

from typing import Any, Literal

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from prefold.storage.client import redis_failures
from prefold.storage.nodes import on_node_of

__all__ = ["CommandLogs"]

_EVERY: tuple[tuple[str, ...], ...] = (
    ("COMMANDLOG", "slow"),
    ("COMMANDLOG", "large-request"),
    ("COMMANDLOG", "large-reply"),
)
_SLOW: tuple[tuple[str, ...], ...] = (("SLOWLOG",),)
"""What a server has that knows no COMMANDLOG."""


class CommandLogs:
    """Those of one server, or of the servers of a cluster. Raises ``UnavailableError``."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def count(self, meta_key: str) -> int | None:
        """Commands that touched the keys of that session; None when the server does not let us look."""
        found = await self._find(meta_key)
        return None if found is None else sum(found.values())

    async def forget(self, meta_key: str) -> int | None:
        """Empties the logs that name the session, for single entries cannot be taken out; how many named it. None: as above."""
        found = await self._find(meta_key)
        if found is None:
            return None
        try:
            with redis_failures():
                for name in (name for name, count in found.items() if count):
                    await self._ask("RESET", name, meta_key)
        except ResponseError:
            return None
        return sum(found.values())

    async def _find(self, meta_key: str) -> dict[tuple[str, ...], int] | None:
        stem = meta_key.rpartition(":")[0].encode() + b":"
        for logs in (_EVERY, _SLOW):
            try:
                with redis_failures():
                    replies = {name: await self._ask("GET", name, meta_key) for name in logs}
            except ResponseError as error:
                if "unknown command" in str(error).lower():
                    continue
                return None
            return {name: sum(_names(entry, stem) for entry in reply) for name, reply in replies.items()}
        return None

    async def _ask(self, action: Literal["GET", "RESET"], name: tuple[str, ...], key: str) -> Any:
        command, *kind = name
        every, node = (-1,) if action == "GET" else (), on_node_of(self._client, key)
        return await self._client.execute_command(command, action, *every, *kind, **node)  # type: ignore[no-untyped-call]


def _names(entry: Any, stem: bytes) -> bool:
    return any(stem in argument for argument in entry[3] if isinstance(argument, bytes))
