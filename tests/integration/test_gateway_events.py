"""``GET …/events``: what happens to a session, told while it happens, and an end that is clean."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.types import Message

from prefold.gateway import event_calls
from prefold.gateway.door import Door
from prefold.storage.types import BuildTicket, SessionOptions
from tests.support.gateway import Served, served_gateway
from tests.support.storage import summary

URL = "/v1/sessions/s1/events"
LONG = "word " * 120


@pytest.fixture
async def served(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setattr(event_calls, "LOOK_SECONDS", 0.01)
    async with served_gateway(redis_url) as running:
        await running.client.put("/v1/sessions/s1", json={"hard_limit_tokens": 1000})
        yield running


class Listener:
    """A client that reads an endless answer, which httpx's own transport does not hand over before its end."""

    def __init__(self, app: Door, method: str = "GET", path: str = URL) -> None:
        self._scope: dict[str, Any] = {
            "type": "http",
            "method": method,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"host", b"127.0.0.1")],
        }
        self._app = app
        self._pieces: asyncio.Queue[Message] = asyncio.Queue()
        self._gone = asyncio.Event()
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        await self._app(self._scope, self._receive, self._pieces.put)

    async def _receive(self) -> Message:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    def hang_up(self) -> None:
        self._gone.set()

    async def next(self) -> Message:
        async with asyncio.timeout(10):
            return await self._pieces.get()

    async def event(self) -> tuple[str, dict[str, Any]]:
        """The next event; signs of life are passed over."""
        while True:
            message = await self.next()
            for block in message.get("body", b"").decode().split("\n\n"):
                if block.startswith("event: "):
                    name, data = block.removeprefix("event: ").split("\ndata: ")
                    return name, json.loads(data)
            assert message.get("more_body", True), "the stream ended without an event"


def app_of(served: Served) -> Door:
    app: Any = served.transport.app
    assert isinstance(app, Door)
    return app


async def append(served: Served, *texts: str) -> None:
    turns = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    assert (await served.client.post("/v1/sessions/s1/turns", json={"turns": turns})).status_code == 201


async def test_a_standby_and_the_swap_to_it_are_told(served: Served) -> None:
    await append(served, *[LONG] * 6)
    listener = Listener(app_of(served))
    start = await listener.next()
    assert start["status"] == 200
    assert (b"content-type", b"text/event-stream; charset=utf-8") in start["headers"]
    ticket = await build(served)
    name, data = await listener.event()
    assert (name, data["session"], data["covers_to"]) == ("standby_ready", "s1", ticket.covers_to)
    await append(served, LONG, LONG)
    name, data = await listener.event()
    assert (name, data["swaps"]) == ("swapped", 1)
    listener.hang_up()
    await listener.task


async def test_a_swap_is_told_before_the_standby_that_was_built_after_it_between_the_same_looks(served: Served) -> None:
    await append(served, *[LONG] * 6)
    await build(served)
    before = await served.sessions.view("default", "s1")
    await append(served, LONG, LONG)
    await append(served, LONG)
    await build(served)
    now = await served.sessions.view("default", "s1")
    assert (now.swaps, now.standby is not None) == (1, True)
    told = [piece.split(b"\n")[0] for piece in event_calls._events(before, now)]
    assert told == [b"event: swapped", b"event: standby_ready"]


async def build(served: Served) -> BuildTicket:
    ref = (await served.sessions.view("default", "s1")).ref
    ticket = await served.sessions.begin_build("default", "s1", ref.incarnation, 20_000)
    assert isinstance(ticket, BuildTicket), ticket
    await served.sessions.commit_build(ticket, summary())
    return ticket


async def test_what_stands_already_is_told_at_once_and_an_erasure_ends_the_stream(served: Served) -> None:
    await append(served, *[LONG] * 12)
    listener = Listener(app_of(served))
    assert (await listener.event())[0] == "degraded"
    await served.client.delete("/v1/sessions/s1")
    assert (await listener.event())[0] == "erased"
    async with asyncio.timeout(10):
        await listener.task


async def test_another_life_of_the_session_is_an_erasure_of_the_one_that_was_listened_to(served: Served) -> None:
    listener = Listener(app_of(served))
    await listener.next()
    await served.sessions.erase("default", "s1")
    await served.sessions.open("default", "s1", SessionOptions())
    assert (await listener.event())[0] == "erased"
    await listener.task


async def test_a_stream_ends_when_the_process_stops_and_when_the_client_goes(served: Served) -> None:
    app = app_of(served)
    listeners = [Listener(app) for _ in range(3)]
    for listener in listeners:
        await listener.next()
    listeners[0].hang_up()
    await listeners[0].task
    app.stopping.set()
    async with asyncio.timeout(10):
        await asyncio.gather(*(listener.task for listener in listeners))
    last = [await listener.next() for listener in listeners]
    assert all(message["type"] == "http.response.body" for message in last)


async def test_streams_are_bounded_and_make_room_again(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_calls, "MOST_STREAMS", 1)
    app = app_of(served)
    first = Listener(app)
    await first.next()
    await first.next()
    refused = await served.client.get(URL)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")
    first.hang_up()
    await first.task
    second = Listener(app)
    assert (await second.next())["status"] == 200
    second.hang_up()
    await second.task


async def test_listeners_that_come_at_once_are_all_counted(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_calls, "MOST_STREAMS", 2)
    app = app_of(served)
    listeners = [Listener(app) for _ in range(6)]
    assert sorted([(await one.next())["status"] for one in listeners]) == [200, 200, 429, 429, 429, 429]
    for one in listeners:
        one.hang_up()
        await one.task


async def test_a_session_that_is_not_there_has_no_events(served: Served) -> None:
    assert (await served.client.get("/v1/sessions/none/events")).status_code == 404
    head = await served.client.head(URL)
    assert (head.status_code, head.content) == (200, b"")
