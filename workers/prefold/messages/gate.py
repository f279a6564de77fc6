"""The port to what all workers know of a provider's key: rate limits, breakers, and whether it is of use at all.

Contract:

- ``admit`` says whether a call may be made now, or soon, and takes its share of the rate limits if so. A parked key and
  an open breaker let through one probe at a time, once their pause is over; every other call is kept out.
- ``note`` tells what came of an admitted call. Each admission is noted once, or its probe's place stays taken until
  ``probe_ends``. A noted failure may count twice when a connection breaks; nothing else may.
- Both take milliseconds and never raise for a store that is away.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, Protocol

from prefold.messages.outcomes import Signal

__all__ = ["Admission", "Event", "Gate", "GateLimits", "GateRules", "Noted", "Report"]


Event = Literal["", "opened", "closed", "parked", "released"]
"""A breaker was opened or closed; a key was parked or released."""


@dataclass(frozen=True, slots=True)
class GateLimits:
    """Of one credential, over all workers. 0: no limit of ours."""

    requests_per_minute: int = 0
    input_tokens_per_minute: int = 0


@dataclass(frozen=True, slots=True)
class GateRules:
    """How long is waited for what."""

    most_wait: timedelta = timedelta(seconds=2)
    """A call waits in its place up to this; beyond it the caller hears how long to stay away."""
    failures_to_open: int = 8
    """In a row, over all workers: one bad moment of 64 calls opens the breaker, a fifth of all calls failing at random
    practically never does (0.2 to the 8th)."""
    open_pause: timedelta = timedelta(seconds=5)
    most_open_pause: timedelta = timedelta(minutes=5)
    park_pause: timedelta = timedelta(seconds=30)
    most_park_pause: timedelta = timedelta(minutes=15)
    """A key that works again is found so late at most."""
    probe_ends: timedelta = timedelta(minutes=4)
    """A probe of which nothing was heard is forgotten then: longer than a call's deadline."""


@dataclass(frozen=True, slots=True)
class Admission:
    """``go``: begin in ``wait``. Else stay away so long. ``why``: of ``open`` and ``parked``, a code."""

    verdict: Literal["go", "busy", "open", "parked"]
    wait: timedelta = timedelta(0)
    why: str = ""
    probes: Literal["", "key", "model"] = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What a call told. ``none``: it was never sent, or broken off by us."""

    signal: Signal | Literal["none"]
    why: str = ""
    """Code of the error."""
    wait: timedelta = timedelta(0)
    """How long to keep every call away: what the provider asked for, capped, or what we thought of."""
    is_bare: bool = False
    """A rate limit that did not say for how long."""
    refund_tokens: int = 0
    """Input tokens that were taken from the limit and not used; below 0: used beyond."""


@dataclass(frozen=True, slots=True)
class Noted:
    """What the others have to know. ``event`` is told once, to the call that caused it."""

    event: Event = ""
    failures: int = 0
    """In a row, of the model."""
    left: timedelta = timedelta(0)
    """Until calls may go on."""


class Gate(Protocol):
    async def admit(self, model: str, call_id: str, input_tokens: int) -> Admission: ...
    async def note(self, model: str, call_id: str, report: Report) -> Noted: ...
