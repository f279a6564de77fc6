"""A generator of HTTP load on raw sockets: so many connections, on each the next request when the answer is whole.

It costs a fraction of what a server spends on a request, and needs nothing that is not installed anyway.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

__all__ = ["Load", "cpu_seconds", "offer", "request"]

_LENGTH = b"content-length: "
_HEAD_END = b"\r\n\r\n"
_LONGEST_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Load:
    """What a round of requests took."""

    requests: int
    seconds: float
    server_seconds: float
    """CPU time of the server's process meanwhile."""

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.requests / self.seconds

    @property
    def cpu_us(self) -> float:
        """CPU time of the server a request."""
        return self.server_seconds / self.requests * 1e6


def request(method: str, path: str, body: bytes | None = None) -> bytes:
    """The bytes of a keep-alive request, with the headers that a plain HTTP client sends."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\nUser-Agent: bench\r\n"
    if body is None:
        return f"{head}\r\n".encode()
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads of a process so far (Linux: to the nanosecond)."""
    spent = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            spent += int((task / "schedstat").read_text().split()[0])
    return spent / 1e9


def offer(url: str, pid: int, lanes: Sequence[Sequence[bytes]], status: int | None = None) -> Load:
    """Sends each lane's requests over a connection of its own. Raises ``AssertionError`` at another answer.

    ``status`` None: any that says that it went well.
    """
    expected = b"HTTP/1.1 2" if status is None else b"HTTP/1.1 %d " % status
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_offer(url, pid, lanes, expected))


async def _offer(url: str, pid: int, lanes: Sequence[Sequence[bytes]], expected: bytes) -> Load:
    loop = asyncio.get_running_loop()
    address = urlsplit(url)
    connections = [_Lane(iter(lane), expected, loop.create_future()) for lane in lanes]
    for one in connections:
        await loop.create_connection(lambda one=one: one, address.hostname or "", address.port or 0)  # type: ignore[misc]
    before, start = cpu_seconds(pid), time.perf_counter()
    for one in connections:
        one.send_next()
    async with asyncio.timeout(_LONGEST_SECONDS):
        await asyncio.gather(*(one.done for one in connections))
    seconds, used = time.perf_counter() - start, cpu_seconds(pid) - before
    for one in connections:
        one.transport.close()
    return Load(sum(map(len, lanes)), seconds, used)


class _Lane(asyncio.Protocol):
    """One connection. ``done`` tells of its end, or of what went wrong."""

    transport: asyncio.Transport

    def __init__(self, requests: Iterator[bytes], expected: bytes, done: "asyncio.Future[None]") -> None:
        self._requests = requests
        self._expected = expected
        self.done = done
        self._head = b""
        self._left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def send_next(self) -> None:
        wanted = next(self._requests, None)
        if wanted is not None:
            self.transport.write(wanted)
        elif not self.done.done():
            self.done.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self._left:
            self._left -= len(data)
        else:
            self._head += data
            at = self._head.find(_HEAD_END)
            if at < 0:
                return
            self._left = self._length(at) - (len(self._head) - at - len(_HEAD_END))
            self._head = b""
        if not self._left:
            self.send_next()

    def _length(self, end: int) -> int:
        head = self._head[:end]
        if not head.startswith(self._expected):
            self._fail(AssertionError(f"answered {self._head[:300]!r}"))
        at = head.lower().find(_LENGTH) + len(_LENGTH)
        stop = head.find(b"\r", at)
        return int(head[at:] if stop < 0 else head[at:stop])

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(AssertionError(f"the connection was lost: {exc}"))

    def _fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop
