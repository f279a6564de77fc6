"""The gate of one process: what ``admit_call.lua`` and ``note_call.lua`` do, in memory."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from prefold.messages.gate import Admission, Event, GateLimits, GateRules, Noted, Report

__all__ = ["LocalGate"]

_MINUTE = 60.0
_SOON = 5.0


@dataclass(slots=True)
class _Lock:
    """A parked key or an open breaker. Seconds of the gate's clock; ``until`` None: not shut."""

    until: float | None = None
    times: int = 0
    why: str = ""
    probe: str = ""
    probe_until: float = 0.0

    def keeps_out(self, now: float, call_id: str) -> float:
        """How long; 0: the call may pass, as a probe if this is shut."""
        if self.until is None:
            return 0.0
        if now < self.until:
            return self.until - now
        others = self.probe not in ("", call_id) and now < self.probe_until
        return min(self.probe_until - now, _SOON) if others else 0.0

    def shut(self, now: float, why: str, least: timedelta, most: timedelta) -> None:
        pause = min(least * 2 ** min(self.times, 20), most).total_seconds()
        self.until = now + pause * random.uniform(0.75, 1.0)  # noqa: S311 (jitter)
        self.times += 1
        self.why, self.probe = why, ""

    def open(self) -> None:
        self.until, self.times, self.why, self.probe = None, 0, "", ""


@dataclass(slots=True)
class _Model:
    lock: _Lock = field(default_factory=_Lock)
    fails: int = 0
    blocked: float = 0.0
    bare: int = 0


@dataclass(frozen=True, slots=True)
class _Told:
    now: float
    model: _Model
    report: Report
    probes_key: bool
    probes_model: bool


class LocalGate:
    """``Gate`` for one process, on one loop. It stands in while the shared one is away."""

    def __init__(
        self,
        limits: GateLimits | None = None,
        rules: GateRules | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits or GateLimits()
        self._rules = rules or GateRules()
        self._monotonic = monotonic
        self._key = _Lock()
        self._models: dict[str, _Model] = {}
        self._request_tat = 0.0
        self._input_tat = 0.0

    async def admit(self, model: str, call_id: str, input_tokens: int) -> Admission:
        now = self._monotonic()
        asked = self._model(model)
        breaker = asked.lock
        locks: tuple[tuple[_Lock, Literal["parked", "open"]], ...] = ((self._key, "parked"), (breaker, "open"))
        for lock, verdict in locks:
            if kept := lock.keeps_out(now, call_id):
                return Admission(verdict, timedelta(seconds=kept), lock.why)
        request_tat, wait_requests = _share(self._request_tat, now, self._limits.requests_per_minute, 1)
        input_tat, wait_input = _share(self._input_tat, now, self._limits.input_tokens_per_minute, input_tokens)
        wait = max(wait_requests, wait_input, asked.blocked - now, 0.0)
        if wait > self._rules.most_wait.total_seconds():
            return Admission("busy", timedelta(seconds=wait))
        self._request_tat, self._input_tat = request_tat, input_tat
        return Admission("go", timedelta(seconds=wait), probes=self._take_probes(now, breaker, call_id))

    def _take_probes(self, now: float, breaker: _Lock, call_id: str) -> Literal["", "key", "model"]:
        of: Literal["", "key", "model"] = ""
        for lock, name in ((breaker, "model"), (self._key, "key")):
            if lock.until is not None:
                lock.probe, lock.probe_until = call_id, now + self._rules.probe_ends.total_seconds()
                of = "key" if name == "key" else "model"
        return of

    async def note(self, model: str, call_id: str, report: Report) -> Noted:
        now, known = self._monotonic(), self._model(model)
        if self._limits.input_tokens_per_minute:
            self._input_tat -= report.refund_tokens * _MINUTE / self._limits.input_tokens_per_minute
        learn = getattr(self, f"_learn_{report.signal}")
        event: Event = learn(_Told(now, known, report, self._key.probe == call_id, known.lock.probe == call_id))
        for lock in (self._key, known.lock):
            if lock.probe == call_id:
                lock.probe = ""
        left = max(known.blocked, known.lock.until or 0.0, self._key.until or 0.0) - now
        return Noted(event, known.fails, timedelta(seconds=max(0.0, left)))

    def _learn_well(self, told: "_Told") -> Event:
        told.model.fails = told.model.bare = 0
        return self._let_in(told)

    def _learn_busy(self, told: "_Told") -> Event:
        model = told.model
        if not told.report.is_bare:
            model.bare = 0
        elif told.now >= model.blocked:
            model.bare += 1
        # Waiting did not help, and nobody says how long to wait: so spend limits look. What limits the key as a whole
        # shows at each of its models.
        event = self._learn_useless_model(told) if model.bare >= 2 else self._let_in(told)
        self._block(told)
        return event

    def _learn_trouble(self, told: "_Told") -> Event:
        rules, model = self._rules, told.model
        model.fails += 1
        self._block(told)
        if told.probes_key:
            self._key.until = told.now + rules.open_pause.total_seconds()
        if told.probes_model or (model.lock.until is None and model.fails >= rules.failures_to_open):
            model.lock.shut(told.now, told.report.why, rules.open_pause, rules.most_open_pause)
            return "opened"
        return ""

    def _learn_useless_model(self, told: "_Told") -> Event:
        rules, lock = self._rules, told.model.lock
        event: Event = ""
        if told.probes_key:
            self._key.open()
            event = "released"
        if told.probes_model or lock.until is None:
            lock.shut(told.now, told.report.why, rules.park_pause, rules.most_park_pause)
            event = "opened"
        return event

    def _learn_parked(self, told: "_Told") -> Event:
        if not told.probes_key and self._key.until is not None:
            return ""
        self._key.shut(told.now, told.report.why, self._rules.park_pause, self._rules.most_park_pause)
        return "parked"

    def _learn_none(self, _told: "_Told") -> Event:
        return ""

    def _let_in(self, told: "_Told") -> Event:
        """The provider answered the probe as somebody who works."""
        event: Event = ""
        if told.probes_model:
            told.model.lock.open()
            event = "closed"
        if told.probes_key:
            self._key.open()
            event = "released"
        return event

    def _block(self, told: "_Told") -> None:
        if told.report.wait:
            told.model.blocked = max(told.model.blocked, told.now + told.report.wait.total_seconds())

    def _model(self, model: str) -> _Model:
        return self._models.setdefault(model, _Model())


def _share(tat: float, now: float, per_minute: int, cost: int) -> tuple[float, float]:
    """As in ``admit_call.lua``: new scheduling time of a bucket, and the wait for the share."""
    if not per_minute:
        return tat, 0.0
    before = max(tat, now)
    after = before + cost * _MINUTE / per_minute
    return after, max(0.0, min(after - _MINUTE, before) - now)
