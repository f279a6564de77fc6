"""Which work has just been asked for, so that a slow worker is not flooded."""

from collections import Counter
from dataclasses import dataclass, field

from prefold.jobs.names import WorkKind
from prefold.storage.types import DueItem, SessionRef, TurnEvent

_Key = tuple[WorkKind, SessionRef]


@dataclass(frozen=True, slots=True)
class _Attempt:
    partition: int
    asked_ms: int
    wait_ms: int
    due_at_ms: int | None = None
    """Of the entry that was enqueued; None: an event asked."""

    def wait_for(self, item: DueItem, base_ms: int) -> int:
        """Milliseconds from this attempt to the next; no more than ``base_ms`` when the entry has moved since."""
        has_moved = self.due_at_ms is not None and self.due_at_ms != item.due_at_ms
        return base_ms if has_moved else self.wait_ms


@dataclass(slots=True)
class Attempts:
    """Spaces repeated wishes for the same work: ``base_ms``, then doubling up to ``max_ms``.

    A worker moves the due entry of work that it has done a part of, or has put off: then the doubling starts anew.
    Kept in memory only: a restart forgets it and costs at most one job more for each entry.
    """

    base_ms: int
    max_ms: int
    _attempts: dict[_Key, _Attempt] = field(default_factory=dict)
    _waiting: Counter[int] = field(default_factory=Counter)

    def asked(self, kind: WorkKind, event: TurnEvent, now_ms: int) -> None:
        """An event has brought the work to the queue: its due entry may follow after ``base_ms``."""
        self._note((kind, event.ref), _Attempt(event.partition, now_ms, self.base_ms))

    def may(self, item: DueItem, now_ms: int) -> bool:
        """True when the due entry may be enqueued now."""
        attempt = self._attempts.get(_key(item))
        return attempt is None or now_ms - attempt.asked_ms >= attempt.wait_for(item, self.base_ms)

    def repeated(self, item: DueItem, now_ms: int) -> None:
        """The due entry has been enqueued: wait longer before the next time."""
        before = self._attempts.get(_key(item))
        is_stuck = before is not None and before.due_at_ms == item.due_at_ms
        wait_ms = min(2 * before.wait_ms, self.max_ms) if before and is_stuck else self.base_ms
        self._note(_key(item), _Attempt(item.partition, now_ms, wait_ms, item.due_at_ms))

    def waiting(self, partition: int) -> int:
        """An upper bound of the due entries of ``partition`` that are held back: one has to look beyond them."""
        return self._waiting[partition]

    def forget_old(self, now_ms: int) -> None:
        """Drops what was asked for so long ago that it is done by now, or may start anew."""
        for key, attempt in list(self._attempts.items()):
            if now_ms - attempt.asked_ms >= 2 * attempt.wait_ms:
                self._drop(key)

    def __len__(self) -> int:
        return len(self._attempts)

    def _note(self, key: _Key, attempt: _Attempt) -> None:
        self._drop(key)
        self._attempts[key] = attempt
        self._waiting[attempt.partition] += 1

    def _drop(self, key: _Key) -> None:
        attempt = self._attempts.pop(key, None)
        if attempt is not None:
            self._waiting[attempt.partition] -= 1


def _key(item: DueItem) -> _Key:
    return item.kind, item.ref
