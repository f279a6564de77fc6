"""Which kind of thinking a model takes, and that thinking comes back as it was given."""

import base64
import hashlib
from typing import Any

from tests.support.messages_api.catalogue import Model
from tests.support.messages_api.errors import invalid
from tests.support.messages_api.prompt import blocks_of

_LEAST_BUDGET = 1024
_HOW_INSTEAD = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'


def sign(thinking: str) -> str:
    """The signature that the fake gives a thinking text, and the only one that it takes back for it."""
    return base64.b64encode(hashlib.blake2b(thinking.encode(), key=b"fake", digest_size=24).digest()).decode()


def check_thinking(body: dict[str, Any], model: Model) -> None:
    """Raises 400 for a kind that the model does not take, a budget without room, and edited blocks."""
    thinking = body.get("thinking")
    if thinking is not None:
        _check_kind(thinking, model)
        _check_budget(thinking, body)
    for index, message in enumerate(body["messages"]):
        for at, block in enumerate(blocks_of(message["content"])):
            if block.get("type") == "thinking" and block["signature"] != sign(block["thinking"]):
                raise invalid(f"messages.{index}.content.{at}: Invalid `signature` in `thinking` block")


def _check_kind(thinking: Any, model: Model) -> None:
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    if kind not in {"enabled", "disabled", "adaptive", "between_tools"}:
        raise invalid("thinking.type: Input should be 'enabled', 'disabled' or 'adaptive'")
    if kind in model.thinking:
        return
    if kind == "adaptive":
        raise invalid("adaptive thinking is not supported on this model")
    raise invalid(f'"thinking.type.{kind}" is not supported for this model. {_HOW_INSTEAD}')


def _check_budget(thinking: dict[str, Any], body: dict[str, Any]) -> None:
    if thinking["type"] != "enabled":
        return
    budget = thinking.get("budget_tokens")
    if budget is None:
        raise invalid("thinking.enabled.budget_tokens: Field required")
    if budget < _LEAST_BUDGET:
        raise invalid(f"thinking.enabled.budget_tokens: Input should be greater than or equal to {_LEAST_BUDGET}")
    if body.get("max_tokens", budget + 1) <= budget:
        raise invalid("`max_tokens` must be greater than `thinking.budget_tokens`.")
