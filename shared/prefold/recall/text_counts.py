"""How many texts there are to search, remembered for a while."""

import time
from collections.abc import Callable
from typing import Any, Final

from prefold.recall.scope import Scope
from prefold.recall.server import VectorServer

_HOLDS_SECONDS: Final = 60.0
_FEWEST: Final = 100
"""A smaller number may double any moment. Of more, some more hardly change what a word nobody used is worth."""
_MOST_SCOPES: Final = 10_000


class TextCounts:
    """Of the scopes of one collection."""

    def __init__(self, server: VectorServer, collection: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._server = server
        self._collection = collection
        self._clock = clock
        self._known: dict[Any, tuple[int, float]] = {}

    async def of(self, scope: Scope) -> int:
        """About so many: up to a minute old, if they are many."""
        key = (scope.tenant, scope.user, scope.session, scope.not_session, tuple(scope.kinds or ()))
        count, until = self._known.get(key, (0, 0.0))
        if self._clock() < until:
            return count
        count = await self._server.count(self._collection, scope.filter(), exact=False)
        if count >= _FEWEST:
            if len(self._known) >= _MOST_SCOPES:
                self._known.clear()
            self._known[key] = (count, self._clock() + _HOLDS_SECONDS)
        return count
