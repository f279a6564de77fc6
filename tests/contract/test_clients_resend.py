"""Which clients of ours send a command again, and which never do."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, suppress
from datetime import timedelta

import pytest
from redis import Redis as BlockingRedis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from prefold.client.direct.blocking_redis import complete, connect_blocking
from prefold.jobs import queue_connection
from prefold.storage.client import connect
from prefold.storage.hot import HotClient
from prefold.storage.lean import Lean
from prefold.storage.replicated import ReplicatedWrites
from tests.support.sources import ROOT, source_files

LATE = timedelta(seconds=0.1)
COUNT = ("INCR", "times")
Send = Callable[[], Awaitable[object]]
Opened = Callable[[str], AbstractAsyncContextManager[Send]]


@asynccontextmanager
async def general(url: str) -> AsyncIterator[Send]:
    async with connect(url, timeout=LATE) as client:
        yield lambda: client.execute_command(*COUNT)  # type: ignore[no-untyped-call]


@asynccontextmanager
async def lean(url: str) -> AsyncIterator[Send]:
    client = HotClient(url, LATE.total_seconds())
    yield lambda: client.execute(COUNT)
    client.close()


@asynccontextmanager
async def replicated(url: str) -> AsyncIterator[Send]:
    client = HotClient(url, LATE.total_seconds())
    writes = ReplicatedWrites(client)
    yield lambda: writes.evalsha("0" * 40, 1, "pf1:{times}")
    await writes.close()
    client.close()


@asynccontextmanager
async def queue(url: str) -> AsyncIterator[Send]:
    with closing(queue_connection(url, reply_timeout=LATE)) as client:
        yield lambda: asyncio.to_thread(client.execute_command, *COUNT)


@asynccontextmanager
async def direct(url: str) -> AsyncIterator[Send]:
    client, sessions = connect_blocking(url, LATE.total_seconds(), timedelta(0))
    lean_writes = sessions._hot
    assert lean_writes is not None
    with closing(client):
        yield lambda: asyncio.to_thread(lambda: complete(_sent(lean_writes)))


async def _sent(lean_writes: Lean) -> object:
    return await lean_writes.execute(COUNT)


@asynccontextmanager
async def careless(url: str) -> AsyncIterator[Send]:
    """redis-py as it comes, but for the number of tries and their pauses."""
    retry = Retry(NoBackoff(), 2)
    with closing(BlockingRedis.from_url(url, socket_timeout=LATE.total_seconds(), retry=retry)) as client:
        yield lambda: asyncio.to_thread(client.execute_command, *COUNT)


class SilentServer:
    """Greets every client, and never answers a command that changes something."""

    def __init__(self) -> None:
        self.received = Counter[bytes]()
        self.url = ""
        self._serving = set[asyncio.Task[None]]()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(asyncio.ensure_future(self._serve(reader, writer)))

    async def ended(self) -> None:
        """Every client has hung up."""
        await asyncio.gather(*self._serving)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while header := await reader.readline():
                parts = [await self._part(reader) for _ in range(int(header[1:]))]
                self.received[parts[0]] += 1
                if parts[0] == b"HELLO":
                    writer.write(b"%1\r\n$5\r\nproto\r\n:3\r\n")
                elif parts[0] == b"CLIENT":
                    writer.write(b"+OK\r\n")
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def _part(self, reader: asyncio.StreamReader) -> bytes:
        size = int((await reader.readline())[1:])
        return (await reader.readexactly(size + 2))[:-2]


@asynccontextmanager
async def silent_server() -> AsyncIterator[SilentServer]:
    silent = SilentServer()
    async with await asyncio.start_server(silent.serve, "127.0.0.1", 0) as server:
        silent.url = f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield silent
        await silent.ended()


async def times_sent(opened: Opened) -> int:
    """How often a command goes out whose reply never comes."""
    async with silent_server() as server:
        async with opened(server.url) as send:
            with pytest.raises(exceptions.TimeoutError):
                await send()
        return server.received[b"INCR"] + server.received[b"EVALSHA"]


@pytest.mark.parametrize("opened", [general, lean, replicated, queue, direct])
async def test_a_command_whose_reply_does_not_come_is_not_sent_again(opened: Opened) -> None:
    assert await times_sent(opened) == 1


async def test_redis_py_left_to_itself_would_send_it_again() -> None:
    assert await times_sent(careless) == 3


async def test_after_a_lost_connection_it_goes_out_again_a_few_times_within_a_second_or_two() -> None:
    opened = 0

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        await reader.read(1)
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as rude:
        url = f"redis://127.0.0.1:{rude.sockets[0].getsockname()[1]}"
        for made in (general, lean, queue, direct):
            opened = 0
            async with asyncio.timeout(5), made(url) as send:
                with pytest.raises(exceptions.ConnectionError):
                    await send()
            assert 1 < opened <= 20, made.__name__


def test_the_table_in_the_docs_names_every_place_that_makes_a_client() -> None:
    makes = re.compile(
        r"\b(?:from_url|from_pool|RedisCluster|create_connection|create_unix_connection|httpx\.\w*Client"
        r"|HTTPConnection|urlopen|Anthropic|AsyncAnthropic|socket\.socket)\("
    )
    places = {str(path.relative_to(ROOT)) for path in source_files() if makes.search(path.read_text("utf-8"))}
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    named = set(re.findall(r"`((?:shared|services|workers)/prefold/[\w/]+\.py)`", page))
    listening = {"shared/prefold/serving/__init__.py", "services/prefold/stack/places.py"}
    assert places - listening == named
