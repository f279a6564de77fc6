"""The models that the fake knows: windows, limits, the prompt cache's minimum, and what each does about thinking."""

from dataclasses import dataclass
from typing import Any

_BUDGET = frozenset({"enabled", "disabled"})
_ADAPTIVE = frozenset({"adaptive", "disabled"})
_ALWAYS = frozenset({"adaptive"})
_BETWEEN = frozenset({"adaptive", "between_tools"})


@dataclass(frozen=True, slots=True)
class Model:
    """One row of the catalogue."""

    id: str
    window_tokens: int
    max_output_tokens: int
    cache_minimum_tokens: int
    thinking: frozenset[str]
    """The ``thinking.type`` values that it takes."""
    thinks_unasked: bool
    is_older: bool = False
    """Takes prefill, knows no system turns, and refuses input + ``max_tokens`` above the window, where newer ones
    generate until ``model_context_window_exceeded``."""
    takes_forced_tools: bool = True

    def describe(self) -> dict[str, Any]:
        """As ``GET /v1/models/{id}`` tells it."""
        types = {kind: {"supported": kind in self.thinking} for kind in ("enabled", "adaptive")}
        line = next((line for line in ("haiku", "sonnet", "opus", "fable", "mythos") if line in self.id), None)
        supported = {name: {"supported": True} for name in ("batch", "citations", "image_input", "pdf_input")}
        return {
            "type": "model",
            "id": self.id,
            "display_name": self.id.replace("claude-", "Claude ").replace("-", " ").title(),
            "created_at": "2026-01-01T00:00:00Z",
            "lifecycle": "active",
            "line": line,
            "max_input_tokens": self.window_tokens,
            "max_tokens": self.max_output_tokens,
            "capabilities": {**supported, "thinking": {"supported": True, "types": types}},
        }


def _large(name: str, minimum: int, thinking: frozenset[str], unasked: bool = True, forced: bool = True) -> Model:
    return Model(f"claude-{name}", 1_000_000, 128_000, minimum, thinking, unasked, takes_forced_tools=forced)


def _older(name: str, minimum: int) -> Model:
    return Model(f"claude-{name}", 200_000, 64_000, minimum, _BUDGET, False, is_older=True)


_ROWS = (
    _large("haiku-5-5", 512, _ADAPTIVE),
    _large("sonnet-5-5", 512, _BETWEEN, forced=False),
    _large("opus-5-5", 512, _ALWAYS),
    _large("opus-5", 512, _ADAPTIVE),
    *(_large(f"{line}-{version}", 512, _ALWAYS) for line in ("fable", "mythos") for version in ("5", "5-1", "5-2")),
    _large("sonnet-5", 1024, _ADAPTIVE),
    _large("opus-4-8", 1024, _ADAPTIVE, unasked=False),
    _large("opus-4-7", 2048, _ADAPTIVE, unasked=False),
    _large("mythos-preview", 2048, frozenset({"adaptive", "enabled"})),
    _large("opus-4-6", 4096, _ADAPTIVE | _BUDGET, unasked=False),
    _large("sonnet-4-6", 1024, _ADAPTIVE | _BUDGET, unasked=False),
    _older("haiku-4-5", 4096),
    _older("haiku-4-5-20251001", 4096),
    _older("opus-4-5", 4096),
    _older("opus-4-5-20251101", 4096),
    _older("sonnet-4-5", 1024),
    _older("sonnet-4-5-20250929", 1024),
)

MODELS = {model.id: model for model in _ROWS}
NO_SYSTEM_TURNS = frozenset({"claude-opus-4-6", "claude-sonnet-4-6"})
"""Beside the older ones."""
