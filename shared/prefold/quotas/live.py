"""Sessions that are known to be counted as live."""

from typing import Final

from prefold.storage.quotas import SEEN_EVERY

__all__ = ["LiveSessions"]

MOST: Final = 200_000
"""Of all tenants; some 40 MB. Whoever is forgotten is asked for again."""
_SECONDS: Final = SEEN_EVERY.total_seconds() / 2


class LiveSessions:
    """Of one process, the ones that were noted last. Times are of a monotonic clock, in s."""

    def __init__(self) -> None:
        self._noted: dict[tuple[str, str], float] = {}

    def has(self, tenant: str, session: str, now: float) -> bool:
        """True when it was noted lately; who was not is asked for again, which tells the counts that it goes on."""
        noted = self._noted.get((tenant, session))
        return noted is not None and now - noted < _SECONDS

    def note(self, tenant: str, session: str, now: float) -> None:
        self.forget(tenant, session)
        self._noted[tenant, session] = now
        if len(self._noted) > MOST:
            del self._noted[next(iter(self._noted))]

    def forget(self, tenant: str, session: str) -> None:
        """It is erased."""
        self._noted.pop((tenant, session), None)
