"""The short way of the two hot calls: an append, and a context read that asks for nothing special.

It makes the door's checks in the door's order, by the same parts, and does only what needs no waiting but for one round
trip to the session store. Whatever is refused, unusual or not ready is left to the general way before anything was
done; what the store does not answer as hoped is finished by the general calls. So every refusal, retry and rare case
has one place, and that is not here.
"""

import asyncio
import re
from time import perf_counter
from typing import Final

from prefold.errors import OverloadedError, PrefoldError, UnavailableError
from prefold.gateway.admission import TenantQueue
from prefold.gateway.door import Door
from prefold.gateway.known_contexts import KnownContexts
from prefold.gateway.short_calls import Append, Call, HotParts, Read
from prefold.gateway.turn_calls import THREAD_FROM_BYTES
from prefold.gateway.whole_requests import Headers, WholeRequest
from prefold.tokens import TokenCounter

__all__ = ["HotCalls", "HotParts"]

_NAME: Final = rb"([A-Za-z0-9][A-Za-z0-9._@+=|~-]{0,127})"
"""A session's, with nothing in it that a URL would encode."""
_TURNS = re.compile(rb"/v1/sessions/" + _NAME + rb"/turns").fullmatch
_CONTEXT = re.compile(rb"/v1/sessions/" + _NAME + rb"/context").fullmatch
_UNUSUAL = frozenset({b"content-encoding", b"transfer-encoding", b"if-none-match", b"expect", b"upgrade"})
_SWEEPS = 20
"""Looks for calls that take too long, in the time that a call may take."""


class HotCalls:
    """A ``Shortcut`` for whole requests."""

    def __init__(self, door: Door, parts: HotParts) -> None:
        self.door = door
        self.parts = parts
        self.known = KnownContexts()
        self.counter: TokenCounter | None = None
        self._append = parts.table.find("POST", b"/v1/sessions/s/turns")[0]
        self._read = parts.table.find("GET", b"/v1/sessions/s/context")[0]
        self._within = parts.settings.request_timeout_ms / 1000
        self._under_way: dict[Call, None] = {}
        """The oldest first."""
        self._sweep: asyncio.TimerHandle | None = None

    def knows(self, method: bytes, target: bytes) -> bool:
        """See ``Shortcut``."""
        return target.endswith(b"/turns" if method == b"POST" else b"/context") and method in (b"POST", b"GET")

    def take(self, request: WholeRequest) -> bool:
        """See ``Shortcut``."""
        started = perf_counter()
        appends = request.method == b"POST"
        named = (_TURNS if appends else _CONTEXT)(request.target)
        if named is None or not _is_ordinary(request.headers, appends):
            return False
        operation = self._append if appends else self._read
        try:
            caller = self.parts.guard.admit({"headers": request.headers}, operation)
        except PrefoldError:
            return False
        if not self._is_ready(request, appends):
            return False
        queue = self._place(caller.tenant, started)
        if queue is None:
            return False
        kind = Append if appends else Read
        call = kind(self, operation, request, caller.tenant, named[1].decode(), queue, started)
        return self._began(call)

    def _is_ready(self, request: WholeRequest, appends: bool) -> bool:
        """Whether everything is there that has to be waited for otherwise."""
        if self.counter is None:
            self.counter = self.parts.counter.now()
        size = len(request.body)
        if self.counter is None or not (0 < size <= THREAD_FROM_BYTES if appends else size == 0):
            return False
        return not appends or self.parts.store.known() is not None

    def _place(self, tenant: str, now: float) -> TenantQueue | None:
        """The queue in which the call has a place now; None: it has to wait, or may not even do that."""
        admission, metrics = self.parts.admission, self.parts.metrics
        if metrics.in_flight >= self.parts.settings.requests_in_flight:
            return None
        try:
            queue = admission.arrive(tenant)
        except OverloadedError:
            return None
        if not admission.try_enter(queue, now):
            admission.depart(queue)
            return None
        metrics.in_flight += 1
        return queue

    def _began(self, call: Call) -> bool:
        """Whether the call is under way; else its place is free again."""
        sent = False
        try:
            sent = call.begin()
        except PrefoldError:
            pass
        finally:
            if not sent:
                self._leave(call)
        if sent:
            self._under_way[call] = None
            if self._sweep is None:
                self._sweep = asyncio.get_running_loop().call_later(self._within / _SWEEPS, self._end_overdue)
        return sent

    def _leave(self, call: Call) -> float:
        now = perf_counter()
        self.parts.metrics.in_flight -= 1
        self.parts.admission.leave(call.queue, now - call.started)
        self.parts.admission.depart(call.queue)
        return now - call.started

    def end(self, call: Call, status: int) -> None:
        """The call has its answer."""
        call.over = True
        self._under_way.pop(call, None)
        seconds = self._leave(call)
        self.parts.metrics.observe(call.operation.method, call.operation.path, status, seconds)

    def _end_overdue(self) -> None:
        """Answers for the store where it does not answer in time: one timer for all calls."""
        self._sweep = None
        before = perf_counter() - self._within
        for call in list(self._under_way):
            if call.started > before:
                break
            call.fail(UnavailableError("the stores did not answer in time", code="timeout"))
        if self._under_way:
            self._sweep = asyncio.get_running_loop().call_later(self._within / _SWEEPS, self._end_overdue)


def _is_ordinary(headers: Headers, has_body: bool) -> bool:
    """Whether no header asks for more than an answer."""
    typed = False
    for name, value in headers:
        if name in _UNUSUAL:
            return False
        if name == b"content-type":
            if typed or value != b"application/json":
                return False
            typed = True
    return typed or not has_body
