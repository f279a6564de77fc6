"""When a call is tried again: connections that fail, 429 and 502 to 504, until the call's own deadline.

Every call of this client is idempotent (turns always have an id), so a lost answer is safe to ask for again.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from prefold.errors import RefusedError, TransientError, UnavailableError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounds of one call, retries included."""

    deadline_seconds: float = 30.0
    """No attempt starts, and no pause ends, later than this after the call began."""
    attempt_seconds: float = 10.0
    """Longest wait of one attempt for the connection, or for the next bytes."""
    first_pause_seconds: float = 0.1
    """Upper end of the first pause; doubles with each attempt."""
    longest_pause_seconds: float = 5.0


class Attempts:
    """The attempts of one call. Not shared between calls."""

    def __init__(
        self,
        policy: RetryPolicy,
        *,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        began: float | None = None,
    ) -> None:
        """``began``: when the call did, by ``clock``; None: now."""
        self._policy = policy
        self._clock = clock
        self._jitter = jitter
        self._ends_at = (clock() if began is None else began) + policy.deadline_seconds
        self._failures = 0

    def timeout_seconds(self) -> float:
        """What the next attempt may take at most."""
        return max(0.001, min(self._policy.attempt_seconds, self._ends_at - self._clock()))

    def pause_after(self, error: TransientError) -> float:
        """Seconds to wait before the next attempt; raises ``error`` when that would pass the deadline.

        Never shorter than the server's Retry-After; the jitter on top keeps many clients from coming back at once.
        """
        backoff = min(self._policy.first_pause_seconds * 2.0**self._failures, self._policy.longest_pause_seconds)
        self._failures += 1
        asked = error.retry_after.total_seconds() if error.retry_after else 0.0
        pause = asked + backoff * self._jitter()
        if self._clock() + pause >= self._ends_at:
            raise error
        return pause


def closed_client() -> RefusedError:
    """A call after the end: it would open connections that nobody closes."""
    return RefusedError("the client is closed: make another one", code="client_closed")


def other_loop() -> RefusedError:
    """A call in another event loop than the first one: the connections belong to that one."""
    return RefusedError(
        "the client belongs to the event loop of its first call: make one for each loop", code="other_loop"
    )


def unavailable(error: httpx.TransportError, url: str) -> UnavailableError:
    """What a transport's failure means to the caller: nobody answered. Quotes no name or password of ``url``."""
    told = str(error) or type(error).__name__
    place = str(httpx.URL(url).copy_with(userinfo=b"")) if "@" in url else url
    return UnavailableError(f"{place} does not answer: {told}", code="no_answer")
