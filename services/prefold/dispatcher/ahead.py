"""Events of quiet tenants that stand far behind those of a busy one, found before their turn."""

from collections import Counter
from collections.abc import Iterable, Sequence

from prefold.dispatcher.fairness import Shares
from prefold.dispatcher.ports import TurnEvents
from prefold.storage.types import TurnEvent

__all__ = ["Ahead", "long_streams"]

_MOST_REMEMBERED = 20_000
_LOOKED_AT = 16
"""Events at the end of each long stream."""


def long_streams(read: Sequence[TurnEvent], count: int) -> list[int]:
    """Partitions of which a read gave all that it was asked for."""
    counts = Counter(event.partition for event in read)
    return [partition for partition, found in counts.items() if found >= count]


class Ahead:
    """Looks at the ends of streams whose beginnings are long.

    What it finds is worked on at once and comes again later, in its turn, only to be acknowledged. Work that it does
    not find, because even more came after it, is found by the reconciler seconds later.
    """

    def __init__(self, events: TurnEvents, read_count: int) -> None:
        self._events = events
        self._count = read_count
        self._shares = Shares()
        self._taken: dict[tuple[int, str], None] = {}

    async def look(self, read: Sequence[TurnEvent], now_ms: int) -> list[TurnEvent]:
        """Events of tenants that had few of those ``read`` lately; none unless one of the streams is long."""
        self._shares.note(Counter(event.ref.tenant for event in read).items(), now_ms)
        deep = long_streams(read, self._count)
        if not deep:
            return []
        known = {(event.partition, event.entry_id) for event in read}
        newest = await self._events.newest(deep, _LOOKED_AT)
        modest = self._shares.modest({event.ref.tenant for event in newest}, now_ms)
        found = [event for event in newest if event.ref.tenant in modest and _place(event) not in known]
        fresh = [event for event in reversed(found) if _place(event) not in self._taken]
        self._remember(fresh)
        return fresh

    def is_done(self, event: TurnEvent) -> bool:
        """True once for each event that ``look`` gave: its work is on the queue already."""
        return bool(self._taken) and self._taken.pop(_place(event), self) is None

    def forget(self) -> None:
        """What was given may not have come to the queue."""
        self._taken.clear()

    def _remember(self, events: Iterable[TurnEvent]) -> None:
        self._taken.update((_place(event), None) for event in events)
        while len(self._taken) > _MOST_REMEMBERED:
            del self._taken[next(iter(self._taken))]


def _place(event: TurnEvent) -> tuple[int, str]:
    return event.partition, event.entry_id
