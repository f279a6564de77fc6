"""A client of a Redis Cluster that is used as the client of one server.

redis-py's own asyncio cluster client is no base for this (8.1): its ASKING goes out on another connection than the
command that it announces, so under concurrency commands on a moving slot fail; a refresh breaks the connections of
others; a transaction runs a thread with an event loop of its own for each command, and takes no command without a key.
"""

import asyncio
import inspect
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple, cast

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.client import Pipeline
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import DataError, NoScriptError, RedisError

from prefold.config.redis_urls import ClusterAddress
from prefold.storage.command_slots import Command, guarded, slot_of_command
from prefold.storage.hot import HotClient, serves
from prefold.storage.keys import PARTITIONS, PartitionKeys, slot_of_key
from prefold.storage.routing import Routes, is_redirection, is_unserved, passes
from prefold.storage.topology import Node, Topology

__all__ = ["AtKey", "ClusterClient", "Server", "connect_cluster", "served_partitions", "servers_of"]

_ANYWHERE = {"PING", "TIME"}
"""About no key, and any server will do."""


@dataclass(slots=True)
class _Parcel:
    """Commands of one slot, which go to one server in one piece. Those that go together go the same way."""

    slot: int
    commands: list[Command]
    is_atomic: bool = False
    is_lean: bool = False
    replies: list[Any] = field(default_factory=list)

    def way(self, node: Node) -> Callable[[Sequence[Command]], Awaitable[list[Any]]]:
        """How it goes to a server."""
        return node.ask_lean if self.is_lean else node.ask

    @property
    def may_be_parted(self) -> bool:
        """False where a command is about the connection too: ``WAIT`` has to follow the writes that it speaks of."""
        return len(self.commands) > 1 and not self.is_atomic and None not in map(slot_of_command, self.commands)

    def wire(self, *, asking: bool) -> list[Command]:
        announced: list[Command] = [("ASKING",)] if asking else []
        if self.is_atomic:  # ASKING holds until EXEC
            return [*announced, ("MULTI",), *self.commands, ("EXEC",)]
        return [part for command in self.commands for part in (*announced, command)]

    def take(self, replies: Sequence[Any], *, asking: bool) -> None:
        """Keeps the replies to ``wire``. Raises what says that the server was the wrong one."""
        for reply in replies:
            if isinstance(reply, Exception) and (is_redirection(reply) or is_unserved(reply)):
                raise reply
        if not self.is_atomic:
            self.replies = list(replies[1::2] if asking else replies)
            return
        refused = next((reply for reply in replies if isinstance(reply, Exception)), None)
        if refused is not None:
            raise refused
        self.replies = list(replies[-1])


@dataclass(frozen=True, slots=True)
class AtKey:
    """The server of a key, whichever it is when something is sent there; for ``target_nodes``."""

    slot: int
    topology: Topology

    @property
    def name(self) -> str:
        """Its address by what we know now, or empty."""
        node = self.topology.serving(self.slot)
        return node.name if node else ""


class ClusterClient(Redis):
    """Every command goes to the server of its key. Commands about one server need ``servers_of`` or ``target_nodes``.

    A pipeline may span slots unless it is a transaction; one command may not. Whatever is sent is repeated when a
    connection breaks, so it has to be safe to repeat.
    """

    def __init__(self, topology: Topology, patience: timedelta) -> None:
        # The base asks for a pool; nothing is ever taken from this one.
        super().__init__(connection_pool=ConnectionPool())
        self.topology = topology
        self.routes = Routes(topology, patience)
        self._scripts: dict[str, str] = {}

    def at_key(self, key: str) -> AtKey:
        """The server of ``key``."""
        return AtKey(slot_of_key(key), self.topology)

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """The reply. ``target_nodes``: an ``AtKey`` for a command about one server."""
        target: AtKey | None = options.pop("target_nodes", None)
        slot = target.slot if target is not None else slot_of_command(args)
        if slot is not None:
            parcel = _Parcel(slot, [guarded(args)])
            await self.send(parcel)
            reply = parcel.replies[0]
        elif args[0] in _ANYWHERE:
            reply = await self._anywhere(args)
        else:
            raise DataError(f"{args[0]} is about one server of the cluster: say which")
        if isinstance(reply, Exception):
            raise reply
        return await self.parsed(args, options, reply)

    async def parsed(self, command: Command, options: Mapping[str, Any], reply: Any) -> Any:
        """The reply as redis-py gives it."""
        callback = self.response_callbacks.get(command[0])
        if callback is None:
            return reply
        result = callback(reply, **{name: value for name, value in options.items() if name != "keys"})
        return await result if inspect.isawaitable(result) else result

    async def send(self, parcel: _Parcel) -> None:
        """Brings a parcel to its server; the replies are in it then."""
        await self.routes.deliver(parcel.slot, lambda node, asking: self._hand_over(node, parcel, asking=asking))

    async def send_all(self, parcels: Sequence[_Parcel]) -> None:
        """Brings parcels to their servers, those of one server together. A failure stands as reply to its commands."""
        await self.topology.settle()
        by_node: defaultdict[Node | None, list[_Parcel]] = defaultdict(list)
        for parcel in parcels:
            by_node[self.topology.serving(parcel.slot)].append(parcel)
        astray = [self._send_together(node, group) for node, group in by_node.items()]
        late = [parcel for group in await asyncio.gather(*astray) for parcel in group]
        await asyncio.gather(*map(self._send_late, late))

    async def _send_together(self, node: Node | None, parcels: list[_Parcel]) -> list[_Parcel]:
        """Sends parcels to one server; those that have to be sent again."""
        if node is None:
            return parcels
        wire = [command for parcel in parcels for command in parcel.wire(asking=False)]
        try:
            replies = await parcels[0].way(node)(wire)
        except (RedisError, OSError) as error:
            self.topology.suspect()
            for parcel in parcels:
                parcel.replies = [error] * len(parcel.commands)
            return parcels if passes(error) and self.routes.patience_seconds else []
        again, start = [], 0
        for parcel in parcels:
            end = start + len(parcel.commands)
            try:
                parcel.take(replies[start:end], asking=False)
                if any(self._source_of(*pair) for pair in zip(parcel.commands, parcel.replies, strict=True)):
                    again.append(parcel)
            except RedisError:
                again.append(parcel)
            start = end
        return again

    async def _send_late(self, parcel: _Parcel) -> None:
        if parcel.may_be_parted:
            # Some keys of a slot that moves are here, some there: each command finds its own way.
            each = [_Parcel(parcel.slot, [command], is_lean=parcel.is_lean) for command in parcel.commands]
            for one in each:
                await self._send_late(one)
            parcel.replies = [reply for one in each for reply in one.replies]
            return
        try:
            await self.send(parcel)
        except (RedisError, OSError) as error:
            parcel.replies = [error] * len(parcel.commands)

    async def _hand_over(self, node: Node, parcel: _Parcel, *, asking: bool) -> None:
        ask = parcel.way(node)
        parcel.take(await ask(parcel.wire(asking=asking)), asking=asking)
        sources = {self._source_of(*pair) for pair in zip(parcel.commands, parcel.replies, strict=True)} - {None}
        if sources:
            await node.ask([("SCRIPT", "LOAD", source) for source in sources])
            parcel.take(await ask(parcel.wire(asking=asking)), asking=asking)

    async def each(self, commands: Sequence[tuple[int, Command]]) -> list[Any]:
        """Replies to commands, given with their slots, as they come from the server; failures stand among them.

        For many small ones: they share the lean connections.
        """
        parcels = [_Parcel(slot, [command], is_lean=True) for slot, command in commands]
        await self.send_all(parcels)
        return [parcel.replies[0] for parcel in parcels]

    def _source_of(self, command: Command, reply: Any) -> str | None:
        """The script that the server has forgotten, if we know it: a failover or a restart forgets all."""
        return self.source(command[1]) if isinstance(reply, NoScriptError) and command[0] == "EVALSHA" else None

    def source(self, sha: str) -> str | None:
        """The script of that digest, if it was ever loaded here."""
        return self._scripts.get(sha)

    async def _anywhere(self, command: Command) -> Any:
        problem: Exception | None = None
        for node in await self.topology.primaries():
            try:
                (reply,) = await node.ask([command])
            except (RedisError, OSError) as error:
                self.topology.suspect()
                problem = error
                continue
            return reply
        raise problem or RedisConnectionError("the cluster has no servers")

    async def script_load(self, script: Any) -> Any:
        """The digest. Loads on every primary that answers, one at least; the others get it when they are asked to run it."""
        outcomes = await asyncio.gather(
            *(node.ask([("SCRIPT", "LOAD", script)]) for node in await self.topology.primaries()),
            return_exceptions=True,
        )
        replies = [one if isinstance(one, BaseException) else one[0] for one in outcomes]
        digests = [reply.decode() for reply in replies if isinstance(reply, bytes)]
        if not digests:
            raise cast("Exception", replies[0])
        self._scripts[digests[0]] = script
        return digests[0]

    async def scan_iter(self, *args: Any, **options: Any) -> AsyncIterator[Any]:  # type: ignore[override]  # its stub is the blocking one's
        """The keys of every primary, as ``Redis.scan_iter`` gives them."""
        for node in await self.topology.primaries():
            async for key in node.client.scan_iter(*args, **options):
                yield key

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> "ClusterPipeline":  # noqa: ARG002 (the base's)
        """As ``Redis.pipeline``; a transaction's keys lie in one slot."""
        return ClusterPipeline(self, transaction)

    async def aclose(self, close_connection_pool: bool | None = None) -> None:  # noqa: ARG002 (the base's)
        """Ends all connections; twice is harmless."""
        await self.topology.close()


class ClusterPipeline(Pipeline):
    """Commands of one slot keep their order. One without a key goes where the one before it goes (else the one after)."""

    def __init__(self, client: ClusterClient, transaction: bool) -> None:
        super().__init__(client.connection_pool, client.response_callbacks, transaction, None)
        self._client = client

    def immediate_execute_command(self, *args: Any, **options: Any) -> Any:  # noqa: ARG002 (the base's)
        """Not on a cluster: what is watched would have to be on one connection."""
        raise DataError("WATCH cannot be used on a cluster")

    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Replies in the order of the commands; without ``raise_on_error`` failures stand among them, of connections too."""
        stack, self.command_stack = self.command_stack, []
        if not stack:
            return []
        slots = _filled([slot_of_command(args) for args, _ in stack])
        parcels: dict[int, _Parcel] = {}
        for slot, (args, _) in zip(slots, stack, strict=True):
            parcels.setdefault(slot, _Parcel(slot, [], self.is_transaction)).commands.append(guarded(args))
        if self.is_transaction:
            if len(parcels) > 1:
                raise DataError(f"a transaction over {len(parcels)} slots")
            await self._client.send(parcels[slots[0]])
        else:
            await self._client.send_all(list(parcels.values()))
        replies = {slot: iter(parcel.replies) for slot, parcel in parcels.items()}
        results = []
        for slot, (args, options) in zip(slots, stack, strict=True):
            reply = next(replies[slot])
            if not isinstance(reply, Exception):
                reply = await self._client.parsed(args, options, reply)
            elif raise_on_error:
                raise reply
            results.append(reply)
        return results


def _filled(slots: Sequence[int | None]) -> list[int]:
    """Slots, where None takes the one before it, or the first."""
    last = next((slot for slot in slots if slot is not None), None)
    if last is None:
        raise DataError("a pipeline without keys belongs to no server of the cluster")
    filled = []
    for slot in slots:
        last = last if slot is None else slot
        filled.append(last)
    return filled


class Server(NamedTuple):
    """One server behind a client."""

    name: str
    """Its address in the cluster; empty where there is one server only."""
    client: Redis


async def servers_of(client: Redis, *, replicas: bool = False) -> list[Server]:
    """The servers that hold what ``client`` reads: itself, or every primary of the cluster (and every replica).

    Raises redis-py's ``ConnectionError`` when a cluster cannot be asked.
    """
    if not isinstance(client, ClusterClient):
        return [Server("", client)]
    nodes = await client.topology.primaries()
    others = await client.topology.replicas() if replicas else ()
    return [Server(node.name, node.client) for node in (*nodes, *others)]


def served_partitions(client: Redis, server: Server) -> list[int]:
    """The partitions whose keys are on that server, as far as is known; all of them where there is one server."""
    if not isinstance(client, ClusterClient):
        return list(range(PARTITIONS))
    serving = client.topology.serving
    nodes = [serving(slot_of_key(PartitionKeys.of(partition).events)) for partition in range(PARTITIONS)]
    return [partition for partition, node in enumerate(nodes) if node is not None and node.name == server.name]


@asynccontextmanager
async def connect_cluster(
    address: ClusterAddress, make_client: Callable[[str], Redis], *, timeout: timedelta, patience: timedelta
) -> AsyncIterator[ClusterClient]:
    """A client of the cluster; closed at the end. Opens nothing before it is used.

    ``make_client`` makes the general client of one server, which tries once. ``timeout`` is for each reply on a lean
    connection, ``patience`` for riding through a change of the cluster.
    """

    def make_node(host: str, port: int) -> Node:
        url = address.node_url(host, port)
        lean = (lambda: HotClient(url, timeout.total_seconds(), pauses=(0.0,))) if serves(url) else None
        return Node(host, port, make_client(url), lean)

    client = ClusterClient(Topology(address.seeds, make_node), patience)
    try:
        yield client
    finally:
        await client.aclose()
