"""What an acknowledged turn really survives, looked at again and again, and whether the store has room for more.

The class that was asked for is never quietly answered with less: a server that is not set up for it is refused at the
start, and one that stops being so gets its turns refused (503 ``not_durable``) until it is mended. Nothing of it is
remembered for longer than ``_STALE_SECONDS``, nor over a new connection, behind which may be another server.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import structlog

from prefold.config.settings import Durability, StoreSettings
from prefold.errors import ConfigurationError, TransientError, UnavailableError
from prefold.storage.promises import Promise, promises_of, undurable
from prefold.storage.server import ServerFacts, read_servers
from prefold.storage.sessions import Sessions

__all__ = ["Store", "StoreWatch", "watched_store"]

log = structlog.get_logger(__name__)

_STALE_SECONDS = 5.0
_FULL_RETRY_AFTER = timedelta(seconds=5)


class Store(Protocol):
    """What the calls ask of the session store beside its data."""

    async def admit(self) -> None:
        """Returns when more may be stored: else ``UnavailableError`` (store_nearly_full, not_durable, not_replicated)."""
        ...

    async def promised(self) -> Durability:
        """The class of what was just written. ``UnavailableError`` (not_durable) when it is less than was asked for."""
        ...

    def known(self) -> Durability | None:
        """``admit`` and ``promised`` by what is known now; None: they have to be asked."""
        ...

    async def held(self) -> Durability:
        """The same for what must never be refused, such as a removal: the class that holds, whatever was asked for."""
        ...


@dataclass(frozen=True, slots=True)
class _Look:
    """What one look at the servers found."""

    at: float
    connections: int
    lacking: tuple[Promise, ...]
    """What the class that was asked for needs and does not have."""
    replicas: int
    used_share: float


class StoreWatch:
    """Looks at the servers in the background, and at once when what is known is too old to speak of."""

    def __init__(
        self, sessions: Sessions, settings: StoreSettings, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._sessions = sessions
        self._wanted: Durability = settings.durability
        self._replicas = settings.replicas
        self._every = settings.store_check_ms / 1000
        self._high, self._low = settings.store_high_percent / 100, settings.store_low_percent / 100
        self._clock = clock
        self._last: _Look | None = None
        self._looking: asyncio.Task[_Look] | None = None
        self._is_full = False
        if sessions.replicated is not None:
            sessions.replicated.within_ms = settings.replicas_within_ms

    async def start(self) -> None:
        """First look. ``ConfigurationError``: the server is not set up for what was asked for, with how to mend it.

        Replicas that are missing are no reason not to start: reads need none.
        """
        facts = (await read_servers(self._sessions.client)).facts
        self._warn(facts)
        look = self._judge(facts, self._sessions.connections_made)
        if look.lacking:
            lines = [f"{one.name} is {one.found}: {one.mend}" for one in look.lacking]
            way_out = "" if self._wanted == "fast" else "; or set PREFOLD_DURABILITY=fast"
            raise ConfigurationError(
                f"the session store is not set up for PREFOLD_DURABILITY={self._wanted}: {'; '.join(lines)}{way_out}",
                field="PREFOLD_DURABILITY",
            )
        log.info("store_checked", durability=self._wanted, replicas=look.replicas, must_confirm=self._needed)

    async def run(self) -> None:
        """Looks until it is cancelled."""
        while True:
            await asyncio.sleep(self._every)
            try:
                await self._look()
            except TransientError:
                continue  # who needs the store hears of it by himself
            except Exception as error:  # noqa: BLE001 (the looks go on whatever a server answers)
                log.warning("store_look_failed", error=type(error).__qualname__)

    async def admit(self) -> None:
        """See ``Store``."""
        look = self._last
        if self._wanted == "durable":
            look = await self._recent()
            if look.lacking:
                raise _not_durable(look.lacking)
            if look.replicas < self._needed:
                raise UnavailableError(
                    f"the session store has {look.replicas} of {self._needed} replicas",
                    code="not_replicated",
                    retry_after=timedelta(seconds=1),
                )
        if self._is_full:
            raise UnavailableError(
                f"{look.used_share if look else 1:.0%} of the session store's memory is used: erase something, or wait",
                code="store_nearly_full",
                retry_after=_FULL_RETRY_AFTER,
            )

    async def promised(self) -> Durability:
        """See ``Store``."""
        if self._wanted == "durable" and (look := await self._recent()).lacking:
            raise _not_durable(look.lacking)
        return self._wanted

    def known(self) -> Durability | None:
        """See ``Store``."""
        if self._is_full:
            return None
        if self._wanted == "durable":
            look = self._last
            if look is None or not self._holds(look) or look.lacking or look.replicas < self._needed:
                return None
        return self._wanted

    async def held(self) -> Durability:
        """See ``Store``."""
        if self._wanted == "fast":
            return "fast"
        try:
            return "fast" if (await self._recent()).lacking else "durable"
        except TransientError:  # it was written all the same
            return "fast"

    @property
    def _needed(self) -> int:
        replicated = self._sessions.replicated
        return 0 if replicated is None else replicated.needed

    async def _recent(self) -> _Look:
        last, connections = self._last, self._sessions.connections_made
        if last is not None and self._holds(last):
            return last
        look = await self._look()
        # One that was under way may have begun before the connection was made.
        return look if look.connections == connections else await self._look()

    def _holds(self, look: _Look) -> bool:
        return look.connections == self._sessions.connections_made and self._clock() - look.at < _STALE_SECONDS

    async def _look(self) -> _Look:
        """Looks once for all who ask meanwhile."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_now())
            self._looking.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._looking)

    async def _look_now(self) -> _Look:
        connections, client = self._sessions.connections_made, self._sessions.client
        try:
            facts = (await read_servers(client)).facts
        except ConfigurationError as error:
            unknown = Promise("INFO", "unknown", error.detail, "", ("durable",))
            self._last = _Look(self._clock(), connections, (unknown,), 0, 0.0)
            return self._last
        if not facts[0].is_primary:
            # A failover may have moved the address, which an open connection does not follow.
            await client.connection_pool.disconnect(inuse_connections=False)
        return self._judge(facts, connections)

    def _judge(self, facts: list[ServerFacts], connections: int) -> _Look:
        # Of the best primary of a cluster: the others refuse for themselves what nobody confirms to them.
        replicas = max(one.replicas for one in facts)
        self._require(max(one.confirming for one in facts))
        lacking = [one for server in facts for one in undurable(promises_of(server, self._wanted, 0), self._wanted)]
        look = _Look(self._clock(), connections, tuple(lacking), replicas, max(one.used_share for one in facts))
        self._tell(self._last, look)
        self._last = look
        return look

    def _require(self, confirming: int) -> None:
        """Once replicas were there they are asked for: one that vanishes must not make a turn less safe unnoticed."""
        replicated = self._sessions.replicated
        if replicated is None or self._wanted == "fast":
            return
        needed = self._replicas or min(1, max(confirming, replicated.needed))
        if needed != replicated.needed:
            log.info("replicas_must_confirm", needed=needed)
            replicated.needed = needed

    def _tell(self, before: _Look | None, look: _Look) -> None:
        if before is not None and look.lacking and not before.lacking:
            log.error("store_is_not_durable", lacking=_named(look.lacking))
        if before is not None and before.lacking and not look.lacking:
            log.info("store_is_durable_again")
        if before is not None and before.replicas != look.replicas:
            log.warning("replicas_changed", replicas=look.replicas, must_confirm=self._needed)
        is_full = look.used_share >= (self._low if self._is_full else self._high)
        if is_full != self._is_full:
            log.warning("store_nearly_full" if is_full else "store_has_room", used_percent=round(look.used_share * 100))
        self._is_full = is_full

    def _warn(self, facts: list[ServerFacts]) -> None:
        """Says at the start what is not as it should be and does not keep us from serving."""
        for server in facts:
            for one in promises_of(server, self._wanted, self._replicas, nearly_full=self._high):
                if one.state in ("wrong", "unknown") and self._wanted not in one.carries:
                    log.warning("store_not_as_promised", what=one.name, found=one.found, mend=one.mend)


def _named(promises: tuple[Promise, ...]) -> str:
    return ", ".join(f"{one.name} {one.found}" for one in promises)


def _not_durable(lacking: tuple[Promise, ...]) -> UnavailableError:
    return UnavailableError(
        f"the session store does not keep what it is asked to keep: {_named(lacking)}",
        code="not_durable",
        retry_after=timedelta(seconds=1),
    )


@asynccontextmanager
async def watched_store(sessions: Sessions, settings: StoreSettings) -> AsyncIterator[StoreWatch]:
    """A store that is looked at until the end. Raises what ``StoreWatch.start`` raises."""
    watch = StoreWatch(sessions, settings)
    await watch.start()
    looking = asyncio.create_task(watch.run(), name="store watch")
    try:
        yield watch
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
