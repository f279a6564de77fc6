"""Requests that arrive whole take the short way of the two hot calls, and are answered as on the general one."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
import pytest

from prefold.gateway import short_calls
from prefold.gateway.door import Door
from prefold.gateway.shortcut import HotCalls
from prefold.gateway.whole_requests import WholeRequest, WholeRequestProtocol
from prefold.serving import answer, listening, url_of
from prefold.storage.hot import HotClient
from prefold.storage.types import BuildTicket, BuiltSummary, HeadFragment, SessionOptions
from tests.support.gateway import Served, served_gateway
from tests.support.redis import RunningRedis, running_redis
from tests.support.remembered import add_fact
from tests.support.waiting import wait_until_async

TURNS = "/v1/sessions/s1/turns"
CONTEXT = "/v1/sessions/s1/context"
LONG = "The parcel left Leipzig on Tuesday. " * 60


@dataclass
class Spied:
    """A shortcut that counts what it took."""

    hot: HotCalls
    taken: Counter[bool] = field(default_factory=Counter)

    def knows(self, method: bytes, target: bytes) -> bool:
        return self.hot.knows(method, target)

    def take(self, request: WholeRequest) -> bool:
        took = self.hot.take(request)
        self.taken[took] += 1
        return took


@dataclass
class Gateway:
    """A gateway behind a socket, and one behind none: what it says comes the general way."""

    port: int
    spied: Spied
    served: Served
    protocols: list[WholeRequestProtocol]

    async def send(self, *pieces: bytes, answers: int = 1) -> list["Answer"]:
        """Answers to these bytes on one connection. Between pieces the server has time to read."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                if piece is not pieces[-1]:
                    await asyncio.sleep(0.02)  # a pause of the client's
            async with asyncio.timeout(20):
                return [await Answer.read(reader) for _ in range(answers)]
        finally:
            writer.close()

    @property
    def in_flight(self) -> int:
        return self.spied.hot.parts.metrics.in_flight


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @classmethod
    async def read(cls, reader: asyncio.StreamReader) -> "Answer":
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        return cls(int(first.split()[1]), headers, await reader.readexactly(int(headers.get("content-length", "0"))))

    def without_its_own(self) -> dict[str, Any]:
        """Without what differs from request to request."""
        own = ("date", "x-request-id", "connection")
        headers = {name: value for name, value in self.headers.items() if name not in own}
        body = re.sub(rb'"id":"[0-9a-f]{24}"', b'"id":"made"', self.body)
        return {"status": self.status, "headers": headers, "body": body}


def post(body: bytes, path: str = TURNS, *more: str, length: int | None = None) -> bytes:
    head = (f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", *more)
    size = len(body) if length is None else length
    return "\r\n".join((*head, f"Content-Length: {size}", "", "")).encode() + body


def get(path: str = CONTEXT, *more: str, method: str = "GET") -> bytes:
    return "\r\n".join((f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *more, "", "")).encode()


def turn(number: int = 1, content: object = "Where is my parcel?", **members: object) -> bytes:
    return json.dumps({"id": f"t{number}", "role": "user", "content": content, **members}).encode()


@asynccontextmanager
async def short_way(redis_url: str, **given: Any) -> AsyncIterator[Gateway]:
    async with served_gateway(redis_url, **given) as served:
        door = cast("Door", served.transport.app)
        assert isinstance(door.shortcut, HotCalls)
        spied, protocols, stop = Spied(door.shortcut), [], asyncio.Event()

        def protocol(*arguments: Any, **named: Any) -> WholeRequestProtocol:
            protocols.append(WholeRequestProtocol(*arguments, shortcut=spied, **named))
            return protocols[-1]

        await served.sessions.users.epoch("nobody", "u")
        await connected(served)
        with listening("127.0.0.1", 0) as listener:
            serving = asyncio.create_task(answer(door, listener, stop, http=protocol))
            try:
                yield Gateway(int(url_of(listener).rpartition(":")[2]), spied, served, protocols)
            finally:
                stop.set()
                await serving


async def connected(served: Served) -> None:
    """The lean connection is made by the first call that needs it."""
    with suppress(Exception):
        await served.sessions.read_context("default", "nobody")


BODIES = [
    pytest.param(turn(), id="words"),
    pytest.param(turn(2, LONG), id="words that have a short form"),
    pytest.param(turn(3, [{"type": "text", "text": "hello"}]), id="blocks"),
    pytest.param(turn(4, "ünï\n\"quoted\" \\ \U0001f600", ts=12, metadata={"a": [1]}), id="other members"),
    pytest.param(b'{"role":"user","content":"no id"}', id="no id"),
    pytest.param(b'{"turns":[%b,%b]}' % (turn(5), turn(6, "two")), id="two turns"),
    pytest.param(turn(7, [{"type": "tool_use", "id": "c", "name": "f", "input": {}}], role="assistant"), id="a call"),
]  # fmt: skip
REFUSED = [
    pytest.param(b"{", id="no JSON"),
    pytest.param(b'{"id":"a","id":"b","role":"user","content":"x"}', id="a key twice"),
    pytest.param(turn(1, ""), id="empty content"),
    pytest.param(turn(1, role="nobody"), id="no role"),
    pytest.param(b'{"turns":[]}', id="no turns"),
    pytest.param(b"", id="no body"),
]


@pytest.mark.parametrize("body", BODIES)
async def test_an_append_is_answered_and_stored_as_on_the_general_way(queue_server: RunningRedis, body: bytes) -> None:
    outcomes = []
    for pieces in (lambda whole: (whole,), lambda whole: (whole[:-5], whole[-5:])):
        queue_server.flush()
        async with short_way(queue_server.url) as gateway:
            whole = post(body)
            first, again = [(await gateway.send(*pieces(whole)))[0].without_its_own() for _ in range(2)]
            stored = await gateway.served.sessions.read_context("default", "s1")
            log = await gateway.served.sessions.read_turns("default", "s1", 0, 100)
            lines = [re.sub(rb'"id":"[0-9a-f]{24}"', b"", one.verbatim_json) for one in log]
            outcomes.append((first, again, stored.body, lines))
            assert gateway.spied.taken == (Counter({True: 2}) if len(pieces(whole)) == 1 else Counter())
            assert gateway.in_flight == 0
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][0]["status"] == 201


@pytest.mark.parametrize("body", REFUSED)
async def test_what_is_refused_is_refused_by_the_general_way(redis_url: str, body: bytes) -> None:
    async with short_way(redis_url) as gateway:
        (whole,), (pieced,) = await gateway.send(post(body)), await gateway.send(post(body)[:20], post(body)[20:])
        assert whole.without_its_own() == pieced.without_its_own()
        assert 400 <= whole.status < 500 and whole.headers["content-type"] == "application/problem+json"
        assert not gateway.spied.taken[True]
        assert gateway.in_flight == 0


async def test_refusals_of_the_store_are_the_same_problem_documents(redis_url: str) -> None:
    async with short_way(redis_url) as gateway:
        await gateway.send(post(turn(1)))
        conflict = post(turn(1, "something else"))
        (whole,), (pieced,) = await gateway.send(conflict), await gateway.send(conflict[:-5], conflict[-5:])
        assert (whole.status, json.loads(whole.body)["code"]) == (409, "turn_conflict")
        assert whole.without_its_own() == pieced.without_its_own()
        await gateway.served.sessions.erase("default", "s1")
        ((gone,), (missing,)) = await gateway.send(post(turn(2))), await gateway.send(get())
        assert (gone.status, missing.status) == (410, 410)
        assert gateway.spied.taken[True] == 4
        assert gateway.in_flight == 0


async def read_both_ways(gateway: Gateway) -> bytes:
    """The context by the short way; it must be that of the general one, to the byte and in its headers."""
    (short,) = await gateway.send(get())
    general = await gateway.served.client.get(CONTEXT)
    assert (short.status, short.body) == (general.status_code, general.content)
    for name in ("etag", "content-type", "cache-control", "content-length", "x-content-type-options"):
        assert short.headers[name] == general.headers[name]
    return short.body


async def test_contexts_are_the_same_by_both_ways_whatever_happens_to_the_session(redis_url: str) -> None:
    async with short_way(redis_url) as gateway:
        sessions, client = gateway.served.sessions, gateway.served.client
        seen = set()
        for number in range(1, 9):
            role = "assistant" if number % 3 == 0 else "user"
            await gateway.send(post(turn(number, f"{number} {LONG}", role=role)))
            seen.add(await read_both_ways(gateway))
            await read_both_ways(gateway)  # nothing has come
        await client.put("/v1/sessions/s1/turns/t2", json={"role": "user", "content": "corrected"})
        seen.add(await read_both_ways(gateway))
        await client.post("/v1/sessions/s1/rewind", json={"to_seq": 5})
        seen.add(await read_both_ways(gateway))
        await gateway.send(post(turn(20, "after the rewind")))
        seen.add(await read_both_ways(gateway))
        await client.put("/v1/sessions/s1/state", json={"goal": "to find the parcel"})
        seen.add(await read_both_ways(gateway))
        await sessions.open(
            "default", "s1", SessionOptions(system="Be brief.", system_tokens=3, hard_limit_tokens=2000)
        )
        seen.add(await read_both_ways(gateway))
        for number in range(30, 36):  # over the limit, so that the ladder works
            await gateway.send(post(turn(number, LONG)))
            seen.add(await read_both_ways(gateway))
        await client.delete("/v1/sessions/s1")
        await sessions.open("default", "s1", SessionOptions())
        await gateway.send(post(turn(1, "a new life")))
        assert b"Leipzig" not in await read_both_ways(gateway)
        assert len(seen) == 19
        assert gateway.spied.taken[False] == 0
        assert gateway.in_flight == 0


async def test_a_swap_is_seen_by_both_ways(redis_url: str) -> None:
    async with short_way(redis_url) as gateway:
        sessions = gateway.served.sessions
        options = SessionOptions(hard_limit_tokens=4_000, soft_ratio=0.5, keep_recent_turns=2)
        await sessions.open("default", "s1", options)
        for number in range(6):
            await gateway.send(post(turn(number, LONG)))
            await read_both_ways(gateway)
        life = (await sessions.view("default", "s1")).ref.incarnation
        ticket = await sessions.begin_build("default", "s1", life, 20_000)
        assert isinstance(ticket, BuildTicket), ticket
        fragment = HeadFragment("summary", b'{"type":"text","text":"A parcel was sent."}', 20)
        await sessions.commit_build(ticket, BuiltSummary((fragment,), "{}", 1.0))
        for number in range(6, 16):
            await gateway.send(post(turn(number, LONG)))
            await read_both_ways(gateway)
        assert (await sessions.view("default", "s1")).swaps == 1
        assert b"A parcel was sent." in await read_both_ways(gateway)
        assert gateway.spied.taken[False] == 0


async def test_a_users_profile_stands_in_the_context_by_both_ways(redis_url: str) -> None:
    async with short_way(redis_url) as gateway:
        client = gateway.served.client
        await client.put("/v1/sessions/s1", json={"user": "u"})
        await gateway.send(post(turn(1)))
        assert b"Lisbon" not in await read_both_ways(gateway)
        assert b"Lisbon" not in await read_both_ways(gateway)
        fact = {"relation": "lives_in", "object": "Lisbon", "category": "location"}
        made = await client.post("/v1/users/u/facts", json=fact)
        assert made.status_code == 201
        for _ in range(3):
            assert b"Lisbon" in await read_both_ways(gateway)
        await gateway.send(post(turn(2, "and now?")))
        assert b"and now?" in await read_both_ways(gateway)
        await client.delete(f"/v1/users/u/facts/{made.json()['id']}")
        assert b"Lisbon" not in await read_both_ways(gateway)


async def test_facts_without_room_in_the_profile_are_counted_by_both_ways_and_each_changes_the_tag(
    redis_url: str,
) -> None:
    async with short_way(redis_url) as gateway:
        client = gateway.served.client
        await client.put("/v1/sessions/s1", json={"user": "u"})
        await gateway.send(post(turn(1)))
        for number in range(61):
            await add_fact(gateway.served.sessions, "u", subject="user", relation="likes", object=f"dish {number}")
        one = json.loads(await read_both_ways(gateway))
        shown = str(one["messages"]).count("dish ")
        assert one["left_out"] == [{"part": "profile", "tokens": None, "reason": "over_cap", "count": 61 - shown}]
        assert 5 < shown < 40
        tag = (await client.get(CONTEXT)).headers["etag"]
        sessions = gateway.served.sessions
        await add_fact(sessions, "u", subject="user", relation="likes", object="dish 61", confidence=0.5)
        changed = await client.get(CONTEXT, headers={"if-none-match": tag})
        assert (changed.status_code, changed.json()["messages"]) == (200, one["messages"])
        assert changed.json()["left_out"][0]["count"] == 62 - shown
        assert json.loads(await read_both_ways(gateway)) == changed.json()


@pytest.mark.parametrize(
    "request_bytes",
    [
        post(turn(), TURNS + "?a=b"),
        post(turn(), "/v1/sessions/s%31/turns"),
        post(turn(), TURNS, "Content-Encoding: gzip"),
        post(turn(), TURNS, "Content-Type: text/plain"),
        post(turn(), TURNS, "Expect: 100-continue", length=len(turn())),
        post(turn(), TURNS, "Connection: close"),
        post(turn(1, "x" * 70_000)),
        get(CONTEXT + "?format=openai"),
        get(CONTEXT, 'If-None-Match: "x"'),
        get(CONTEXT, "Connection: close"),
        get(CONTEXT, method="HEAD"),
        get("/v1/sessions/%2Fx/context"),
        get(CONTEXT, "Origin: https://elsewhere.example"),
    ],
)
async def test_what_is_unusual_goes_the_general_way(redis_url: str, request_bytes: bytes) -> None:
    async with short_way(redis_url) as gateway:
        await gateway.send(post(turn(9)))
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(request_bytes)
        async with asyncio.timeout(10):
            assert (await reader.readline()).startswith(b"HTTP/1.1 ")
        writer.close()
        assert gateway.spied.taken[True] == 1


async def test_requests_in_one_piece_are_answered_in_their_order(redis_url: str) -> None:
    """Hot and other calls, each of which must see what the one before it did."""
    async with short_way(redis_url) as gateway:
        sent = []
        for number in range(1, 7):
            sent += [post(turn(number, f"number {number}")), get(), get("/livez"), get(CONTEXT + "?format=openai")]
        for pieces in ((b"".join(sent),), (b"".join(sent)[:900], b"".join(sent)[900:])):
            answers = await gateway.send(*pieces, answers=len(sent))
            assert [one.status for one in answers] == [201, 200, 200, 200] * 6
            for number in range(1, 7):
                assert f"number {number}".encode() in answers[4 * number - 3].body
        assert gateway.in_flight == 0


async def test_what_is_no_http_behind_a_request_does_not_cost_the_others_the_stores_connection(redis_url: str) -> None:
    """The refusal ends the connection while the store is still asked; the answer that comes has no place to go."""
    async with short_way(redis_url) as gateway:
        await gateway.send(post(turn(1)))
        hot = gateway.served.sessions._hot
        assert isinstance(hot, HotClient)
        before = hot.connections_made
        (refused,) = await gateway.send(post(turn(1, "something else")) + b"\x00no request\r\n\r\n")
        assert (refused.status, json.loads(refused.body)["code"]) == (400, "malformed_http")
        await wait_until_async("it has ended", lambda: asyncio.sleep(0, gateway.in_flight == 0))
        assert (await gateway.send(get()))[0].status == 200
        assert hot.connections_made == before


async def test_nothing_is_answered_behind_a_refusal_and_nothing_breaks(
    redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with short_way(redis_url) as gateway:
        for before in (get("/livez"), get("/livez") * 3, get() + get("/livez")):
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            writer.write(before + b"\x00no request\r\n\r\n")
            async with asyncio.timeout(10):
                said = await reader.read()
            writer.close()
            assert (said.count(b"HTTP/1.1 "), said[:12]) == (1, b"HTTP/1.1 400")
        await wait_until_async("it has ended", lambda: asyncio.sleep(0, gateway.in_flight == 0))
    assert "Exception in ASGI application" not in caplog.text


@pytest.mark.parametrize("target", ["http://a:99999/turns", "http://turns"])
async def test_a_target_that_is_none_is_refused_whether_it_comes_whole_or_not(redis_url: str, target: str) -> None:
    async with short_way(redis_url) as gateway:
        whole = post(turn(1), target)
        for pieces in ((whole,), (whole[:-5], whole[-5:])):
            (refused,) = await gateway.send(*pieces)
            assert (refused.status, json.loads(refused.body)["code"]) == (400, "malformed_http")


async def test_many_connections_share_round_trips_and_lose_nothing(redis_url: str) -> None:
    async with short_way(redis_url) as gateway:

        async def lane(name: str) -> list[int]:
            path = f"/v1/sessions/{name}/turns"
            answers = await gateway.send(*(post(turn(number), path) for number in range(5)), answers=5)
            return [json.loads(one.body)["turns"][0]["seq"] for one in answers]

        seqs = await asyncio.gather(*(lane(f"lane{number}") for number in range(24)))
        assert seqs == [[1, 2, 3, 4, 5]] * 24
        assert gateway.in_flight == 0


async def test_scripts_that_are_gone_and_connections_that_break_are_ridden_through() -> None:
    with running_redis() as server:
        async with short_way(server.url) as gateway:
            assert (await gateway.send(post(turn(1))))[0].status == 201
            await gateway.served.sessions.client.script_flush()
            assert (await gateway.send(post(turn(2))))[0].status == 201
            hot = gateway.served.sessions._hot
            assert isinstance(hot, HotClient) and hot._connection is not None
            both = asyncio.gather(gateway.send(post(turn(3))), gateway.send(get()))
            await wait_until_async("both wait for the store", lambda: asyncio.sleep(0, bool(hot._connection)))
            await gateway.served.sessions.client.client_kill_filter(_type="normal", skipme=True)
            answers = await both
            assert [one.status for (one,) in answers] == [201, 200]
            assert (await gateway.send(get()))[0].status == 200
            assert gateway.in_flight == 0


async def test_a_store_that_hangs_is_answered_for_in_time_and_the_connection_lives_on() -> None:
    with running_redis() as server:
        async with short_way(server.url, request_timeout_ms=300) as gateway:
            await gateway.send(post(turn(1)))
            server.freeze()
            try:
                stuck = await asyncio.gather(gateway.send(post(turn(2))), gateway.send(get()))
            finally:
                server.thaw()
            assert [(one.status, json.loads(one.body)["code"]) for (one,) in stuck] == [(503, "timeout")] * 2
            assert all(one.headers["retry-after"] for (one,) in stuck)
            assert gateway.in_flight == 0
            assert (await gateway.send(post(turn(3)), answers=1))[0].status == 201


async def test_a_client_that_hangs_up_leaves_nothing_behind() -> None:
    with running_redis() as server:
        async with short_way(server.url, request_timeout_ms=300) as gateway:
            await gateway.send(post(turn(1)))
            server.freeze()
            _, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            writer.write(post(turn(2)))
            await wait_until_async("it is under way", lambda: asyncio.sleep(0, gateway.in_flight == 1))
            writer.close()
            server.thaw()
            await wait_until_async("it has ended", lambda: asyncio.sleep(0, gateway.in_flight == 0))
            await wait_until_async(
                "no connection is left", lambda: asyncio.sleep(0, not gateway.protocols[0].connections)
            )


async def test_a_fault_in_the_short_way_is_a_500_or_the_general_ways(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with short_way(redis_url) as gateway:
        with monkeypatch.context() as patch:
            patch.setattr(short_calls, "prepare_body", lambda *_: 1 / 0)
            assert (await gateway.send(post(turn(1))))[0].status == 201
        with monkeypatch.context() as patch:
            patch.setattr(short_calls, "append_json", lambda *_: 1 / 0)
            (broken,) = await gateway.send(post(turn(2)))
        assert (broken.status, orjson.loads(broken.body)["code"]) == (500, "internal")
        assert (await gateway.send(post(turn(2))))[0].status == 201
        assert gateway.in_flight == 0


async def test_without_a_free_place_a_request_waits_on_the_general_way(redis_url: str) -> None:
    async with short_way(redis_url, requests_at_once=4) as gateway:
        admission = gateway.spied.hot.parts.admission
        queue = admission.arrive("other")
        assert all(admission.try_enter(queue, 0.0) for _ in range(4))
        waiting = asyncio.ensure_future(gateway.send(post(turn(1))))
        await wait_until_async("it waits", lambda: asyncio.sleep(0, admission.waiting == 1))
        assert gateway.spied.taken == Counter({False: 1})
        admission.leave(queue, 0.0)
        assert (await waiting)[0].status == 201
        assert (await gateway.send(post(turn(2))))[0].status == 201
        assert gateway.spied.taken[True] == 1


async def test_an_idle_connection_is_closed_and_a_busy_one_is_not(redis_url: str) -> None:
    async with short_way(redis_url) as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(get("/livez"))
        assert (await Answer.read(reader)).status == 200
        (protocol,) = gateway.protocols
        protocol.timeout_keep_alive = 0.2  # type: ignore[assignment]  # fractions serve as well
        assert protocol._idle_timer is not None
        protocol._idle_timer.cancel()
        protocol._idle_timer = None
        for number in range(6):
            writer.write(post(turn(number)))
            assert (await Answer.read(reader)).status == 201
            await asyncio.sleep(0.06)  # less than the timeout, together more
        async with asyncio.timeout(10):
            assert await reader.read() == b""
        writer.close()


async def test_a_server_that_stops_finishes_what_is_under_way(redis_url: str) -> None:
    async with short_way(redis_url) as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(post(turn(1)))
        await wait_until_async("it is under way", lambda: asyncio.sleep(0, gateway.spied.taken[True] == 1))
    async with asyncio.timeout(10):
        assert (await Answer.read(reader)).status == 201
        assert await reader.read() == b""
    writer.close()
