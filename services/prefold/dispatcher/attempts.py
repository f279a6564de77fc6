"""Which work has just been asked for, so that a slow worker is not flooded."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from prefold.storage.types import DueItem, SessionRef, TurnEvent

Kind = Literal["embed", "compact"]
_Key = tuple[Kind, SessionRef]


@dataclass(frozen=True, slots=True)
class _Attempt:
    partition: int
    asked_ms: int
    wait_ms: int
    is_repeat: bool


@dataclass(slots=True)
class Attempts:
    """Spaces repeated wishes for the same work: ``base_ms``, then doubling up to ``max_ms``.

    Kept in memory only: a restart forgets it and costs at most one job more for each entry.
    """

    base_ms: int
    max_ms: int
    _attempts: dict[_Key, _Attempt] = field(default_factory=dict)
    _waiting: Counter[int] = field(default_factory=Counter)

    def asked(self, kind: Kind, event: TurnEvent, now_ms: int) -> None:
        """An event has brought the work to the queue: its due entry may follow after ``base_ms``."""
        self._note((kind, event.ref), _Attempt(event.partition, now_ms, self.base_ms, is_repeat=False))

    def may(self, item: DueItem, now_ms: int) -> bool:
        """True when the due entry may be enqueued now."""
        attempt = self._attempts.get(_key(item))
        return attempt is None or now_ms - attempt.asked_ms >= attempt.wait_ms

    def repeated(self, item: DueItem, now_ms: int) -> None:
        """The due entry has been enqueued: wait longer before the next time."""
        before = self._attempts.get(_key(item))
        wait_ms = min(2 * before.wait_ms, self.max_ms) if before and before.is_repeat else self.base_ms
        self._note(_key(item), _Attempt(item.partition, now_ms, wait_ms, is_repeat=True))

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
    return ("compact" if item.kind == "compact" else "embed", item.ref)
