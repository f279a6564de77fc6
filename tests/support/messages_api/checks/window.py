"""The input against the model's window."""

from typing import Any

from tests.support.messages_api.catalogue import Model
from tests.support.messages_api.errors import invalid


def check_window(body: dict[str, Any], model: Model, tokens: int) -> None:
    """Raises 400 where the input alone is too long, and on older models where it leaves no room for the answer."""
    if tokens > model.window_tokens:
        raise invalid(f"prompt is too long: {tokens} tokens > {model.window_tokens} maximum")
    asked = body.get("max_tokens", 0)
    if model.is_older and tokens + asked > model.window_tokens:
        raise invalid(
            f"input length and `max_tokens` exceed context limit: {tokens} + {asked} > {model.window_tokens},"
            " decrease input length or `max_tokens` and try again"
        )
