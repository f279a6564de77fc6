"""The lean connections to the sessions: to one server, or to each primary of a cluster."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from redis.asyncio import Redis
from redis.exceptions import DataError, NoScriptError, TryAgainError

from prefold.config.redis_urls import ClusterAddress
from prefold.storage.cluster import ClusterClient
from prefold.storage.command_slots import Command, guarded, slot_of_command
from prefold.storage.hot import Argument, HotClient, connect_hot, serves
from prefold.storage.keys import slot_of_key
from prefold.storage.replicated import ReplicatedWrites, connect_replicated
from prefold.storage.topology import Node

__all__ = ["Lean", "connect_lean"]


class Lean(Protocol):
    """What the hot paths need. Raises redis-py's exceptions."""

    @property
    def connections_made(self) -> int:
        """Rises with each new connection: behind it there may be another server, or the same one set up otherwise."""
        ...

    async def evalsha(self, sha: str, numkeys: int, *keys_and_args: Argument) -> Any:
        """The script's reply."""
        ...

    async def script_load(self, script: str) -> Any:
        """The script's digest."""
        ...

    async def execute(self, *commands: Sequence[Argument]) -> Any:
        """The reply to the last of ``commands``, which go out together."""
        ...


class LeanCluster:
    """A lean connection to each server of a cluster. Safe to repeat is what may be sent, as with ``HotClient``."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    @property
    def connections_made(self) -> int:
        return self._client.topology.connections_made

    async def evalsha(self, sha: str, numkeys: int, *keys_and_args: Argument) -> Any:
        command = guarded(("EVALSHA", sha, numkeys, *keys_and_args))
        slot = slot_of_key(str(keys_and_args[0]))
        return await self._client.routes.deliver(slot, lambda node, asking: self._run(node, command, asking))

    async def _run(self, node: Node, command: Command, asking: bool) -> Any:
        try:
            return await self._together(node, [command], asking)
        except NoScriptError:
            source = self._client.source(command[1])
            if source is None:
                raise
            await _hot(node).script_load(source)
            return await self._together(node, [command], asking)

    async def script_load(self, script: str) -> Any:
        return await self._client.script_load(script)

    async def execute(self, *commands: Sequence[Argument]) -> Any:
        slots = {slot for command in commands if (slot := slot_of_command(command)) is not None}
        if len(slots) != 1:
            raise DataError(f"commands that go together name {len(slots)} slots")
        (slot,) = slots
        sent = [guarded(tuple(command)) for command in commands]
        return await self._client.routes.deliver(slot, lambda node, asking: self._together(node, sent, asking))

    async def _together(self, node: Node, commands: Sequence[Command], asking: bool) -> Any:
        """The last reply. ASKING holds for the next command, or for a whole transaction."""
        if not asking:
            return await _hot(node).execute(*commands)
        is_transaction = commands[0][0] == "MULTI"
        announced: list[Command] = [("ASKING",)]
        for number, command in enumerate(commands):
            announced += [command] if is_transaction or not number else [("ASKING",), command]
        return await _hot(node).execute(*announced)


class ClusterWrites(ReplicatedWrites):
    """The same promise on a cluster: the replicas that have to confirm are those of the primary that wrote."""

    def __init__(self, client: ClusterClient) -> None:
        super().__init__(client)
        self._cluster = client

    async def evalsha(self, sha: str, numkeys: int, *keys_and_args: Argument) -> Any:
        command = guarded(("EVALSHA", sha, numkeys, *keys_and_args))
        slot = slot_of_key(str(keys_and_args[0]))
        return await self._cluster.routes.deliver(slot, lambda node, asking: self._run(node, command, asking))

    async def _run(self, node: Node, command: Command, asking: bool) -> Any:
        if asking:  # what we guard is refused there too until the slot has arrived
            raise TryAgainError("the slot is on its way")
        try:
            return await self._at(node).evalsha(*command[1:])
        except NoScriptError:
            source = self._cluster.source(command[1])
            if source is None:
                raise
            await self._at(node).script_load(source)
            return await self._at(node).evalsha(*command[1:])

    async def confirm(self, key: str) -> None:
        await self._cluster.routes.deliver(slot_of_key(key), lambda node, _: self._at(node).confirm(key))

    @property
    def connections_made(self) -> int:
        return self._cluster.topology.connections_made

    def _at(self, node: Node) -> ReplicatedWrites:
        node.writes.needed, node.writes.within_ms = self.needed, self.within_ms
        return node.writes


def _hot(node: Node) -> HotClient:
    assert node.hot is not None, "made only for addresses that the lean client serves"
    return node.hot


@asynccontextmanager
async def connect_lean(url: str, client: Redis) -> AsyncIterator[tuple[Lean | None, ReplicatedWrites]]:
    """Beside ``client``: the lean connections, None where the URL asks for more, and writes that wait for replicas."""
    if isinstance(client, ClusterClient):
        has_lean = serves(ClusterAddress.parse(url).node_url("any", 1))
        yield LeanCluster(client) if has_lean else None, ClusterWrites(client)
        return
    async with connect_hot(url) as hot, connect_replicated(url, client) as replicated:
        yield hot, replicated
