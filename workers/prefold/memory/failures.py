"""What failed lately in this process, session by session: how long one rests, and when another way is taken."""

from collections import OrderedDict
from datetime import timedelta

from prefold.compaction.pauses import Pauses, failures_with, kept_reason
from prefold.storage.types import SessionRef

__all__ = ["Failures"]

_MOST = 10_000


class Failures:
    """The last failure of a session and how often in a row it came. A restart forgets it, and costs some more tries."""

    def __init__(self) -> None:
        self._last: OrderedDict[SessionRef, str] = OrderedDict()

    def last(self, ref: SessionRef) -> str:
        """As ``failures_with`` reads it; empty: nothing failed."""
        return self._last.get(ref, "")

    def pause_ms(self, ref: SessionRef, reason: str, pauses: Pauses, least: timedelta | None = None) -> int:
        """Notes one more failure; milliseconds that the session rests now."""
        failures = failures_with(reason, self.last(ref))
        self._last[ref] = kept_reason(reason, failures)
        self._last.move_to_end(ref)
        if len(self._last) > _MOST:
            self._last.popitem(last=False)
        least_ms = int(least.total_seconds() * 1000) if least is not None else 0
        return max(pauses.after_ms(failures), least_ms, 1)

    def succeeded(self, ref: SessionRef) -> None:
        """What failed before is forgotten."""
        self._last.pop(ref, None)
