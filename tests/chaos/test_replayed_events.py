"""The whole event stream delivered again, three times, by real processes: nothing that is stored changes."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from prefold.conversation import prepare_turn
from prefold.storage import Sessions, connect_sessions
from prefold.storage.events import GROUP
from prefold.storage.types import SessionOptions, SessionView
from prefold.tokens import load_counter
from tests.support.embedding_server import embedding_server
from tests.support.logged_roles import LoggedRole, embedding_with, logged_role
from tests.support.quiet import Stored, Stores, opened_stores
from tests.support.seeds import tell
from tests.support.vectors import RunningVectors, running_vectors
from tests.support.waiting import wait_until, wait_until_async

COUNTER = load_counter()
SHORT = [f"short{number}" for number in range(5)]
LONG = ["soft", "swapped"]
LIMIT_TOKENS = 2_000


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path) as server:
        yield server


@pytest.fixture
def stores(redis_url: str, queue_url: str, vectors: RunningVectors) -> Iterator[Stores]:
    with opened_stores(redis_url, queue_url, vectors.url) as opened:
        yield opened


@pytest.fixture
def roles(redis_url: str, queue_url: str, vectors: RunningVectors, tmp_path: Path) -> Iterator[dict[str, LoggedRole]]:
    """Dispatcher and workers, which tell of each piece of work."""
    with ExitStack() as living:
        embedder_url = living.enter_context(embedding_server())
        settings = {"qdrant_url": vectors.url, "log_level": "debug", **embedding_with(embedder_url)}
        yield {
            role: living.enter_context(logged_role(tmp_path, role, redis_url, queue_url, **settings))
            for role in ("dispatcher", "worker embed", "worker compact", "worker memory")
        }


async def say(sessions: Sessions, session: str, number: int) -> None:
    text = f"{session}: order {number} of the shop in Lyon came late, {number + 3} cups were broken. " * 4
    raw = {"id": f"t{number}", "role": "assistant" if number % 2 else "user", "content": text}
    await sessions.append("acme", session, [prepare_turn(raw, 0, COUNTER, lambda: "unused")])


async def converse(redis_url: str) -> int:
    """Short sessions, one with a standby, and one that has swapped its first one in; how many turns that took."""
    turns = 0

    async def go_on(session: str, is_done: Callable[[SessionView], bool]) -> None:
        nonlocal turns
        for number in range(100):
            await say(sessions, session, number)
            turns += 1
            view = await sessions.view("acme", session)
            if is_done(view):
                return
            if view.status == "soft":
                await wait_until_async("a standby is there", lambda: has_standby(session), timeout=40)
        raise AssertionError(f"{session} never came so far")

    async def has_standby(session: str) -> bool:
        return (await sessions.view("acme", session)).standby is not None

    async with connect_sessions(redis_url) as sessions:
        for session in LONG:
            await sessions.open("acme", session, SessionOptions(hard_limit_tokens=LIMIT_TOKENS))
        short = [go_on(name, lambda view: view.head_seq == 6) for name in SHORT]
        long = [go_on("soft", lambda view: view.standby is not None), go_on("swapped", lambda view: view.swaps > 0)]
        await asyncio.gather(*short, *long)
    return turns


def without_events(stored: Stored) -> Stored:
    return {name: value for name, value in stored.items() if not name.endswith(":events")}


def forget_reading(stores: Stores) -> None:
    """As if nobody had ever read the streams: the dispatcher begins at their first entries."""
    for stream in stores.streams():
        stores.sessions.xgroup_destroy(stream, GROUP)


def write_again(stores: Stores) -> None:
    """Every event once more, as a new entry."""
    for stream in stores.streams():
        for _, fields in stores.sessions.xrange(stream):
            stores.sessions.xadd(stream, fields)


@pytest.mark.timeout(120)
def test_the_event_stream_replayed_three_times_changes_nothing(
    redis_url: str, queue_url: str, stores: Stores, roles: dict[str, LoggedRole]
) -> None:
    turns = asyncio.run(converse(redis_url))
    wait_until("all work is done", stores.is_quiet, timeout=60)
    stored, points = stores.stored(), stores.points()
    assert len(points) == turns
    events = sum(stores.sessions.xlen(stream) for stream in stores.streams())

    for replay in (forget_reading, write_again, forget_reading):
        before = jobs_run(roles)
        replay(stores)
        wait_until("the events were read again and the work is done", stores.is_quiet, timeout=60)
        assert all(count > before[said] for said, count in jobs_run(roles).items())
        assert without_events(stores.stored()) == without_events(stored)
        assert stores.points() == points
    # The streams themselves hold their entries twice now, which the second replay wrote; their groups are new.
    assert sum(stores.sessions.xlen(stream) for stream in stores.streams()) == 2 * events
    tell(f"{turns} turns, {events} events replayed three times: {len(stored)} keys and {len(points)} vectors unchanged")


def jobs_run(roles: dict[str, LoggedRole]) -> dict[str, int]:
    """How often the workers said that they did a job, or that there was nothing to do."""
    said = {"turns_embedded": "worker embed", "build_not_begun": "worker compact"}
    return {event: len(roles[role].events(event)) for event, role in said.items()}
