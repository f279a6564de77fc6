"""What each process does about being observed, besides its probe."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

from prefold.config.settings import ProbeSettings
from prefold.telemetry.metrics import PROCESS_INFO, serve_as
from prefold.telemetry.tracing import tracing

__all__ = ["observed"]


@contextmanager
def observed(role: str, settings: ProbeSettings) -> Iterator[None]:
    """Around all of a process's work: names it in the metrics, and sends traces where a collector is set."""
    serve_as(role)
    PROCESS_INFO.labels(role, version("prefold")).set(1)
    with tracing(role, settings):
        yield
