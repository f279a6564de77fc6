"""Traces by OpenTelemetry, where a collector is named and the packages are there; else one comparison with ``None``.

How one turn is followed. A request is a trace of its own, or its caller's (``traceparent``). What becomes of the turn
goes on after the answer, in other processes and in batches, so it is not that trace's child. Instead each accepted
append is the root of a second trace whose ids derive from tenant, session, life and seq: every process computes them
from what it knows anyway, nothing is added to events or scripts, and no hint that gets lost loses a trace. The request
and the turn link to each other; the dispatcher's batch links to the turns in it, and its job, the worker, the model's
calls and the vector store's are its children (``traceparent`` in the job's ``meta``). A build links to the newest turn
that it found as well, so that one asked for by the reconciler is linked, too.

Spans carry ids, counts and codes. Never words.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

import structlog

from prefold.config.flags import redacted_url
from prefold.config.settings import ProbeSettings
from prefold.errors import ConfigurationError

if TYPE_CHECKING:
    from prefold.telemetry.exporting import Tracing

__all__ = ["TRACEPARENT", "Turn", "is_on", "note", "span", "traceparent", "tracing", "turns_stored"]

log = structlog.get_logger(__name__)

TRACEPARENT: Final = "traceparent"
"""Of W3C's trace context: the name of the header, and of the member of a job's ``meta``."""
Turn = tuple[str, str, str, int]
"""Tenant, session, incarnation, seq."""
Kind = Literal["internal", "server", "client", "producer", "consumer"]
Attributes = Mapping[str, str | int | float | bool]
"""Ids, counts and codes."""
NONE: Final[Attributes] = MappingProxyType({})
_NOTHING: Final[AbstractContextManager[None]] = nullcontext()

_tracing: "Tracing | None" = None


def is_on() -> bool:
    """Whether spans go anywhere: ask it before you gather what only a span needs."""
    return _tracing is not None


def span(
    name: str,
    attributes: Attributes = NONE,
    *,
    kind: Kind = "internal",
    turns: Iterable[Turn] = (),
    parent: str | None = None,
) -> AbstractContextManager[Any]:
    """A span around a piece of work, the current one meanwhile; an exception marks it by its type, without its message.

    ``turns``: what it is linked to. ``parent``: a ``traceparent`` to go on from, instead of the current span.
    """
    if _tracing is None:
        return _NOTHING
    return _tracing.span(name, kind, turns, parent, attributes)


def note(attributes: Attributes) -> None:
    """Adds what is known only now to the current span."""
    if _tracing is not None:
        _tracing.note(attributes)


def traceparent() -> str | None:
    """The current span, for another process to go on from; None without one."""
    return None if _tracing is None else _tracing.traceparent()


def turns_stored(turn: Turn, attributes: Attributes) -> None:
    """The root of the trace of an accepted append, whose last new turn is ``turn``; linked with the current span."""
    if _tracing is not None:
        _tracing.root(turn, attributes)


def ids_of(turn: Turn) -> tuple[int, int]:
    """Trace and span id of the append that stored ``turn`` last: the same in every process."""
    named = "\0".join(map(str, turn)).encode()
    digest = hashlib.blake2b(named, digest_size=24, person=b"prefold turn").digest()
    return int.from_bytes(digest[:16]) or 1, int.from_bytes(digest[16:]) or 1


@contextmanager
def tracing(role: str, settings: ProbeSettings, environment: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Sends spans of the process while it lasts, if a collector is set; what is left is sent at the end, for a second.

    ``ConfigurationError`` where one is set and OpenTelemetry is not installed.
    """
    global _tracing
    if settings.traces_endpoint is None or environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        yield
        return
    try:
        from prefold.telemetry.exporting import Tracing
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"OTEL_EXPORTER_OTLP_ENDPOINT: {error.name} is not installed: pip install 'prefold[traces]'"
        ) from error
    _tracing = Tracing(role, settings.traces_endpoint)
    log.info("tracing_on", endpoint=redacted_url(settings.traces_endpoint))
    try:
        yield
    finally:
        ending, _tracing = _tracing, None
        ending.close()
