"""The servers of a Redis Cluster and who serves which slot, as far as we were told."""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError

from prefold.errors import ConfigurationError
from prefold.storage.command_slots import Command
from prefold.storage.hot import HotClient
from prefold.storage.replicated import ReplicatedWrites

__all__ = ["SLOTS", "Node", "Topology"]

SLOTS = 16384
_LOOK_SECONDS = 1.0
"""One server has this long to tell what it knows."""
_KEPT_SECONDS = 30.0
"""A server that left the cluster is let go after this: by then no command to it is under way."""
_NO_CLUSTER = "cluster support disabled"


class Node:
    """One server, and our connections to it. Opens none before it is used."""

    def __init__(self, host: str, port: int, client: Redis, lean: Callable[[], HotClient] | None) -> None:
        self.host = host
        self.port = port
        self.name = f"{host}:{port}"
        self.client = client
        """For commands about this very server."""
        self.hot = lean() if lean is not None else None
        """The lean connection; None where it cannot serve, as with TLS."""
        self._waiting = lean() if lean is not None else None
        self.writes = ReplicatedWrites(self._waiting or client)
        """Writes that wait for replicas, on a connection of their own."""

    async def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Replies to ``commands``, which go out together, as they come; what the server refuses stands as an exception.

        Raises redis-py's exceptions when the connection fails.
        """
        pipe = Pipeline(self.client.connection_pool, {}, False, None)
        for command in commands:
            pipe.pipeline_execute_command(*command)  # type: ignore[no-untyped-call]
        return list(await pipe.execute(raise_on_error=False))

    async def ask_lean(self, commands: Sequence[Command]) -> list[Any]:
        """The same at a tenth of the cost where there is a lean connection, for replies that are small: all share it."""
        return await (self.hot.exchange(commands) if self.hot is not None else self.ask(commands))

    @property
    def connections_made(self) -> int:
        """Of the lean ones; see ``HotClient``."""
        return sum(lean.connections_made for lean in (self.hot, self._waiting) if lean is not None)

    async def close(self) -> None:
        """Ends its connections; twice is harmless."""
        await self.writes.close()
        for lean in (self.hot, self._waiting):
            if lean is not None:
                lean.close()
        await self.client.aclose()


class Topology:
    """A map of slots, drawn anew when something speaks against it.

    Servers tell it themselves: any of those that we know, or of ``seeds``. What one says may be old, so the map is
    only where to begin: the server that gets a command has the last word.
    """

    def __init__(self, seeds: Sequence[tuple[str, int]], make_node: Callable[[str, int], Node]) -> None:
        self._seeds = seeds
        self._make_node = make_node
        self._nodes: dict[str, Node] = {}
        self._serving: list[Node | None] = [None] * SLOTS
        self._primaries: tuple[Node, ...] = ()
        self._replicas: tuple[Node, ...] = ()
        self._gone: dict[str, float] = {}
        self._made_to_gone = 0
        self._informant: Node | None = None
        self._suspected_at = 0.0
        self._seen_at = -1.0
        self._look: asyncio.Task[None] | None = None

    def serving(self, slot: int) -> Node | None:
        """Who serves the slot by the map; None: nobody, or there is no map yet."""
        return self._serving[slot]

    async def settle(self) -> None:
        """Returns once the map is drawn, and drawn anew if it is suspected to be wrong.

        Raises ``ConnectionError`` when no server tells, ``ConfigurationError`` when they are no cluster.
        """
        if self._suspected_at >= self._seen_at:
            if self._look is None or self._look.done():
                self._look = asyncio.create_task(self._look_around())
                self._look.add_done_callback(_hear)
            await asyncio.shield(self._look)

    async def primaries(self) -> tuple[Node, ...]:
        """Every server that serves slots. Raises as ``settle``."""
        await self.settle()
        return self._primaries

    async def replicas(self) -> tuple[Node, ...]:
        """The others that are in order. Raises as ``settle``."""
        await self.settle()
        return self._replicas

    def node(self, host: str, port: int) -> Node:
        """The server at that address."""
        name = f"{host}:{port}"
        if name not in self._nodes:
            self._nodes[name] = self._make_node(host, port)
        self._gone.pop(name, None)
        return self._nodes[name]

    @property
    def connections_made(self) -> int:
        """Of all lean connections so far, to servers that left too."""
        return self._made_to_gone + sum(node.connections_made for node in self._nodes.values())

    def moved(self, slot: int, node: Node) -> None:
        """A server says that ``node`` serves the slot: true until the map is drawn anew, which it asks for."""
        self._serving[slot] = node
        self._informant = node
        self.suspect()

    def suspect(self) -> None:
        """The map may be wrong: the next command looks first."""
        self._suspected_at = asyncio.get_running_loop().time()

    async def close(self) -> None:
        """Ends all connections; twice is harmless."""
        if self._look is not None:
            self._look.cancel()
            await asyncio.wait([self._look])
        while self._nodes:
            await self._nodes.popitem()[1].close()

    async def _look_around(self) -> None:
        started = asyncio.get_running_loop().time()
        problems: list[Exception] = []
        for node in self._informants():
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    (view,) = await node.ask([("CLUSTER", "SLOTS")])
            except (RedisError, OSError) as error:
                problems.append(error)
                continue
            if isinstance(view, Exception):
                problems.append(view)
            elif self._draw(node, view):
                self._seen_at = started
                await self._let_go(started)
                return
        if problems and all(isinstance(one, ResponseError) and _NO_CLUSTER in str(one) for one in problems):
            raise ConfigurationError("the servers of PREFOLD_REDIS_URL are no cluster", field="PREFOLD_REDIS_URL")
        raise RedisConnectionError(f"no server of the cluster tells who serves what: {problems}")

    def _informants(self) -> Iterator[Node]:
        """Who may know: the one that gave the last hint, all others that we know, and those of the URL."""
        seeds = [self.node(host, port) for host, port in self._seeds]
        known = [*{*self._primaries, *self._replicas} - {self._informant}]
        random.shuffle(known)
        hint, self._informant = self._informant, None
        asked = set[Node]()
        for node in (*([hint] if hint else []), *known, *seeds):
            if node not in asked:
                asked.add(node)
                yield node

    def _draw(self, told_by: Node, view: Sequence[Any]) -> bool:
        """Draws the map from a reply to CLUSTER SLOTS; False when it says nothing."""
        serving: list[Node | None] = [None] * SLOTS
        primaries, replicas = dict[Node, None](), dict[Node, None]()
        for first, last, *servers in view:
            found = [self._at(told_by, server) for server in servers]
            if found and found[0] is not None:
                serving[first : last + 1] = [found[0]] * (last + 1 - first)
                primaries[found[0]] = None
            replicas.update(dict.fromkeys(node for node in found[1:] if node is not None))
        if not primaries:
            return False
        self._serving, self._primaries = serving, tuple(primaries)
        self._replicas = tuple(node for node in replicas if node not in primaries)
        return True

    def _at(self, told_by: Node, server: Sequence[Any]) -> Node | None:
        """The server of an entry. No host: where we asked, at another port; ``?``: it does not know its own name."""
        host, port = (server[0] or b"").decode(), int(server[1])
        return None if host == "?" else self.node(host or told_by.host, port)

    async def _let_go(self, now: float) -> None:
        """Ends the connections to servers that left the cluster a while ago."""
        standing = {*self._primaries, *self._replicas}
        for node in list(self._nodes.values()):
            if node in standing or (node.host, node.port) in self._seeds:
                self._gone.pop(node.name, None)
            elif now - self._gone.setdefault(node.name, now) > _KEPT_SECONDS:
                del self._nodes[node.name], self._gone[node.name]
                self._made_to_gone += node.connections_made
                await node.close()


def _hear(look: "asyncio.Task[None]") -> None:
    """All who waited for it may have given up; a failure that nobody hears is reported as a bug."""
    if not look.cancelled():
        look.exception()
