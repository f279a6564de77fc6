"""Who serves a slot, and what is done when a server says otherwise: with servers that only speak."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, cast

import pytest
from redis import exceptions

from prefold.errors import ConfigurationError
from prefold.storage import topology as topology_module
from prefold.storage.routing import Routes
from prefold.storage.topology import SLOTS, Node, Topology


def entry(first: int, last: int, *servers: tuple[str | None, int]) -> list[Any]:
    """A range of CLUSTER SLOTS as it comes."""
    return [first, last, *([host if host is None else host.encode(), port, b"id", []] for host, port in servers)]


class Speaker:
    """A server that answers CLUSTER SLOTS."""

    def __init__(self, host: str, port: int, say: Callable[[], Any]) -> None:
        self.host, self.port, self.name = host, port, f"{host}:{port}"
        self.say = say
        self.asked = 0
        self.closed = False
        self.connections_made = 1

    async def ask(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        assert list(commands) == [("CLUSTER", "SLOTS")]
        self.asked += 1
        await asyncio.sleep(0)
        said = self.say()
        if isinstance(said, exceptions.ConnectionError):
            raise said
        return [said]

    async def close(self) -> None:
        self.closed = True


class Town:
    """Servers by port, all on one host unless they say otherwise."""

    def __init__(self, **views: Any) -> None:
        self.views = {int(name[1:]): view for name, view in views.items()}
        self.made: dict[str, Speaker] = {}
        self.say: Callable[[], Any] | None = None
        """What every server tells, whatever its view."""
        self.topology = Topology([("seed", port) for port in self.views][:2], self._make)

    def _make(self, host: str, port: int) -> Node:
        self.made[f"{host}:{port}"] = speaker = Speaker(host, port, self.say or (lambda: self.views.get(port, [])))
        return cast("Node", speaker)

    def name_of(self, slot: int) -> str | None:
        node = self.topology.serving(slot)
        return node.name if node else None


async def test_the_map_is_what_a_server_tells() -> None:
    town = Town(p1=[entry(0, 99, ("a", 1), ("b", 2)), entry(100, SLOTS - 1, ("c", 3))])
    assert town.name_of(0) is None
    assert [node.name for node in await town.topology.primaries()] == ["a:1", "c:3"]
    assert [node.name for node in await town.topology.replicas()] == ["b:2"]
    assert (town.name_of(0), town.name_of(99), town.name_of(100), town.name_of(SLOTS - 1)) == (
        "a:1",
        "a:1",
        "c:3",
        "c:3",
    )


async def test_a_server_without_a_name_is_where_we_asked_and_one_with_a_question_mark_nowhere() -> None:
    town = Town(p1=[entry(0, 9, (None, 7)), entry(10, 19, ("", 8)), entry(20, 29, ("?", 9))])
    await town.topology.settle()
    assert (town.name_of(5), town.name_of(15), town.name_of(25), town.name_of(99)) == ("seed:7", "seed:8", None, None)


@pytest.mark.parametrize("useless", [[], exceptions.ResponseError("LOADING"), exceptions.ConnectionError("away")])
async def test_another_is_asked_when_one_has_nothing_to_tell(useless: object) -> None:
    town = Town(p1=useless, p2=[entry(0, SLOTS - 1, ("a", 5))])
    await town.topology.settle()
    assert town.name_of(0) == "a:5"


async def test_it_is_said_when_nobody_tells() -> None:
    town = Town(p1=exceptions.ConnectionError("away"), p2=[])
    with pytest.raises(exceptions.ConnectionError, match="no server of the cluster"):
        await town.topology.settle()


async def test_it_is_said_when_they_are_no_cluster() -> None:
    refusal = exceptions.ResponseError("This instance has cluster support disabled")
    town = Town(p1=refusal, p2=refusal)
    with pytest.raises(ConfigurationError, match="no cluster"):
        await town.topology.settle()


async def test_many_who_wait_share_one_look() -> None:
    town = Town(p1=[entry(0, SLOTS - 1, ("a", 1))])
    await asyncio.gather(*(town.topology.settle() for _ in range(50)))
    assert town.made["seed:1"].asked == 1
    town.topology.suspect()
    await asyncio.gather(*(town.topology.settle() for _ in range(50)))
    assert sum(one.asked for one in town.made.values()) == 2


async def test_a_server_that_left_is_let_go_later_and_its_connections_still_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    town = Town(p1=[entry(0, SLOTS - 1, ("a", 9))])
    await town.topology.settle()
    town.views[1] = town.views[9] = [entry(0, SLOTS - 1, ("b", 9))]
    town.topology.suspect()
    await town.topology.settle()
    assert not town.made["a:9"].closed  # somebody may still wait for its reply
    monkeypatch.setattr(topology_module, "_KEPT_SECONDS", 0.0)
    town.topology.suspect()
    await town.topology.settle()
    assert town.made["a:9"].closed and not town.made["seed:1"].closed
    assert town.topology.connections_made == len(town.made) == 3
    await town.topology.close()
    assert all(one.closed for one in town.made.values())


class Trip:
    """Attempts that fail in a given way until they succeed."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.way: list[str] = []

    async def __call__(self, node: Node, asking: bool) -> str:
        self.way.append(node.name + ("?" if asking else ""))
        if self.failures:
            raise self.failures.pop(0)
        return "arrived"


def routes(*, patience: float = 1.0) -> Routes:
    town = Town(p1=[entry(0, SLOTS - 1, ("a", 1))])
    return Routes(town.topology, timedelta(seconds=patience))


def moved(host: str = "b", port: int = 2) -> Exception:
    return exceptions.MovedError(f"5 {host}:{port}")


async def test_a_moved_slot_is_followed_and_the_map_asked_for() -> None:
    trip, given = Trip(moved(), exceptions.ResponseError("MOVED 5 :3")), routes(patience=0)
    assert await given.deliver(5, trip) == "arrived"
    assert trip.way[0] == "a:1" and len(trip.way) == 3


@pytest.mark.parametrize("ask", [exceptions.AskError("5 b:2"), exceptions.ResponseError("ASK 5 b:2")])
async def test_a_slot_on_its_way_is_asked_for_this_once(ask: Exception) -> None:
    trip, given = Trip(ask), routes(patience=0)
    assert await given.deliver(5, trip) == "arrived"
    assert trip.way == ["a:1", "b:2?"]
    assert given.topology.serving(5).name == "a:1"  # type: ignore[union-attr]


async def test_servers_that_send_us_round_in_circles_are_left_when_patience_ends() -> None:
    trip = Trip(*(moved("a", 1) for _ in range(1000)))
    with pytest.raises(exceptions.MovedError):
        await routes(patience=0.1).deliver(5, trip)
    assert len(trip.way) < 100


@pytest.mark.parametrize(
    "failure",
    [
        exceptions.ClusterDownError("The cluster is down"),
        exceptions.TryAgainError("Multiple keys"),
        exceptions.ResponseError("TRYAGAIN Multiple keys"),
        exceptions.ResponseError("CLUSTERDOWN Hash slot not served"),
        exceptions.ReadOnlyError("You can't write"),
        exceptions.ConnectionError("refused"),
        exceptions.BusyLoadingError("loading"),
        OSError("unreachable"),
    ],
)
async def test_what_may_pass_is_tried_again_while_patience_lasts(failure: Exception) -> None:
    assert await routes().deliver(5, Trip(failure, failure)) == "arrived"
    with pytest.raises(type(failure)):
        await routes(patience=0).deliver(5, Trip(failure))


@pytest.mark.parametrize(
    "failure",
    [
        exceptions.TimeoutError("no reply"),
        exceptions.MaxConnectionsError("all busy"),
        exceptions.AuthenticationError("wrong password"),
        exceptions.ResponseError("WRONGTYPE"),
        exceptions.NoScriptError("no script"),
    ],
)
async def test_what_does_not_pass_is_told_at_once(failure: Exception) -> None:
    trip = Trip(failure)
    with pytest.raises(type(failure)):
        await routes().deliver(5, trip)
    assert len(trip.way) == 1


async def test_a_slot_that_nobody_serves_is_waited_for() -> None:
    looks = iter([[entry(0, 4, ("a", 1))], [entry(0, 4, ("a", 1))], [entry(0, SLOTS - 1, ("a", 1))]])
    town = Town(p1=[])
    town.say = lambda: next(looks)
    assert await Routes(town.topology, timedelta(seconds=5)).deliver(5, Trip()) == "arrived"
