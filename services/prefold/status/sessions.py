"""A walk through the sessions, a part at a time, that remembers the fullest ones."""

import heapq
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from redis.asyncio import Redis

from prefold.storage.fullness import Fullness, fullness_of
from prefold.storage.restoring import sessions_in_pages

__all__ = ["Seen", "Walk"]

_KEYS_A_LOOK: Final = 1_000
_KEPT: Final = 50


@dataclass(slots=True)
class Seen:
    """What one pass has come across."""

    sessions: int = 0
    near: int = 0
    """Those from ``near_share`` of their limit on."""
    near_without_standby: int = 0
    degraded: int = 0
    limit_crossings: int = 0
    ready_crossings: int = 0
    is_whole: bool = False
    """The pass has met every session."""
    fullest: list[Fullness] = field(default_factory=list)
    """The nearest to their limits first."""

    @property
    def standby_ready_ratio(self) -> float | None:
        """Share of the crossings of these sessions' lives that found a standby ready; None without any."""
        return self.ready_crossings / self.limit_crossings if self.limit_crossings else None

    def add(self, found: Sequence[Fullness], near_share: float) -> None:
        """Counts a page."""
        for one in found:
            is_near = one.share >= near_share
            self.sessions += 1
            self.near += is_near
            self.near_without_standby += is_near and not one.has_standby
            self.degraded += one.is_degraded
            self.limit_crossings += one.limit_crossings
            self.ready_crossings += one.ready_crossings
        self.fullest = heapq.nlargest(_KEPT, [*self.fullest, *found], key=lambda one: one.share)


class Walk:
    """Passes through all sessions one after the other, as far as it is let."""

    def __init__(self, client: Redis, near_share: float) -> None:
        self._client = client
        self._near_share = near_share
        self._pages: AsyncIterator[list[tuple[str, str]]] | None = None
        self._under_way = Seen()
        self._ended: Seen | None = None

    @property
    def seen(self) -> Seen:
        """Of the last whole pass, else of the one under way."""
        return self._ended or self._under_way

    async def advance(self, most_sessions: int) -> None:
        """Looks at about so many more; a pass that ends is followed by another at the next call."""
        if self._pages is None:
            self._pages, self._under_way = sessions_in_pages(self._client, _KEYS_A_LOOK), Seen()
        until = self._under_way.sessions + most_sessions
        try:
            async for page in self._pages:
                self._under_way.add(await fullness_of(self._client, page), self._near_share)
                if self._under_way.sessions >= until:
                    return
        except BaseException:  # a pass that was broken off has not met all of them: another one begins
            self._pages = None
            raise
        self._pages = None
        self._under_way.is_whole = True
        self._ended = self._under_way
