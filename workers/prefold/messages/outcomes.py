"""What became of a call: the one place where the provider's answers and failures are told apart.

Every outcome becomes a ``Verdict``: what the caller gets, what it means for the others that use the same key, and what
it cost. Nothing of a request, an answer or an error text goes into a message: an error text may quote the prompt.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import orjson

from prefold.errors import PrefoldError
from prefold.messages.errors import (
    AnswerRefusedError,
    BadRequestError,
    InputTooLongError,
    ModelAwayError,
    ModelBusyError,
    ModelParkedError,
)
from prefold.messages.patience import asked_wait
from prefold.messages.usage import read_usage
from prefold.pricing import BilledTokens

if TYPE_CHECKING:
    from prefold.messages.client import RawAnswer

__all__ = ["Billing", "Signal", "Verdict", "judge_answer", "judge_failure"]

Signal = Literal["well", "busy", "trouble", "parked", "useless_model"]
"""What it says of the provider: it works; its rate limit; it fails; this key is of no use; this model is of none."""
Billing = Literal["reported", "nothing", "unclear"]
"""``unclear``: it may have been billed, and nobody will tell."""

_SPEND_CODES = {
    "enforced_spend_limit_reached",
    "contract_spend_limit_reached",
    "linked_organization_spend_limit_reached",
}
_CREDENTIAL_CODES = {
    "organization_on_hold",
    "organization_type_not_supported",
    "linked_organization_billing_unavailable",
    "claude_code_key_creator_not_member",
    "cmek_key_disabled",
    "user_profile_not_billable",
    "user_profile_billing_not_authorized",
}
_RAMP_CODE = "ramp_limit_exceeded"
"""How fast usage may grow: it names the time to wait, unlike the spend limits."""
_SPEND_TEXTS = re.compile(r"you have reached your specified api usage limits|credit balance is too low", re.IGNORECASE)
_LONG_TEXTS = re.compile(r"prompt is too long|exceed(s|ed)? (the )?(context|available context)", re.IGNORECASE)
_LONG_TYPES = {"request_too_large", "exceed_context_size_error"}
_PLACE = re.compile(r"^[a-z_]{1,40}(\.[a-z0-9_]{1,40}){0,8}(?=: )")
_TYPE_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""An error that comes with status 200, in a stream or a body, says by its type what the status should have."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Exactly one of ``text`` and ``error`` is set."""

    signal: Signal
    billing: Billing
    error: PrefoldError | None = None
    text: str = ""
    """Joined text blocks; also of an answer that was refused."""
    used: BilledTokens | None = None
    request_id: str = ""
    model: str = ""
    """As the answer names it."""
    wait: timedelta | None = None
    """What the response asks for, as it is."""
    has_answer: bool = False


@dataclass(frozen=True, slots=True)
class _Problem:
    """An error response, whatever it came in."""

    status: int
    kind: str = ""
    code: str = ""
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def request_id(self) -> str:
        return _request_id(self.headers)

    @property
    def label(self) -> str:
        """What may be said of it."""
        place = _PLACE.match(self.text)
        named = [f"status {self.status}", self.kind, self.code, place.group() if place else "", self.request_id]
        return ", ".join(part for part in named if part)


def judge_failure(error: Exception) -> Verdict:
    """What an exception of the client means. One that is not the provider's is raised again: it is a fault of ours."""
    import anthropic
    import httpx2
    import pydantic

    if isinstance(error, TimeoutError):
        return _away("model_timeout", "the model did not answer within the deadline of the call", "unclear")
    if isinstance(error, anthropic.APIStatusError):
        return _judge_problem(
            _Problem(
                status=_status_of(error.status_code, error.type),
                kind=_word(error.type),
                code=_word(error.error_code),
                text=error.api_message if isinstance(error.api_message, str) else "",
                headers=error.response.headers,
            )
        )
    if isinstance(error, anthropic.APIConnectionError):
        unsent = isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
        billing: Billing = "nothing" if unsent else "unclear"
        if isinstance(error, anthropic.APITimeoutError):
            return _away("model_timeout", "the model did not answer in time", billing)
        return _away("model_unavailable", f"no connection to the model: {_cause(error)}", billing)
    if isinstance(error, UnicodeEncodeError):  # half a surrogate pair; the error itself holds the text
        return Verdict("well", "nothing", BadRequestError("the request has text that is not Unicode"))
    if isinstance(error, json.JSONDecodeError | anthropic.APIResponseValidationError):
        return _away("model_unavailable", "the model's server answered with something that is no message", "unclear")
    if isinstance(error, pydantic.ValidationError):
        refused = AnswerRefusedError("the answer does not have the form of a message", code="answer_malformed")
        return Verdict("well", "unclear", refused)
    raise error


def judge_answer(answer: "RawAnswer") -> Verdict:
    """What a response with a status of success means: only a whole answer with a normal end is one."""
    request_id = _request_id(answer.headers)
    try:
        message = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        # A gateway's page never was at the model; JSON that breaks off was, and is billed.
        billing: Billing = "unclear" if answer.body.lstrip().startswith(b"{") else "nothing"
        return _away("model_unavailable", "the model's server answered with something that is no JSON", billing)
    if not isinstance(message, dict):
        return _away("model_unavailable", "the model's server answered with something that is no message", "nothing")
    if message.get("type") == "error" or ("error" in message and "content" not in message):
        return _judge_problem(_problem_in(message, answer.headers))
    return _judge_message(message, request_id)


def _judge_message(message: dict[str, Any], request_id: str) -> Verdict:
    used = read_usage(message.get("usage"))
    text = _text_of(message.get("content"))
    named = message.get("model")

    def verdict(error: PrefoldError | None, signal: Signal = "well") -> Verdict:
        return Verdict(
            signal=signal,
            billing="reported" if used else "unclear",
            error=error,
            text=text or "",
            used=used,
            request_id=request_id,
            model=named[:256] if isinstance(named, str) else "",
            has_answer=True,
        )

    reason = message.get("stop_reason")
    if reason is None:
        return verdict(ModelAwayError("the answer breaks off", code="model_unavailable"), "trouble")
    if text is None:
        return verdict(AnswerRefusedError("the answer's content is no list of blocks", code="answer_malformed"))
    if reason == "end_turn":
        if text.strip():
            return verdict(None)
        return verdict(AnswerRefusedError("the answer has no text", code="answer_empty"))
    if reason == "max_tokens":
        return verdict(AnswerRefusedError("the answer was cut at its most tokens", code="answer_cut"))
    if reason == "refusal":
        return verdict(AnswerRefusedError("the model declined to answer", code="answer_refusal"))
    if reason == "model_context_window_exceeded":  # more room for the answer would not help, a shorter input does
        return verdict(InputTooLongError("input and answer are longer than the model's window"))
    label = _word(reason) or "unknown"
    return verdict(AnswerRefusedError(f"the answer stopped for {label}", code="answer_stopped"))


def _judge_problem(problem: _Problem) -> Verdict:
    wait = asked_wait(problem.headers)

    def verdict(signal: Signal, error: PrefoldError) -> Verdict:
        return Verdict(signal, "nothing", error, request_id=problem.request_id, wait=wait)

    def parked(code: str, meaning: str, signal: Signal = "parked") -> Verdict:
        return verdict(signal, ModelParkedError(f"{meaning} ({problem.label})", code=code))

    status, told = problem.status, problem.headers.get("x-should-retry", "").strip().lower()
    if problem.code in _SPEND_CODES or _SPEND_TEXTS.search(problem.text):
        return parked("model_spend_limit", "the key's spend limit is reached")
    if signal := _shuts_out(problem):
        return parked("model_credentials", "the provider does not let the key in", signal)
    if status == 404:
        return parked("model_unknown", "the provider does not know the model", "useless_model")
    if status == 413 or problem.kind in _LONG_TYPES or (status == 400 and _LONG_TEXTS.search(problem.text)):
        return verdict("well", InputTooLongError(f"the input is too long for the model ({problem.label})"))
    if status == 429:
        if told == "false" or (problem.code == _RAMP_CODE and wait is None):
            return parked("model_spend_limit", "the provider's limit does not pass by waiting")
        busy = ModelBusyError(f"the provider's rate limit ({problem.label})", retry_after=wait)
        return verdict("busy", busy)
    is_passing = status in (408, 409, 499) or status >= 500 or status < 400
    if told == "true" or (is_passing and told != "false"):
        code = {529: "model_overloaded", 504: "model_timeout"}.get(status, "model_unavailable")
        return verdict("trouble", ModelAwayError(f"the model fails ({problem.label})", code=code, retry_after=wait))
    return verdict("trouble" if is_passing else "well", BadRequestError(f"the provider refuses ({problem.label})"))


def _shuts_out(problem: _Problem) -> Signal | None:
    """What a key that is not let in is of no use for: 403 speaks of one model; where it is all, each model says so."""
    if problem.status in (401, 402) or problem.code in _CREDENTIAL_CODES:
        return "parked"
    return "useless_model" if problem.status == 403 else None


def _away(code: str, detail: str, billing: Billing) -> Verdict:
    return Verdict("trouble", billing, ModelAwayError(detail, code=code))


def _problem_in(body: dict[str, Any], headers: Mapping[str, str]) -> _Problem:
    error = body.get("error")
    error = error if isinstance(error, dict) else {}
    details = error.get("details")
    kind, text = _word(error.get("type")), error.get("message")
    return _Problem(
        status=_status_of(200, kind),
        kind=kind,
        code=_word(details.get("error_code")) if isinstance(details, dict) else "",
        text=text if isinstance(text, str) else "",
        headers=headers,
    )


def _status_of(status: int, kind: object) -> int:
    if status >= 300:
        return status
    return _TYPE_STATUS.get(kind, 500) if isinstance(kind, str) else 500


def _text_of(content: object) -> str | None:
    """All text blocks joined; None: this is no content. Thinking and calls are skipped, wherever they stand."""
    if not isinstance(content, list):
        return None
    texts: list[str] = []
    for block in content:
        if not isinstance(block, dict):
            return None
        if block.get("type") == "text":
            if not isinstance(block.get("text"), str):
                return None
            texts.append(block["text"])
    return "".join(texts)


def _request_id(headers: Mapping[str, str]) -> str:
    return _word(headers.get("request-id") or headers.get("x-request-id"))


def _word(value: object) -> str:
    """A short identifier, or nothing: what a server says elsewhere may be text of the conversation."""
    return value if isinstance(value, str) and re.fullmatch(r"[\w.:-]{1,128}", value) else ""


def _cause(error: Exception) -> str:
    return type(error.__cause__ or error).__name__
