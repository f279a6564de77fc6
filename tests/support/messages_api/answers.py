"""What a brain says, and the message that the API makes of it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.messages_api.checks.thinking import sign
from tests.support.messages_api.counting import BLOCK_TOKENS, block_tokens, text_tokens

if TYPE_CHECKING:
    from tests.support.messages_api.wanted import Wanted

THINKING_TOKENS = 40
"""What a model that thinks spends on it here."""


@dataclass
class Answer:
    """Content blocks and how the turn ended."""

    blocks: list[dict[str, Any]]
    stop_reason: str | None = "end_turn"
    stop_sequence: str | None = None
    stop_details: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    """Laid over the usage that was counted; values may be None."""
    without: tuple[str, ...] = ()
    """Members that the body lacks; ``usage.x`` for one of the usage's."""
    is_exact: bool = False
    """No thinking block is put before it, and ``max_tokens`` and stop sequences do not touch it."""
    thinking_tokens: int = field(default=0, init=False)

    @property
    def tokens(self) -> int:
        """All that was generated, thinking included."""
        return self.thinking_tokens + sum(block_tokens(block) for block in self.blocks if block["type"] != "thinking")


Brain = Callable[["Wanted"], "Answer | str | Awaitable[Answer | str]"]
"""Answers one request from the request alone."""


def text(value: str, **how: Any) -> Answer:
    """One text block."""
    return Answer([{"type": "text", "text": value}], **how)


def thinking_block(thinking: str = "") -> dict[str, Any]:
    """Signed. Current models leave its text out unless they are asked for it."""
    return {"type": "thinking", "thinking": thinking, "signature": sign(thinking)}


def finish(answer: "Answer | str", wanted: "Wanted") -> Answer:
    """The answer within ``max_tokens`` and the stop sequences, with the thinking that the model does unasked."""
    if isinstance(answer, str):
        answer = text(answer)
    if answer.is_exact:
        return answer
    if wanted.thinks and not any(block["type"] == "thinking" for block in answer.blocks):
        answer.blocks = [thinking_block(), *answer.blocks]
    if wanted.thinks:
        answer.thinking_tokens = min(THINKING_TOKENS, wanted.max_tokens)
    _stop_at_sequence(answer, wanted.body.get("stop_sequences") or ())
    if answer.tokens > wanted.max_tokens:
        is_full = wanted.max_tokens < wanted.body["max_tokens"]
        answer.stop_reason = "model_context_window_exceeded" if is_full else "max_tokens"
        answer.blocks = _cut_at(answer, wanted.max_tokens)
    return answer


def _stop_at_sequence(answer: Answer, sequences: Any) -> None:
    for index, block in enumerate(answer.blocks):
        if block["type"] != "text":
            continue
        found = [(at, word) for word in sequences if (at := block["text"].find(word)) >= 0]
        if found:
            at, word = min(found)
            answer.blocks = [*answer.blocks[:index], {**block, "text": block["text"][:at]}]
            answer.stop_reason, answer.stop_sequence = "stop_sequence", word
            return


def _cut_at(answer: Answer, max_tokens: int) -> list[dict[str, Any]]:
    left, kept = max_tokens - answer.thinking_tokens, []
    for block in answer.blocks:
        if block["type"] == "thinking":
            kept.append(block)
            continue
        if block_tokens(block) <= left:
            kept.append(block)
            left -= block_tokens(block)
            continue
        if block["type"] == "text" and left > BLOCK_TOKENS:
            kept.append({**block, "text": _clipped(block["text"], left - BLOCK_TOKENS)})
        break
    return kept


def _clipped(value: str, tokens: int) -> str:
    share = tokens / max(1, text_tokens(value))
    return value[: int(len(value) * share)]
