"""Events of a session, from server-sent events; and what of them was told before."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from prefold.client.results import Session
from prefold.errors import PrefoldError

SILENCE_SECONDS: Final = 45.0
"""The gateway gives a sign of life every 15 s; a connection without one for so long is dead."""

STREAM_PAUSE_SECONDS: Final = 0.5
"""Between two connections, when the gateway has ended one in order."""


@dataclass(frozen=True, slots=True)
class StandbyReady:
    """The next summary is there, and waits for the limit."""

    session: str
    version: int
    tokens: int
    covers_to: int


@dataclass(frozen=True, slots=True)
class Swapped:
    """A summary took the place of the turns up to ``covers_to``."""

    session: str
    version: int
    tokens: int
    covers_to: int
    swaps: int
    """So far, this one included; a step of more than one: several between two looks."""


@dataclass(frozen=True, slots=True)
class Degraded:
    """Turns are left out for want of a summary, until it is there."""

    session: str
    version: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Erased:
    """The session is gone: the last event."""

    session: str


Event = StandbyReady | Swapped | Degraded | Erased

_KINDS: Final[Mapping[str, Callable[[Mapping[str, Any]], Event]]] = {
    "standby_ready": lambda data: StandbyReady(data["session"], data["version"], data["tokens"], data["covers_to"]),
    "swapped": lambda data: Swapped(data["session"], data["version"], data["tokens"], data["covers_to"], data["swaps"]),
    "degraded": lambda data: Degraded(data["session"], data["version"], data["tokens"]),
    "erased": lambda data: Erased(data["session"]),
}


@dataclass(slots=True)
class EventLines:
    """Reads a stream of server-sent events line by line."""

    _name: str = ""
    _data: list[str] = field(default_factory=list)

    def feed(self, line: str) -> Event | None:
        """The event that this line completes. An event of a kind that we do not know is left out."""
        if line:
            name, _, value = line.partition(":")
            if name == "event":
                self._name = value.removeprefix(" ")
            elif name == "data":
                self._data.append(value.removeprefix(" "))
            return None
        read, data = _KINDS.get(self._name), "\n".join(self._data)
        self._name, self._data = "", []
        if read is None:
            return None
        try:
            return read(json.loads(data))
        except (ValueError, KeyError, TypeError) as error:
            raise PrefoldError("an event that cannot be read", code="unexpected_answer") from error


@dataclass(slots=True)
class Told:
    """What was told of a session, so that a new connection, which begins with what stands, repeats nothing."""

    swaps: int = -1
    """-1: this is the first connection."""
    standby: int = 0
    degraded_version: int = -1

    @property
    def has_listened(self) -> bool:
        return self.swaps >= 0

    def connected(self, now: Session) -> Iterator[Event]:
        """Called with the session as it is just after a connection: what was missed before it."""
        if self.has_listened and now.swaps > self.swaps:
            yield Swapped(now.session, now.version, now.tokens, now.covers_to, now.swaps)
        self.swaps = max(self.swaps, now.swaps)

    def is_new(self, event: Event) -> bool:
        """False for one that repeats what was told; notes the others."""
        match event:
            case Swapped(swaps=swaps):
                is_new, self.swaps = swaps > self.swaps, max(self.swaps, swaps)
                return is_new
            case StandbyReady(covers_to=covers_to):
                is_new, self.standby = covers_to != self.standby, covers_to
                return is_new
            case Degraded(version=version):
                is_new, self.degraded_version = version != self.degraded_version, version
                return is_new
        return True
