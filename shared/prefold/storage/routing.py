"""Brings commands to the server of their slot, through redirections and failovers."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

from redis import exceptions

from prefold.storage.topology import Node, Topology

__all__ = ["Routes", "check_reach", "is_out_of_reach", "is_redirection", "is_unserved", "passes"]

T = TypeVar("T")
_MOST_HOPS = 5
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.25
"""Seconds."""
_NOT_NOW = (
    exceptions.ClusterDownError,  # MASTERDOWN too
    exceptions.TryAgainError,
    exceptions.ReadOnlyError,
)
_NOT_NOW_WORDS = ("CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN")
_FINAL = (
    exceptions.MaxConnectionsError,
    exceptions.AuthenticationError,
    exceptions.AuthorizationError,
    exceptions.TimeoutError,
    TimeoutError,
)


class _Redirection(NamedTuple):
    is_ask: bool
    slot: int
    host: str
    """Empty: the host of who says so."""
    port: int


def _redirection(error: Exception) -> _Redirection | None:
    """What MOVED or ASK say; redis-py has read it already, the lean client gives the words."""
    if isinstance(error, exceptions.AskError):  # its MovedError is one
        return _Redirection(not isinstance(error, exceptions.MovedError), error.slot_id, error.host, error.port)
    words = str(error).split(" ") if isinstance(error, exceptions.ResponseError) else []
    if len(words) != 3 or words[0] not in ("MOVED", "ASK"):
        return None
    host, _, port = words[2].rpartition(":")
    return _Redirection(words[0] == "ASK", int(words[1]), host, int(port))


def is_redirection(error: object) -> bool:
    """True for MOVED and ASK: nothing was done, another server has to be asked."""
    return isinstance(error, Exception) and _redirection(error) is not None


def is_unserved(error: object) -> bool:
    """True when the server refused because of the cluster's state: nothing was done."""
    if isinstance(error, _NOT_NOW):
        return True
    return isinstance(error, exceptions.ResponseError) and str(error).split(" ", 1)[0] in _NOT_NOW_WORDS


def passes(error: Exception) -> bool:
    """True for what another try may get past: no connection, or the state of the cluster.

    Not a reply that did not come in time: the server may be busy with the command still.
    """
    if isinstance(error, _FINAL):
        return False
    return is_unserved(error) or isinstance(error, exceptions.ConnectionError | OSError)


def is_out_of_reach(error: object) -> bool:
    """True for a failure that says something about a server, and nothing about the command."""
    if not isinstance(error, Exception):
        return False
    return passes(error) or is_redirection(error) or isinstance(error, exceptions.TimeoutError)


def check_reach(replies: Sequence[Any]) -> None:
    """Raises the first of ``replies`` when nobody could be reached. Some servers of a cluster may be away."""
    if replies and all(map(is_out_of_reach, replies)):
        raise replies[0]


class Routes:
    """Tries until ``patience`` has passed. What is sent has to be safe to repeat: a reply may be lost on the way."""

    def __init__(self, topology: Topology, patience: timedelta) -> None:
        self.topology = topology
        self.patience_seconds = patience.total_seconds()

    async def deliver(self, slot: int, attempt: Callable[[Node, bool], Awaitable[T]]) -> T:
        """What ``attempt(server, asking)`` returns where the slot is served.

        ``asking``: the slot is on its way to that server, which wants each command announced by ASKING. Raises the
        last problem.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.patience_seconds
        pause, hops = _FIRST_PAUSE, 0
        target: Node | None = None
        while True:
            node: Node | None = None
            try:
                node = target or await self._owner(slot)
                return await attempt(node, target is not None)
            except (exceptions.RedisError, OSError) as error:
                problem = error
            target, is_redirected = self._follow(problem, node)
            hops += is_redirected
            if is_redirected and hops <= _MOST_HOPS:
                continue
            if not is_redirected and not self._hope(problem):
                raise problem
            if loop.time() + pause > deadline:
                raise problem
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 (jitter)
            pause, hops = min(2 * pause, _LONGEST_PAUSE), 0

    def _hope(self, problem: Exception) -> bool:
        """True when another try may help; the map is looked at anew wherever the server may have changed."""
        if isinstance(problem, exceptions.TimeoutError) or passes(problem):
            self.topology.suspect()
        return passes(problem)

    async def _owner(self, slot: int) -> Node:
        await self.topology.settle()
        node = self.topology.serving(slot)
        if node is None:
            raise exceptions.ClusterDownError(f"nobody serves slot {slot}")
        return node

    def _follow(self, problem: Exception, node: Node | None) -> tuple[Node | None, bool]:
        """Where ASK sends this one command, and whether it was a redirection at all."""
        redirection = _redirection(problem)
        if redirection is None or node is None:
            return None, False
        told = self.topology.node(redirection.host or node.host, redirection.port)
        if redirection.is_ask:
            return told, True
        self.topology.moved(redirection.slot, told)
        return None, True
