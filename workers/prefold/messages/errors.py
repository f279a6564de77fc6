"""How a model call fails.

Codes are stable; they are kept as a build's reason. No message holds text of a conversation or of an answer.

TransientError
├── ModelAwayError (UnavailableError)     model_unavailable, model_overloaded, model_timeout, model_breaker_open
└── ModelBusyError (OverloadedError)      model_rate_limited: the provider's limit, or our own
RefusedError
├── ModelParkedError     model_credentials, model_unknown, model_spend_limit: nothing goes to this key for a while
├── BudgetSpentError     budget_spent: the tenant's budget of the day
├── AnswerRefusedError   answer_refusal, answer_empty, answer_cut, answer_stopped, answer_malformed
├── InputTooLongError    input_too_long: ask again with less
└── BadRequestError      model_bad_request: the same request is refused again
"""

from typing import TYPE_CHECKING

from prefold.errors import OverloadedError, RefusedError, UnavailableError

if TYPE_CHECKING:
    from prefold.messages.asking import Reply

__all__ = [
    "AnswerRefusedError",
    "BadRequestError",
    "BudgetSpentError",
    "InputTooLongError",
    "ModelAwayError",
    "ModelBusyError",
    "ModelParkedError",
]


class ModelAwayError(UnavailableError):
    """The model does not answer, or not whole; the same call may succeed later."""

    code = "model_unavailable"


class ModelBusyError(OverloadedError):
    """A rate limit: the provider's, or ours before it."""

    code = "model_rate_limited"


class ModelParkedError(RefusedError):
    """The credential or the model is of no use now, for any tenant. Somebody has to act."""

    code = "model_credentials"


class BudgetSpentError(RefusedError):
    """The tenant's budget of the day does not cover this call."""

    code = "budget_spent"


class AnswerRefusedError(RefusedError):
    """There is an answer and it is none that can be used. ``reply`` is what came of it, if anything did."""

    code = "answer_malformed"

    def __init__(self, detail: str, *, code: str | None = None, reply: "Reply | None" = None) -> None:
        super().__init__(detail, code=code)
        self.reply = reply


class InputTooLongError(RefusedError):
    """The input is longer than the model's window or the provider's size limit."""

    code = "input_too_long"


class BadRequestError(RefusedError):
    """The provider will not take this request, now or later."""

    code = "model_bad_request"
