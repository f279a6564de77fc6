"""A real Redis Cluster for tests: primaries, and replicas of some of them, as processes on this machine."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from prefold.stack.places import free_port
from prefold.stack.redis_server import RedisServer, bundled_redis_server
from prefold.storage.keys import SessionKeys, slot_of_key
from tests.support.redis import IN_MEMORY, RunningRedis, endless_keys
from tests.support.storage import TENANT
from tests.support.waiting import wait_until

SLOTS = 16384
NODE_TIMEOUT_MS = 1_500
"""After this a silent server counts as failed: short for a quick failover, long enough for a busy machine."""
_LOCAL = "127.0.0.1"


class Node(RunningRedis):
    """One server of the cluster."""

    def __init__(self, server: RedisServer, port: int, bus_port: int) -> None:
        super().__init__(server)
        self.port = port
        self.bus_port = bus_port
        self.id = ""

    @property
    def address(self) -> str:
        return f"{_LOCAL}:{self.port}"

    def ask(self, *command: str | int) -> Any:
        """The reply of this very server, as it comes."""
        with Redis(unix_socket_path=str(self.server.socket), decode_responses=True, socket_timeout=10) as client:
            return client.execute_command(*command)

    def state(self, section: str) -> dict[str, str]:
        """Lines of CLUSTER INFO ("cluster") or of a section of INFO by name."""
        if section != "cluster":
            return {name: str(value) for name, value in self.ask("INFO", section).items()}
        return dict(line.split(":", 1) for line in self.ask("CLUSTER", "INFO").splitlines())

    @property
    def is_primary(self) -> bool:
        """True when it says so itself."""
        return self.state("replication")["role"] == "master"


class RunningCluster:
    """Its nodes; the first ``primaries`` of them begin as primaries, with equal shares of the slots."""

    def __init__(self, nodes: Sequence[Node], primaries: int) -> None:
        self.nodes = list(nodes)
        self._primaries = primaries

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(node.address for node in self.nodes)

    def living(self) -> list[Node]:
        return [node for node in self.nodes if node.process is not None]

    def primaries(self) -> list[Node]:
        """Those that run and are one now."""
        return [node for node in self.living() if node.is_primary]

    def owners(self) -> list[Node]:
        """The primary of each slot, as the first running node sees it."""
        by_port = {node.port: node for node in self.nodes}
        found: dict[int, Node] = {}
        for first, last, primary, *_ in self.living()[0].ask("CLUSTER", "SLOTS"):
            found |= dict.fromkeys(range(int(first), int(last) + 1), by_port[int(primary[1])])
        return [found[slot] for slot in range(SLOTS)]

    def owner(self, slot: int) -> Node:
        return self.owners()[slot]

    def owner_of(self, key: str) -> Node:
        return self.owner(slot_of_key(key))

    def replicas_of(self, primary: Node) -> list[Node]:
        return [node for node in self.living() if _follows(node, primary)]

    def flush(self) -> None:
        for node in self.primaries():
            node.flush()

    def endless_keys(self) -> list[str]:
        """As ``tests.support.redis.endless_keys``."""
        return [key for node in self.primaries() for key in endless_keys(node.url)]

    def open_slot(self, slot: int) -> tuple[Node, Node]:
        """Begins to move a slot key by key, as ``redis-cli --cluster reshard`` does; from where, and where to."""
        source = self.owner(slot)
        target = next(node for node in self.primaries() if node is not source)
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        return source, target

    def move_keys(self, slot: int, source: Node, target: Node, most: int = 1_000_000) -> int:
        """Moves keys of an open slot; how many."""
        keys = source.ask("CLUSTER", "GETKEYSINSLOT", slot, most)
        if keys:
            source.ask("MIGRATE", _LOCAL, target.port, "", 0, 5_000, "KEYS", *keys)
        return len(keys)

    def close_slot(self, slot: int, target: Node) -> None:
        """Ends the move: ``target`` serves the slot."""
        for node in (target, *(node for node in self.primaries() if node is not target)):
            node.ask("CLUSTER", "SETSLOT", slot, "NODE", target.id)

    def leave_slot(self, slot: int) -> None:
        """Takes an opened slot back, none of whose keys has moved."""
        for node in self.primaries():
            node.ask("CLUSTER", "SETSLOT", slot, "STABLE")

    def join(self) -> None:
        """Makes one cluster of the nodes, which have just been started."""
        share = -(-SLOTS // self._primaries)
        for number, node in enumerate(self.nodes):
            node.id = str(node.ask("CLUSTER", "MYID"))
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            if number < self._primaries:
                last = min((number + 1) * share, SLOTS) - 1
                node.ask("CLUSTER", "ADDSLOTSRANGE", number * share, last)
            if number:
                node.ask("CLUSTER", "MEET", _LOCAL, self.nodes[0].port, self.nodes[0].bus_port)
        wait_until("all nodes know each other", self._all_met, timeout=30)
        for number, node in enumerate(self.nodes[self._primaries :]):
            node.ask("CLUSTER", "REPLICATE", self.nodes[number % self._primaries].id)
        self.wait_until_healthy()

    def wait_until_healthy(self) -> None:
        """Every running node takes commands, and every replica follows its primary."""
        wait_until("the cluster is healthy", lambda: all(map(_is_healthy, self.living())), timeout=40)

    def wait_until_serving(self, replica: Node) -> None:
        """A replica has taken the place of its primary, which is dead or frozen, and whoever answers knows it."""
        wait_until("the replica serves", lambda: replica.is_primary, timeout=25)
        answering = [node for node in self.living() if node.server.answers()]
        wait_until("the others know", lambda: all(map(_is_served, answering)), timeout=25)

    def _all_met(self) -> bool:
        return all(node.state("cluster")["cluster_known_nodes"] == str(len(self.nodes)) for node in self.nodes)


def _follows(node: Node, primary: Node) -> bool:
    state = node.state("replication")
    return state["role"] == "slave" and int(state["master_port"]) == primary.port


def _is_served(node: Node) -> bool:
    return node.state("cluster")["cluster_state"] == "ok"


def _is_healthy(node: Node) -> bool:
    try:
        if not _is_served(node):
            return False
        state = node.state("replication")
    except RedisConnectionError:
        return False
    return state["role"] == "master" or state["master_link_status"] == "up"


@contextmanager
def running_cluster(
    primaries: int = 3, replicas: int = 0, *, options: Sequence[str] = IN_MEMORY, node_timeout_ms: int = NODE_TIMEOUT_MS
) -> Iterator[RunningCluster]:
    """A cluster of its own, in about two and a half seconds; gone at the end, with its data.

    The first ``replicas`` primaries have a replica each (a second one beyond that).
    """
    with ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="pf-test-", dir="/tmp"))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        ports = [free_port(_LOCAL) for _ in range(2 * (primaries + replicas))]
        pairs = zip(ports[::2], ports[1::2], strict=True)
        nodes = [_node(directory / str(number), *pair, options, node_timeout_ms) for number, pair in enumerate(pairs)]
        cluster = RunningCluster(nodes, primaries)
        for node in nodes:
            stack.callback(node.stop)
            node.start()
        cluster.join()
        yield cluster


def _node(directory: Path, port: int, bus_port: int, options: Sequence[str], node_timeout_ms: int) -> Node:
    directory.mkdir()
    own = {
        "port": port,
        "bind": _LOCAL,
        "cluster-enabled": "yes",
        "cluster-port": bus_port,
        "cluster-node-timeout": node_timeout_ms,
        "cluster-replica-validity-factor": 0,
        "cluster-allow-replica-migration": "no",
        "repl-diskless-sync-delay": 0,
    }
    given = (*options, *(part for name, value in own.items() for part in (f"--{name}", str(value))))
    return Node(RedisServer(bundled_redis_server(), directory / "redis.sock", directory, given), port, bus_port)


def one_of_each(cluster: RunningCluster) -> list[str]:
    """A session for each primary."""
    return [one_at(cluster, node) for node in cluster.primaries()]


def one_at(cluster: RunningCluster, node: Node, prefix: str = "s", tenant: str = TENANT) -> str:
    """A session that lives on that primary."""
    owners = cluster.owners()
    names = (f"{prefix}{number}" for number in count())
    return next(name for name in names if owners[slot_of_key(SessionKeys.of(tenant, name).meta)] is node)


def home(cluster: RunningCluster, session: str) -> Node:
    return cluster.owner_of(SessionKeys.of(TENANT, session).meta)


@asynccontextmanager
async def mended(cluster: RunningCluster) -> AsyncIterator[None]:
    """Whatever the body killed or froze runs again afterwards."""
    try:
        yield
    finally:
        for node in cluster.nodes:
            if node.process is None:
                node.start()  # in this thread: a server ends with the one that started it
            else:
                node.thaw()
        await asyncio.to_thread(cluster.wait_until_healthy)


def refused(node: Node, *command: str | int) -> str:
    """How a node refuses a command; empty when it does not."""
    try:
        node.ask(*command)
    except RedisError as error:
        return f"{type(error).__name__} {error}"
    return ""
