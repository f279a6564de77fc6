"""The session store's files, written anew after an erasure: until then they still hold what was erased."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import structlog
from redis.asyncio import Redis

from prefold.errors import TransientError
from prefold.gateway.answers import Remains
from prefold.storage.command_logs import CommandLogs
from prefold.storage.store_files import FileKind, Started, StoreFiles

log = structlog.get_logger(__name__)

_NAMES: Final[dict[FileKind, str]] = {"log": "redis append-only file", "snapshot": "redis snapshot file"}
_STARTED: Final = "the rewrite that was started now"
_OWED: Final = "the rewrite that follows within seconds of the one before it"
_REFUSED: Final = "the server's next rewrite, which it does not let us start"


class LogRewrites:
    """Asks for rewrites. One that is under way began before the erasure, so another one is owed after it.

    Many erasures in a row share rewrites: a server is asked once in ``pause_seconds``.
    """

    def __init__(
        self, redis: Redis, *, pause_seconds: float = 3.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._files = StoreFiles(redis)
        self._logs = CommandLogs(redis)
        self._pause_seconds = pause_seconds
        self._clock = clock
        self._started: dict[tuple[str, FileKind], float] = {}
        self._owed: dict[tuple[str, FileKind], str] = {}
        self._is_owed = asyncio.Event()

    async def ask(self, *keys: str) -> list[Remains]:
        """Starts the rewrites of what the servers of ``keys`` keep, or owes them; what remains until then, each once.

        Empties their logs of slow commands where these quote the session or user of a key. Raises ``UnavailableError``.
        """
        quoted = [await self._logs.forget(key) for key in keys]
        places = {self._files.place(key): key for key in keys or ("",)}
        files = [one for key in places.values() for one in await self._ask_one(key)]
        if None in quoted:
            files.append(Remains(where="log of slow commands", until="newer ones displace it, or the server restarts"))
        return list({one.where: one for one in files}.values())

    async def _ask_one(self, key: str) -> list[Remains]:
        kept = await self._files.kept(key)
        remains = []
        if kept.log is not False:  # None: it does not say, and then it is not asked either
            until = _REFUSED if kept.log is None else await self._ask("log", key)
            remains.append(Remains(where=_NAMES["log"], until=until))
        if kept.snapshot:
            remains.append(Remains(where=_NAMES["snapshot"], until=await self._ask("snapshot", key)))
        if kept.replicas:
            remains.append(Remains(where="files of its replicas", until="each replica has written its own anew"))
        return remains

    async def _ask(self, kind: FileKind, key: str) -> str:
        if await self._start(kind, key):
            return _STARTED
        return _OWED if (self._files.place(key), kind) in self._owed else _REFUSED

    async def settle(self) -> None:
        """Starts what is owed as soon as the server takes it. Runs until it is cancelled."""
        while True:
            await self._is_owed.wait()
            await asyncio.sleep(self._pause_seconds)
            for (_, kind), key in list(self._owed.items()):
                try:
                    await self._start(kind, key)
                except TransientError as error:
                    log.warning("rewrite_waits", reason=error.detail)

    async def _start(self, kind: FileKind, key: str) -> bool:
        """True when one was started now; else it is owed, unless the server refuses."""
        place = self._files.place(key), kind
        begun = self._started.get(place)
        is_too_soon = begun is not None and self._clock() - begun < self._pause_seconds
        outcome: Started = "under_way" if is_too_soon else await self._files.write_anew(kind, key)
        if outcome == "under_way":
            self._owed[place] = key
        else:
            self._owed.pop(place, None)
        if outcome == "started":
            self._started[place] = self._clock()
        elif outcome == "refused":
            log.warning("rewrite_refused", file=kind)
        self._is_owed.set() if self._owed else self._is_owed.clear()
        return outcome == "started"


@asynccontextmanager
async def opened_rewrites(redis: Redis, *, pause_seconds: float = 3.0) -> AsyncIterator[LogRewrites]:
    """Rewrites whose debts are settled in the background until the end."""
    rewrites = LogRewrites(redis, pause_seconds=pause_seconds)
    settling = asyncio.create_task(rewrites.settle(), name="log rewrites")
    try:
        yield rewrites
    finally:
        settling.cancel()
        with suppress(asyncio.CancelledError):
            await settling
