"""Calls of a model behind the Messages API: one client a process, with limits, budget and every outcome told apart."""

from prefold.messages.asking import Ask, Reply
from prefold.messages.calls import Messages, connect_messages
from prefold.messages.errors import (
    AnswerRefusedError,
    BadRequestError,
    BudgetSpentError,
    InputTooLongError,
    ModelAwayError,
    ModelBusyError,
    ModelParkedError,
)

__all__ = [
    "AnswerRefusedError",
    "Ask",
    "BadRequestError",
    "BudgetSpentError",
    "InputTooLongError",
    "Messages",
    "ModelAwayError",
    "ModelBusyError",
    "ModelParkedError",
    "Reply",
    "connect_messages",
]
