"""When a summary is cheaper from the chat's own model, reading its prompt from the cache, than from a small one."""

import math
from dataclasses import dataclass, replace

from prefold.pricing.table import BilledTokens, Price

__all__ = ["Comparison", "Workload", "compare"]


@dataclass(frozen=True, slots=True)
class Workload:
    """One refresh of one session's summary. Both models' tokens are taken to be equal."""

    context_tokens: int
    """The chat's whole prompt: system, tools, messages. Shared-prefix mode sends all of it again."""
    new_tokens: int
    """Source that no stored segment covers yet: all that the small model has to read."""
    summary_tokens: int
    """What is written, thinking included."""
    cached_share: float = 0.95
    """Of the context, what the provider's cache still holds; the rest is written to it anew."""
    instruction_tokens: int = 800
    """System prompt and instruction of a summarizer call, never cached."""
    chunk_tokens: int = 60_000
    """Most source in one call of the small model."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both ways. Costs in millionths of a USD."""

    prefix_calls: BilledTokens
    prefix: int
    small_calls: tuple[BilledTokens, ...]
    small: int
    break_even_new_tokens: int | None
    """Least new source at which the shared prefix is no dearer; None: at no length up to the whole context."""

    @property
    def prefix_is_cheaper(self) -> bool:
        return self.prefix < self.small


def compare(workload: Workload, chat: Price, small: Price) -> Comparison:
    """What one refresh costs with ``chat`` over the shared prefix, and with ``small`` over the new source."""
    prefix = prefix_call(workload)
    workload = replace(workload, chunk_tokens=_chunk(workload, small))
    calls = small_calls(workload, workload.new_tokens)
    return Comparison(
        prefix_calls=prefix,
        prefix=chat.cost(prefix),
        small_calls=calls,
        small=_cost(small, calls),
        break_even_new_tokens=_break_even(workload, chat.cost(prefix), small),
    )


def _chunk(workload: Workload, small: Price) -> int:
    """Never so much that a call passes the small model's price step."""
    if small.above is None:
        return workload.chunk_tokens
    return max(1, min(workload.chunk_tokens, small.above.input_tokens - workload.instruction_tokens))


def prefix_call(workload: Workload) -> BilledTokens:
    """One call: the prompt from the cache as far as it is there, the rest written, the instruction on top."""
    cached = round(workload.context_tokens * workload.cached_share)
    return BilledTokens(
        input_tokens=workload.instruction_tokens,
        cache_read_tokens=cached,
        cache_write_5m_tokens=workload.context_tokens - cached,
        output_tokens=workload.summary_tokens,
    )


def small_calls(workload: Workload, new_tokens: int) -> tuple[BilledTokens, ...]:
    """The new source in equal chunks; the summary's tokens are shared out among them."""
    count = max(1, math.ceil(new_tokens / workload.chunk_tokens))
    sources, outputs = _shares(new_tokens, count), _shares(workload.summary_tokens, count)
    return tuple(
        BilledTokens(input_tokens=source + workload.instruction_tokens, output_tokens=output)
        for source, output in zip(sources, outputs, strict=True)
    )


def _shares(total: int, count: int) -> list[int]:
    return [total // count + (number < total % count) for number in range(count)]


def _cost(price: Price, calls: tuple[BilledTokens, ...]) -> int:
    return sum(price.cost(call) for call in calls)


def _break_even(workload: Workload, prefix_cost: int, small: Price) -> int | None:
    """By bisection: the small model's cost does not fall as the source grows."""
    low, high = 0, workload.context_tokens
    if _cost(small, small_calls(workload, high)) < prefix_cost:
        return None
    while low < high:
        middle = (low + high) // 2
        if _cost(small, small_calls(workload, middle)) >= prefix_cost:
            high = middle
        else:
            low = middle + 1
    return low
