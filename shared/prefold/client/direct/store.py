"""What the store that a direct client writes to really keeps: looked at again and again, never assumed."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

from prefold.errors import ConfigurationError, UnavailableError
from prefold.storage import Sessions
from prefold.storage.cluster import servers_of
from prefold.storage.layout import check_layout
from prefold.storage.promises import promises_of, undurable
from prefold.storage.server import ServerFacts, ask_server

__all__ = ["Durability", "StoreLooks"]

Durability = Literal["durable", "fast"]
_STALE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    connections: int
    lacking: tuple[str, ...]
    """What keeps a turn from being durable."""


class StoreLooks:
    """Whether turns are durable: on disk before they are answered, and on a replica where there is any.

    ``wanted`` None: what holds is told. ``durable``: writing is refused (not_durable) while it does not hold.
    ``fast``: nobody looks. ``waits``: the client waits for replicas; else turns on a store with replicas are ``fast``.
    """

    def __init__(
        self,
        sessions: Sessions,
        wanted: Durability | None,
        *,
        waits: bool,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sessions = sessions
        self._wanted = wanted
        self._waits = waits
        self._monotonic = monotonic
        self._last: _Look | None = None
        self._has_met = False
        self._is_looking = False

    def now_ms(self) -> int:
        """Wall clock."""
        return time.time_ns() // 1_000_000

    @property
    def admits(self) -> bool:
        """True: ``admit`` has nothing to ask."""
        return self._has_met and self._wanted != "durable"

    def told(self) -> Durability | None:
        """What ``promised`` would tell, as far as it is known without asking."""
        last = self._last
        if last is None or self._wanted == "durable" or self._is_stale(last):
            return "fast" if self._wanted == "fast" else None
        return "fast" if last.lacking else "durable"

    async def meet(self) -> None:
        """Returns when something may be read. ConfigurationError: the store is of another layout."""
        if not self._has_met:
            await check_layout(self._sessions.client)
            self._has_met = True

    async def admit(self) -> None:
        """Returns when something may be written. ConfigurationError as ``meet``."""
        await self.meet()
        if self._wanted == "durable":
            await self._require()

    async def promised(self) -> Durability:
        """The class of what was just written."""
        if self._wanted == "fast":
            return "fast"
        if self._wanted == "durable":
            await self._require()
            return "durable"
        return "fast" if (await self._recent()).lacking else "durable"

    async def _require(self) -> None:
        lacking = (await self._recent()).lacking
        if lacking:
            raise UnavailableError(
                f"the session store does not keep what it is asked to keep: {', '.join(lacking)}",
                code="not_durable",
                retry_after=timedelta(seconds=1),
            )

    async def _recent(self) -> _Look:
        connections, last = self._sessions.connections_made, self._last
        if last is not None and (not self._is_stale(last) or (self._is_looking and last.connections == connections)):
            return last  # also while another call looks again
        self._is_looking, self._has_met = True, False  # whoever upgrades the store may have done so by now
        try:
            await self.meet()
            self._last = _Look(self._monotonic(), connections, await self._lacking())
        finally:
            self._is_looking = False
        return self._last

    def _is_stale(self, look: _Look) -> bool:
        """Behind a new connection may be another server."""
        return look.connections != self._sessions.connections_made or self._monotonic() - look.at > _STALE_SECONDS

    async def _lacking(self) -> tuple[str, ...]:
        lacking: list[str] = []
        try:
            for server in await servers_of(self._sessions.client):
                lacking += self._lacks(await ask_server(server))
        except ConfigurationError as error:  # it refuses to tell of itself
            lacking.append(error.detail)
        return tuple(lacking)

    def _lacks(self, facts: ServerFacts) -> list[str]:
        found = [f"{one.name} {one.found}" for one in undurable(promises_of(facts, "durable", 0), "durable")]
        replicated = self._sessions.replicated
        if self._waits and replicated is not None and self._wanted == "durable":
            replicated.needed = max(replicated.needed, min(1, facts.confirming))
        elif facts.replicas and not (self._waits and self._wanted == "durable"):
            found.append(f"{facts.replicas} replicas, which nobody waits for")
        return found
