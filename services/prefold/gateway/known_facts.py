"""A user's facts and their graph, decoded once and kept while nobody writes: with hundreds of rows that takes a while."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from prefold.facts import Fact, Graph, graph_of, is_live
from prefold.facts.changing import opened
from prefold.storage.users import StoredUser, Users

__all__ = ["KnownFacts", "UserFacts"]

_MOST_FACTS = 20_000
"""Of all users together."""
_MOST_SECONDS = 60.0
"""Nothing is kept longer without having been read anew, so that an erased user is soon gone from here, too."""


@dataclass(frozen=True, slots=True)
class UserFacts:
    """What was known of a user at one version. Nothing that was superseded is in it; what has expired since may be."""

    facts: Mapping[str, Fact]
    graph: Graph

    def live(self, fact_id: str, now_ms: int) -> Fact | None:
        """The fact, if it is served now."""
        fact = self.facts.get(fact_id)
        return fact if fact is not None and is_live(fact, now_ms) else None


@dataclass(frozen=True, slots=True)
class _Kept:
    version: tuple[int, int]
    read_at: float
    facts: UserFacts


class KnownFacts:
    """Reads users' facts. One look at the version tells whether what is kept still holds."""

    def __init__(self, users: Users, clock: Callable[[], float] = time.monotonic) -> None:
        self._users = users
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()

    async def of(self, tenant: str, user: str) -> UserFacts:
        """The user's facts as they are now; empty for one of whom nothing is known. Raises ``UnavailableError``."""
        self._forget_old()
        kept = self._kept.get((tenant, user))
        if kept is not None and kept.version == await self._users.version(tenant, user):
            return kept.facts
        stored = await self._users.snapshot(tenant, user)
        facts = await asyncio.to_thread(_read, stored)
        self._keep((tenant, user), _Kept((stored.epoch, stored.version), self._clock(), facts))
        return facts

    def _keep(self, key: tuple[str, str], kept: _Kept) -> None:
        self._kept.pop(key, None)
        self._kept[key] = kept
        while len(self._kept) > 1 and sum(len(one.facts.facts) + 1 for one in self._kept.values()) > _MOST_FACTS:
            self._kept.popitem(last=False)

    def _forget_old(self) -> None:
        """The oldest stand first."""
        until = self._clock() - _MOST_SECONDS
        while self._kept and next(iter(self._kept.values())).read_at < until:
            self._kept.popitem(last=False)


def _read(stored: StoredUser) -> UserFacts:
    current = {name: fact for name, fact in opened(stored).facts.items() if fact.superseded_by is None}
    return UserFacts(current, graph_of(current.values()))
