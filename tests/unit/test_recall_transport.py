"""The thin HTTP client against servers that behave and servers that do not. On asyncio's loop and on uvloop's."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
import uvloop

from prefold.errors import ConfigurationError, UnavailableError
from prefold.recall.transport import HttpTransport

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Served:
    """What a test server saw."""

    def __init__(self) -> None:
        self.connections = 0
        self.requests: list[bytes] = []


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
    return head + await reader.readexactly(length)


@asynccontextmanager
async def serving(answers: Callable[[int], bytes | None]) -> AsyncIterator[tuple[str, Served]]:
    """Answers request n with ``answers(n)`` and closes the connection after None."""
    served = Served()
    writers: list[asyncio.StreamWriter] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.connections += 1
        writers.append(writer)
        try:
            while True:
                served.requests.append(await read_request(reader))
                answer = answers(len(served.requests))
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", served
    finally:
        server.close()
        for writer in writers:
            writer.close()
        await server.wait_closed()


def transport(url: str, **changes: Any) -> HttpTransport:
    options: dict[str, Any] = {
        "headers": {},
        "connect_timeout": timedelta(seconds=2),
        "request_timeout": timedelta(seconds=5),
        "max_connections": 4,
    }
    return HttpTransport(url, **{**options, **changes})


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, None]], None]:
    def runner(main: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=request.param) as started:
            started.run(main)

    return runner


Run = Callable[[Coroutine[Any, Any, None]], None]


def test_a_request_carries_host_headers_and_body_and_the_answer_comes_whole(run: Run) -> None:
    async def main() -> None:
        async with serving(lambda _: OK) as (url, served), transport(f"{url}/base/", headers={"api-key": "k"}) as http:
            answer = await http.request("POST", "/path?x=1", b'{"a":1}')
        assert answer == (200, b"ok")
        [request] = served.requests
        assert request.startswith(b"POST /base/path?x=1 HTTP/1.1\r\n")
        assert request.endswith(b'\r\n\r\n{"a":1}')
        assert f"host: {url.removeprefix('http://')}\r\n".encode() in request
        assert b"api-key: k\r\n" in request

    run(main())


def test_one_connection_serves_one_request_after_the_other(run: Run) -> None:
    async def main() -> None:
        async with serving(lambda _: OK) as (url, served), transport(url) as http:
            for _ in range(5):
                await http.request("GET", "/")
        assert (served.connections, len(served.requests)) == (1, 5)

    run(main())


def test_no_more_connections_are_opened_than_allowed(run: Run) -> None:
    async def main() -> None:
        async with serving(lambda _: OK) as (url, served), transport(url, max_connections=3) as http:
            answers = await asyncio.gather(*(http.request("GET", "/") for _ in range(30)))
        assert len(answers) == 30
        assert served.connections <= 3

    run(main())


def test_a_chunked_answer_in_pieces_is_put_together(run: Run) -> None:
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"

    async def main() -> None:
        async with serving(lambda _: chunked) as (url, served), transport(url) as http:
            answers = [await http.request("GET", "/") for _ in range(2)]
        assert [answer.body for answer in answers] == [b"abcde", b"abcde"]
        assert served.connections == 1

    run(main())


def test_an_error_status_is_an_answer(run: Run) -> None:
    async def main() -> None:
        sent = b"HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy"
        async with serving(lambda _: sent) as (url, served), transport(url) as http:
            assert await http.request("GET", "/") == (503, b"busy")
        assert len(served.requests) == 1

    run(main())


def test_a_server_that_wants_to_close_is_left(run: Run) -> None:
    async def main() -> None:
        closing = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"
        async with serving(lambda _: closing) as (url, served), transport(url) as http:
            for _ in range(2):
                assert (await http.request("GET", "/")).body == b"ok"
        assert served.connections == 2

    run(main())


def test_a_pooled_connection_that_was_closed_meanwhile_is_replaced_once(run: Run) -> None:
    async def main() -> None:
        async with serving(lambda n: None if n == 2 else OK) as (url, served), transport(url) as http:
            await http.request("GET", "/")
            assert (await http.request("GET", "/")).body == b"ok"
        assert (served.connections, len(served.requests)) == (2, 3)

    run(main())


def test_a_new_connection_that_is_closed_without_an_answer_is_not_tried_again(run: Run) -> None:
    async def main() -> None:
        async with serving(lambda _: None) as (url, served), transport(url) as http:
            with pytest.raises(UnavailableError):
                await http.request("GET", "/")
        assert len(served.requests) == 1

    run(main())


@pytest.mark.parametrize(
    "begun",
    [b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf", b"this is not HTTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nco"],
    ids=["half a body", "not http", "half a head"],
)
def test_an_answer_that_breaks_off_or_is_none_is_not_tried_again(run: Run, begun: bytes) -> None:
    sent: list[int] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in (OK, begun):
            await read_request(reader)
            sent.append(1)
            writer.write(answer)
            await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        async with server, transport(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as http:
            await http.request("GET", "/")
            with pytest.raises(UnavailableError):
                await http.request("GET", "/")
        assert len(sent) == 2

    run(main())


def test_a_silent_server_is_given_up_and_its_late_answer_meets_nobody(run: Run) -> None:
    async def main() -> None:
        release = asyncio.Event()
        bodies = iter([b"late", b"mine"])

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_request(reader)
            body = next(bodies)
            if body == b"late":
                await release.wait()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n" + body)
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, transport(url, request_timeout=timedelta(seconds=0.1)) as http:
            with pytest.raises(UnavailableError, match="did not answer within"):
                await http.request("GET", "/")
            release.set()
            assert (await http.request("GET", "/")).body == b"mine"

    run(main())


def test_a_cancelled_request_leaves_no_half_used_connection(run: Run) -> None:
    async def main() -> None:
        arrived = asyncio.Event()

        def answer(number: int) -> bytes:
            arrived.set()
            return b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n" if number == 1 else OK

        async with serving(answer) as (url, served), transport(url, max_connections=1) as http:
            waiting = asyncio.create_task(http.request("GET", "/"))
            await arrived.wait()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert (await http.request("GET", "/")).body == b"ok"
        assert served.connections == 2

    run(main())


def test_nobody_listening_is_unavailable(run: Run) -> None:
    async def main() -> None:
        async with serving(lambda _: OK) as (url, _served):
            pass
        async with transport(url) as http:
            with pytest.raises(UnavailableError, match="cannot be reached"):
                await http.request("GET", "/")

    run(main())


@pytest.mark.parametrize("url", ["", "127.0.0.1:6333", "ftp://host", "http://", "unix:///x"])
def test_an_address_that_is_none_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigurationError):
        transport(url)


@pytest.mark.parametrize("value", ["a\r\nevil: 1", "a\nb", "schlüssel\u2603"])
def test_a_key_that_no_header_can_carry_is_a_configuration_error(value: str) -> None:
    with pytest.raises(ConfigurationError):
        transport("http://127.0.0.1:1", headers={"api-key": value})
