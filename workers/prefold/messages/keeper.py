"""Takes a call through the gate: waits where that is short, and says how long to stay away where it is not."""

import asyncio
import random
from datetime import timedelta

import structlog

from prefold.messages.errors import ModelAwayError, ModelBusyError, ModelParkedError
from prefold.messages.gate import Admission, Gate, Noted, Report
from prefold.messages.outcomes import Verdict
from prefold.messages.patience import LONGEST_WAIT, backoff

__all__ = ["Gatekeeper"]

log = structlog.get_logger(__name__)

_OF_THE_MODEL = frozenset({"model_unknown", "model_credentials", "model_spend_limit"})
"""Why a breaker is open that no waiting closes: somebody has to act."""
_SPREAD_SECONDS = 2.0
"""Those who were kept away together come back over so long."""


class Gatekeeper:
    """What ``Messages`` needs of a gate."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def enter(self, model: str, call_id: str, input_tokens: int) -> None:
        """Returns when the call may be made, a few seconds later at most.

        ``ModelBusyError``, ``ModelAwayError`` (model_breaker_open) or ``ModelParkedError`` when not. Once it has
        returned, or was cancelled, ``leave`` or ``give_up`` has to be called.
        """
        admission = await self._gate.admit(model, call_id, input_tokens)
        if admission.verdict != "go":
            raise _kept_out(admission)
        if admission.probes:
            log.info("model_probe", model=model, of=admission.probes)
        if admission.wait:
            # Some more, so that those who wait for the same moment do not all go at it.
            await asyncio.sleep(admission.wait.total_seconds() * random.uniform(1.0, 1.25))  # noqa: S311 (jitter)

    async def leave(self, model: str, call_id: str, verdict: Verdict, input_tokens: int) -> timedelta:
        """Tells what came of the call; how long its caller should stay away when it failed for a while."""
        code = verdict.error.code if verdict.error else ""
        used = verdict.used.input_tokens if verdict.used else 0 if verdict.billing == "nothing" else input_tokens
        wait = min(verdict.wait or timedelta(0), LONGEST_WAIT)
        is_bare = verdict.signal == "busy" and not verdict.wait
        if verdict.wait and verdict.wait > LONGEST_WAIT:
            log.warning("retry_after_capped", model=model, asked_seconds=verdict.wait.total_seconds(), code=code)
        if is_bare:
            wait = backoff(2)
            code = "model_spend_limit"  # what it is called if it happens again after that
        report = Report(verdict.signal, code, wait, is_bare, input_tokens - used)
        noted = await self._gate.note(model, call_id, report)
        _tell(model, code, noted)
        return max(wait + _spread(), backoff(noted.failures))

    async def give_up(self, model: str, call_id: str) -> None:
        """The call was broken off: nothing is known of it."""
        await self._gate.note(model, call_id, Report("none"))


def _spread() -> timedelta:
    return timedelta(seconds=random.uniform(0, _SPREAD_SECONDS))  # noqa: S311 (jitter)


def _kept_out(admission: Admission) -> Exception:
    retry_after = admission.wait + _spread()
    if admission.verdict == "busy":
        return ModelBusyError("the key's rate limit, ours or the provider's, is used up", retry_after=retry_after)
    if admission.verdict == "parked":
        return ModelParkedError("the key is parked after what the provider said of it", code=admission.why)
    if admission.why in _OF_THE_MODEL:
        return ModelParkedError("the provider does not give us this model now", code=admission.why)
    return ModelAwayError("the model failed again and again", code="model_breaker_open", retry_after=retry_after)


def _tell(model: str, code: str, noted: Noted) -> None:
    seconds = round(noted.left.total_seconds(), 1)
    if noted.event == "opened":
        log.warning("model_breaker_opened", model=model, code=code, seconds=seconds)
    elif noted.event == "parked":
        log.error("model_key_parked", model=model, code=code, seconds=seconds)
    elif noted.event == "closed":
        log.info("model_breaker_closed", model=model)
    elif noted.event == "released":
        log.info("model_key_released", model=model)
