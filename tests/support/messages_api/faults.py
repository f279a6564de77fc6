"""What can go wrong with one call, and which calls it goes wrong with."""

import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.messages_api.answers import Brain
from tests.support.messages_api.errors import KINDS, ApiError
from tests.support.messages_api.journal import Entry

AT_THE_EDGE = frozenset({"html", "reset", "reset_after_headers", "hang", "hang_after_headers"})
"""Befalls a call before anything in it is looked at."""


@dataclass(frozen=True)
class Fault:
    """One of: ``none``, ``status``, ``answer`` (another brain's), ``slow``, ``trickle``, ``stall``, ``error_event``,
    ``cut_stream``, ``empty_stream``, ``odd_events``, and those at the edge."""

    kind: str
    status: int = 200
    message: str = ""
    error_type: str | None = None
    error_code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    """How long before the fault shows; of ``trickle``, between two pieces."""
    after: int = 0
    """Events of a stream, or bytes of a plain body, that get through."""
    brain: Brain | str | None = None

    @property
    def name(self) -> str:
        return f"status {self.status}" if self.kind == "status" else self.kind

    @property
    def is_at_the_edge(self) -> bool:
        return self.kind in AT_THE_EDGE or (self.kind == "status" and self.status in {401, 403, 502})

    def error(self) -> ApiError:
        """The error answer that it is."""
        kind = self.error_type or KINDS.get(self.status, "api_error")
        return ApiError(self.status, kind, self.message or kind, self.error_code, dict(self.headers))


@dataclass
class _Rule:
    faults: deque[Fault]
    when: Callable[[Entry], bool] | None
    forever: bool

    def concerns(self, entry: Entry) -> bool:
        return bool(self.faults) and (entry.is_message if self.when is None else self.when(entry))


class Script:
    """Rules in the order in which they were added: the first that a call fits, and that has a fault left, gives it."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []
        self._random = random.Random(0)
        self._share = 0.0
        self._mixture: tuple[Fault, ...] = ()

    def add(self, *faults: Fault, when: Callable[[Entry], bool] | None = None, forever: bool = False) -> None:
        """One fault a call, in order; the last one for all further calls if ``forever``. Without ``when``: calls for
        a message."""
        self._rules.append(_Rule(deque(faults), when, forever))

    def fail_share(self, share: float, *mixture: Fault, seed: int = 0) -> None:
        """Of the calls that no rule concerns, so many fail, each with one of the mixture."""
        self._share, self._mixture, self._random = share, mixture or MIXTURE, random.Random(seed)

    def clear(self) -> None:
        self._rules.clear()
        self._share = 0.0

    @property
    def left(self) -> int:
        """Faults that no call has had yet; those for ever not counted."""
        return sum(len(rule.faults) for rule in self._rules if not rule.forever)

    def at_the_edge(self, entry: Entry) -> Fault | None:
        """The fault of this call, if it shows before anything in the call is looked at."""
        rule = self._rule_of(entry)
        return self.take(entry) if rule is not None and rule.faults[0].is_at_the_edge else None

    def take(self, entry: Entry) -> Fault | None:
        """The fault of this call."""
        rule = self._rule_of(entry)
        if rule is not None:
            is_lasting = rule.forever and len(rule.faults) == 1
            return rule.faults[0] if is_lasting else rule.faults.popleft()
        if self._share and entry.is_message and self._random.random() < self._share:
            return self._random.choice(self._mixture)
        return None

    def _rule_of(self, entry: Entry) -> _Rule | None:
        return next((rule for rule in self._rules if rule.concerns(entry)), None)


def none() -> Fault:
    """Lets a call through, where the next one shall fail."""
    return Fault("none")


def status(code: int, message: str = "", **more: Any) -> Fault:
    return Fault("status", code, message, **more)


def rate_limited(retry_after: float | str | None = None, **more: Any) -> Fault:
    """429; ``retry_after`` in seconds, or a date as HTTP writes it."""
    return Fault("status", 429, "Rate limited. Please try again later.", headers=_wait(retry_after), **more)


def spend_limit(error_code: str = "enforced_spend_limit_reached") -> Fault:
    """429 that lasts until the month's end, and has no ``retry-after``."""
    return Fault("status", 429, "Your organization has reached its spend limit.", error_code=error_code)


def usage_limit() -> Fault:
    """The same as a 400."""
    return Fault(
        "status", 400, "You have reached your specified API usage limits. You will regain access on 2026-12-01."
    )


def overloaded(retry_after: float | str | None = None) -> Fault:
    return Fault("status", 529, "Overloaded", headers=_wait(retry_after))


def compaction_unavailable() -> Fault:
    return Fault("status", 529, "Compaction is temporarily unavailable.", error_code="compaction_unavailable")


def server_error() -> Fault:
    return Fault("status", 500, "Internal server error")


def gateway_timeout() -> Fault:
    return Fault("status", 504, "Request timed out")


def html(code: int = 502) -> Fault:
    """A page of some machine in between."""
    return Fault("html", code, "<html><head><title>Bad Gateway</title></head><body>cloudflare</body></html>")


def unauthorized() -> Fault:
    """As if the key had just been rotated."""
    return Fault("status", 401, "invalid x-api-key")


def should_retry(code: int, wanted: bool) -> Fault:
    """A status whose header tells the SDK to do otherwise than it would."""
    return Fault("status", code, headers={"x-should-retry": str(wanted).lower()})


def reset(*, after_headers: bool = False) -> Fault:
    return Fault("reset_after_headers" if after_headers else "reset")


def hang(*, after_headers: bool = False) -> Fault:
    """No further byte, for ever."""
    return Fault("hang_after_headers" if after_headers else "hang")


def slow(seconds: float) -> Fault:
    """So long before the first byte, beside the usual latency."""
    return Fault("slow", seconds=seconds)


def trickle(seconds: float = 1.0) -> Fault:
    """One byte in so many seconds, so that no read ever times out."""
    return Fault("trickle", seconds=seconds)


def stall(after: int = 4) -> Fault:
    """A part of the answer, then nothing, for ever."""
    return Fault("stall", after=after)


def error_event(error_type: str = "overloaded_error", after: int = 4) -> Fault:
    """An error in the middle of a stream that began with 200."""
    return Fault("error_event", 529, "Overloaded", error_type, after=after)


def cut_stream(after: int = 4) -> Fault:
    """The stream ends properly, but before its last event; a plain body ends in its middle."""
    return Fault("cut_stream", after=after)


def empty_stream() -> Fault:
    return Fault("empty_stream")


def odd_events() -> Fault:
    """Pings everywhere, an event of a type that nobody knows, and one twice: a client must not mind."""
    return Fault("odd_events")


def answers(brain: Brain | str) -> Fault:
    """This call is another brain's."""
    return Fault("answer", brain=brain)


def _wait(retry_after: float | str | None) -> dict[str, str]:
    return {} if retry_after is None else {"retry-after": str(retry_after)}


MIXTURE = (server_error(), overloaded(), rate_limited(1), reset(), reset(after_headers=True), gateway_timeout())
"""What fails where only a share is named."""
