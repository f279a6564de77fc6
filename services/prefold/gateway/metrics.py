"""What the gateway counts, on the way of every request: a few hundred nanoseconds each. Names: ``prefold.telemetry``."""

from prefold.assembly import ServedContext
from prefold.storage.counting import note_append
from prefold.storage.types import StoredContext
from prefold.telemetry.metrics import (
    DEGRADED_CONTEXTS,
    HTTP_IN_FLIGHT,
    HTTP_REQUESTS,
    HTTP_SECONDS,
    OVER_LIMIT_READS,
    exposition,
)

__all__ = ["Metrics", "note_append", "note_served", "note_total"]


class Metrics:
    """Counts of the requests that pass one door."""

    def __init__(self) -> None:
        self.in_flight = 0
        HTTP_IN_FLIGHT.set_function(lambda: self.in_flight)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer. ``route`` is the path's template, or empty for a path that does not exist."""
        HTTP_REQUESTS.add((method if route else "", route, str(status)))
        HTTP_SECONDS.observe((route,), seconds)

    def render(self) -> bytes:
        """Everything that the process has counted, in Prometheus' text format."""
        return exposition()


def note_served(stored: StoredContext, served: ServedContext, budget_tokens: int | None) -> None:
    """Look at a context that is served. One over its limit is a broken promise, whatever made it so."""
    most = stored.hard_limit_tokens if budget_tokens is None else min(stored.hard_limit_tokens, budget_tokens)
    note_total(served.total_tokens, most, degraded=stored.degraded)


def note_total(tokens: int, most: int, *, degraded: bool) -> None:
    """The same where only that is known."""
    if tokens > most:
        OVER_LIMIT_READS.inc()
    if degraded:
        DEGRADED_CONTEXTS.inc()
