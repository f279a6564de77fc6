"""Writes that are answered only once enough replicas have them.

Callers share one ``WAIT`` a batch: while it lasts the next batch gathers, so a slow replica costs each caller two of
them at most, and other connections nothing. In front of it goes a write of our own. ``WAIT`` speaks of the last write
of its connection, so after a script that had nothing left to do, such as the repeat of a turn that another connection
stored, it would answer at once and prove nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from redis.asyncio import Redis

from prefold.errors import UnavailableError
from prefold.storage.hot import Argument, HotClient, connect_hot
from prefold.storage.keys import mark_beside
from prefold.storage.limits import milliseconds

__all__ = ["ReplicatedWrites", "connect_replicated"]

if TYPE_CHECKING:
    import structlog
else:
    try:
        import structlog
    except ImportError:  # a backend that has the base dependencies only
        from prefold.storage import plain_log as structlog

log = structlog.get_logger(__name__)

Command = Sequence[Argument]
Exchange = Callable[[Sequence[Command]], Awaitable[list[Any]]]
"""Sends commands together on one connection; the replies, refusals among them as exceptions."""
_MOST_AT_ONCE = 256
_MARK_LASTS = timedelta(minutes=1)


class ReplicatedWrites:
    """Runs scripts as a client does, and answers when ``needed`` replicas have what they wrote.

    Raises ``UnavailableError`` (not_replicated) when too few confirm it in time. The write stands on the primary then:
    a repeat changes nothing and waits again.
    """

    def __init__(self, client: HotClient | Redis) -> None:
        self._client = client
        self._exchange = client.exchange if isinstance(client, HotClient) else _exchange_of(client)
        self._gathered: list[tuple[Command, asyncio.Future[Any]]] = []
        self._sending: asyncio.Task[None] | None = None
        self.needed = 0
        """Replicas that have to confirm; 0: whoever asks need not come here."""
        self.within_ms = 1000
        """Longest wait for them."""

    async def evalsha(self, sha: str, numkeys: int, *keys_and_args: Argument) -> Any:
        """The script's reply, once it is replicated."""
        return await self._replicated(("EVALSHA", sha, numkeys, *keys_and_args))

    async def confirm(self, key: str) -> None:
        """Returns once all that was written before is replicated, as far as it is on the server of ``key``."""
        await self._replicated(_mark(key))

    async def script_load(self, script: str) -> Any:
        """The script's digest."""
        return await self._client.script_load(script)

    @property
    def connections_made(self) -> int:
        """Of the connection that waits; see ``HotClient``."""
        return self._client.connections_made if isinstance(self._client, HotClient) else 0

    async def _replicated(self, command: Command) -> Any:
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._gathered.append((command, reply))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_gathered())
        return await reply

    async def _send_gathered(self) -> None:
        while self._gathered:
            now, self._gathered = self._gathered[:_MOST_AT_ONCE], self._gathered[_MOST_AT_ONCE:]
            batch = [(command, reply) for command, reply in now if not reply.done()]  # done: its caller gave up
            if batch:
                await self._send(batch)

    async def _send(self, batch: Sequence[tuple[Command, "asyncio.Future[Any]"]]) -> None:
        try:
            commands = [command for command, _ in batch]
            *replies, marked, confirmed = await self._exchange(
                [*commands, _mark(str(commands[0][3])), ("WAIT", self.needed, self.within_ms)]
            )
        except BaseException as error:
            for _, reply in batch:
                _settle(reply, error if isinstance(error, Exception) else ConnectionError("closed"))
            if not isinstance(error, Exception):
                raise
            return
        lacking = self._lacking(marked, confirmed)
        for (_, reply), value in zip(batch, replies, strict=True):
            _settle(reply, value if lacking is None or isinstance(value, Exception) else lacking)

    def _lacking(self, marked: Any, confirmed: Any) -> UnavailableError | None:
        refused = next((one for one in (marked, confirmed) if isinstance(one, Exception)), None)
        if refused is None and confirmed >= self.needed:
            return None
        log.warning("not_replicated", confirmed=str(confirmed), needed=self.needed, refused=refused and str(refused))
        return UnavailableError(
            f"stored, but not confirmed by {self.needed} replica{'s' if self.needed > 1 else ''} in time: repeat it",
            code="not_replicated",
            retry_after=timedelta(seconds=1),
        )

    async def close(self) -> None:
        """Ends a wait that is under way."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])
        while self._gathered:
            _settle(self._gathered.pop()[1], ConnectionError("closed"))


def _settle(reply: "asyncio.Future[Any]", value: Any) -> None:
    if reply.done():
        return
    if isinstance(value, Exception):
        reply.set_exception(value)
    else:
        reply.set_result(value)


def _mark(beside: str) -> Command:
    return ("EVAL", _mark_source(), 1, mark_beside(beside), milliseconds(_MARK_LASTS))


@cache
def _mark_source() -> str:
    return (files("prefold.storage") / "scripts" / "mark.lua").read_text("utf-8")


def _exchange_of(client: Redis) -> Exchange:
    """The same over a general client, of which a batch borrows one connection."""

    async def exchange(commands: Sequence[Command]) -> list[Any]:
        async with client.pipeline(transaction=False) as pipe:
            for command in commands:
                pipe.execute_command(*command)
            return list(await pipe.execute(raise_on_error=False))

    return exchange


@asynccontextmanager
async def connect_replicated(url: str, client: Redis) -> AsyncIterator[ReplicatedWrites]:
    """On a connection of its own where the lean client serves the URL, else over ``client``. Opens nothing yet."""
    async with connect_hot(url) as hot:
        writes = ReplicatedWrites(hot or client)
        try:
            yield writes
        finally:
            await writes.close()
