"""Who is killed when."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from redis.asyncio import Redis
from redis.exceptions import RedisError

from tests.chaos.storm.figures import Figures
from tests.chaos.storm.oracle import Faults
from tests.chaos.storm.scale import Scale
from tests.chaos.storm.town import PARTS, SESSIONS, Town
from tests.support.waiting import wait_until_async

Kind = Literal["one", "two at once", "one and soon another", "twice in a row", "in a rewrite"]
_KILLS: dict[Kind, int] = {
    "one": 1,
    "two at once": 2,
    "one and soon another": 2,
    "twice in a row": 2,
    "in a rewrite": 1,
}
_WEIGHTS: dict[Kind, int] = {
    "one": 50,
    "two at once": 20,
    "one and soon another": 15,
    "twice in a row": 12,
    "in a rewrite": 8,
}
DOORS = ("gateway", "gateway 2", SESSIONS)
_RESTARTS_WITHIN_SECONDS = 40


@dataclass(frozen=True, slots=True)
class Strike:
    """Some kills that belong together."""

    after_turns: int
    """Acknowledged turns at which it comes."""
    kind: Kind
    first: str
    second: str
    pause_seconds: float
    """Between the two."""

    @property
    def kills(self) -> int:
        return _KILLS[self.kind]


def plan_strikes(rng: random.Random, scale: Scale) -> list[Strike]:
    """Exactly ``scale.kills`` kills, spread over the turns but for the first and the last few."""
    kinds: list[Kind] = []
    while (left := scale.kills - sum(_KILLS[kind] for kind in kinds)) > 0:
        kind = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        kinds.append(kind if _KILLS[kind] <= left else "one")
    moments = sorted(rng.randrange(scale.turns // 50, scale.turns * 98 // 100) for _ in kinds)
    deck = _Deck(rng)
    return [_strike(rng, deck, moment, kind) for moment, kind in zip(moments, kinds, strict=True)]


class _Deck:
    """Parts in random order, each as often as the others."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._cards: list[str] = []

    def draw(self, other_than: str = "") -> str:
        if not any(card != other_than for card in self._cards):
            self._cards += self._rng.sample(PARTS, len(PARTS))
        card = next(card for card in self._cards if card != other_than)
        self._cards.remove(card)
        return card


def _strike(rng: random.Random, deck: _Deck, moment: int, kind: Kind) -> Strike:
    first = SESSIONS if kind == "in a rewrite" else deck.draw()
    second = deck.draw(first) if kind in ("two at once", "one and soon another") else first
    longest = {"two at once": 0.0, "one and soon another": 2.0}.get(kind, 0.4)
    return Strike(moment, kind, first, second, rng.uniform(0, longest))


class Striker:
    """Carries a plan out."""

    def __init__(self, town: Town, figures: Figures, faults: Faults) -> None:
        self._town = town
        self._figures = figures
        self._faults = faults

    async def strike(self, strike: Strike) -> None:
        """Returns when the last of its kills is done; the parts may still be down."""
        if strike.kind == "in a rewrite":
            await self._in_a_rewrite(strike)
            return
        other = await self._running(strike.second)
        pid = await self._running(strike.first)
        if strike.first in DOORS or (strike.kind == "two at once" and strike.second in DOORS):
            await self._append_under_way()
        if strike.kind == "two at once":
            self._kill(strike.second, other)
        self._kill(strike.first, pid)
        if strike.kind in ("one and soon another", "twice in a row"):
            following = self._running(strike.second, other_than=pid)
            if strike.kind == "twice in a row":
                heir = await following
                await asyncio.sleep(strike.pause_seconds)
            else:
                await asyncio.sleep(strike.pause_seconds)
                heir = await following
            self._kill(strike.second, heir)

    async def _in_a_rewrite(self, strike: Strike) -> None:
        """While the sessions' server writes its file anew: the server, or the child that writes."""
        with suppress(RedisError, OSError):
            async with Redis.from_url(self._town.redis_url) as redis:
                await redis.bgrewriteaof()
        children = self._town.children(SESSIONS)
        if children and strike.pause_seconds < 0.2:
            self._kill("redis sessions' child", children[0])
        else:
            self._kill(SESSIONS, await self._running(SESSIONS))

    async def _append_under_way(self) -> None:
        """A kill between a write and its answer is the one that matters; not waited for long: there may be an outage."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                while not self._figures.in_flight:  # noqa: ASYNC110 (an event would be set too late to matter)
                    await asyncio.sleep(0.0005)

    async def _running(self, name: str, other_than: int | None = None) -> int:
        """Its process id, once it runs (again)."""

        async def pid() -> int | None:
            found = self._town.pid(name)
            return None if found == other_than else found

        return await wait_until_async(f"{name} runs", pid, timeout=_RESTARTS_WITHIN_SECONDS) or 0

    def _kill(self, name: str, pid: int) -> None:
        with suppress(ProcessLookupError):
            self._town.kill(pid)
        self._figures.killed(name)
        self._faults.killed(name)


async def strike_all(strikes: list[Strike], striker: Striker, reached: Callable[[int], "asyncio.Future[None]"]) -> None:
    """Each at its moment; ``reached(n)`` is done when n turns are acknowledged."""
    for strike in strikes:
        await reached(strike.after_turns)
        await striker.strike(strike)
