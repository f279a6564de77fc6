"""How many events become few jobs. Pure: time is handed in, as milliseconds of a monotonic clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prefold.dispatcher.asking import Piece
from prefold.storage.types import SessionRef, TurnEvent


@dataclass(slots=True)
class EmbedBatch:
    """Turns to be embedded, one span a session. Full at ``max_turns``, ripe ``max_wait_ms`` after the first."""

    max_turns: int
    max_wait_ms: int
    _spans: dict[SessionRef, tuple[int, int]] = field(default_factory=dict)
    _turns: int = 0
    _since_ms: int | None = None

    def add(self, event: TurnEvent, now_ms: int) -> None:
        """Notes the event's turns; ranges of one session are merged into the one that holds them all."""
        if event.last_seq < event.first_seq:  # a change without turns of its own
            return
        first, last = self._spans.get(event.ref, (event.first_seq, event.first_seq - 1))
        merged = min(first, event.first_seq), max(last, event.last_seq)
        self._turns += (merged[1] - merged[0]) - (last - first)
        self._spans[event.ref] = merged
        if self._since_ms is None:
            self._since_ms = now_ms

    def wait_ms(self, now_ms: int) -> int | None:
        """Milliseconds until the batch wants to go out (0: now), None while it is empty."""
        if self._since_ms is None:
            return None
        if self._turns >= self.max_turns:
            return 0
        return max(0, self._since_ms + self.max_wait_ms - now_ms)

    def pieces(self) -> list[Piece]:
        """One a session, in order of arrival."""
        return [Piece(ref, last - first + 1, first, last) for ref, (first, last) in self._spans.items()]

    def clear(self) -> None:
        """Starts anew."""
        self._spans.clear()
        self._turns = 0
        self._since_ms = None


@dataclass(slots=True)
class _Wish:
    asked_ms: int
    window_ms: int
    again: int = 0
    """Newest seq that asked within the window, 0: none did."""


@dataclass(slots=True)
class BuildWishes:
    """Lets the first wish for a summary through at once and holds those that follow until a window has passed.

    Nothing is dropped: what came within the window is asked once at its end. A session that keeps asking (its
    summary takes long) gets windows that double up to ``max_window_ms``; one that pauses starts anew.
    """

    window_ms: int
    max_window_ms: int
    _wishes: dict[SessionRef, _Wish] = field(default_factory=dict)
    _fresh: dict[SessionRef, int] = field(default_factory=dict)

    def add(self, event: TurnEvent, now_ms: int) -> None:
        """Notes that the session of ``event`` wants a summary."""
        wish = self._wishes.get(event.ref)
        if wish is None:
            self._wishes[event.ref] = _Wish(now_ms, self.window_ms)
            self._fresh[event.ref] = event.last_seq
        else:
            wish.again = max(wish.again, event.last_seq, 1)

    def forget(self, ref: SessionRef) -> None:
        """The session no longer asks: its next wish goes through at once."""
        if ref not in self._fresh:
            self._wishes.pop(ref, None)

    def take(self, now_ms: int) -> dict[SessionRef, int]:
        """Sessions to ask for now, with the newest seq that asked. Forgets those that have gone quiet."""
        ready, self._fresh = self._fresh, {}
        for ref, wish in list(self._wishes.items()):
            if now_ms - wish.asked_ms < wish.window_ms:
                continue
            if not wish.again:
                del self._wishes[ref]
                continue
            ready[ref] = wish.again
            self._wishes[ref] = _Wish(now_ms, min(2 * wish.window_ms, self.max_window_ms))
        return ready

    def restore(self, ready: Mapping[SessionRef, int]) -> None:
        """Takes back what ``take`` gave, because it could not be asked for: it comes again at once."""
        self._fresh = {**ready, **self._fresh}

    def wait_ms(self, now_ms: int) -> int | None:
        """Milliseconds until ``take`` has something, None without a wish that waits."""
        if self._fresh:
            return 0
        ends = [wish.asked_ms + wish.window_ms for wish in self._wishes.values() if wish.again]
        return max(0, min(ends) - now_ms) if ends else None
