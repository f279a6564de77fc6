"""Short forms: what stands for a turn when there is no room for it, about 200 raw tokens whatever the turn.

A turn of many calls or results cannot be shorter than the least form of each of them, so it may take more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prefold.conversation.blocks import (
    CALL_HEAD,
    Block,
    CallBlock,
    PlainBlock,
    ResultBlock,
    ThinkingBlock,
    call_tail,
    call_tokens,
    result_tokens,
)
from prefold.conversation.clipping import clip, count_clipped
from prefold.conversation.encoding import encode
from prefold.conversation.markers import BLOCK_TOKENS, FRAGMENT_TOKENS, TEXT_HEAD
from prefold.tokens import TokenCounter

SHORT_TOKENS = 200
"""Raw tokens of a short form, the fragment's overhead included. A turn within it has none."""

_TEXT_SHARE = 3
"""Text beside calls or results gets one part in three of what their fixed parts leave."""
_LEAST_TEXT_TOKENS = 12
"""Room for a bare marker."""
_LEAST_INPUT = encode({"_clipped": "…"})


@dataclass(frozen=True, slots=True)
class ShortResults:
    """Short form of a turn with results."""

    results: tuple[bytes | None, ...]
    """A JSON string each; None: the result stands as it is."""
    content: bytes | None
    tokens: int


def short_plain(blocks: Sequence[Block], tokens: int, counter: TokenCounter) -> tuple[bytes, int] | None:
    """Texts and placeholders as one text, thinking left out; None where ``tokens`` (of the turn) are few already."""
    if tokens <= SHORT_TOKENS:
        return None
    text, _ = _brief(blocks, counter)
    overhead = FRAGMENT_TOKENS + BLOCK_TOKENS
    _, shorter, shorter_tokens = count_clipped(text, SHORT_TOKENS - overhead, counter)
    total = shorter_tokens + overhead
    return (TEXT_HEAD + encode(shorter) + b"}", total) if total < tokens else None


def short_calls(blocks: Sequence[Block], tokens: int, counter: TokenCounter) -> tuple[tuple[bytes, ...], int] | None:
    """Pieces around the ids of the calls, and the turn's tokens; None as in ``short_plain``.

    First thinking, where it leads and fits (a provider may want it before an open call), then one text, then the calls
    with clipped input.
    """
    if tokens <= SHORT_TOKENS:
        return None
    calls = [block for block in blocks if isinstance(block, CallBlock)]
    room = SHORT_TOKENS - FRAGMENT_TOKENS
    room -= sum(call_tokens(call.call_id, call.name, b"{}", counter) for call in calls)
    thinking = _leading_thinking(blocks, room // 2)
    room -= sum(block.tokens for block in thinking)
    text, text_tokens = _beside(blocks, room, counter)
    share = max(0, room - text_tokens) // len(calls)
    inputs = [_short_input(call, share, counter) for call in calls]
    called = list(zip(calls, inputs, strict=True))
    total = FRAGMENT_TOKENS + text_tokens + sum(block.tokens for block in thinking)
    total += sum(call_tokens(call.call_id, call.name, given, counter) for call, given in called)
    if total >= tokens:
        return None
    tails = [(CALL_HEAD, call_tail(call.name, given)) for call, given in called]
    return join_pieces([*(block.json for block in thinking), *([text] if text else []), *tails]), total


def short_results(blocks: Sequence[Block], tokens: int, counter: TokenCounter) -> ShortResults | None:
    """Clipped results, and one text for the plain blocks beside them; None as in ``short_plain``."""
    if tokens <= SHORT_TOKENS:
        return None
    results = [block for block in blocks if isinstance(block, ResultBlock)]
    bare = [result_tokens(block.call_id, block.attributes, b'""', [""], counter) for block in results]
    room = SHORT_TOKENS - FRAGMENT_TOKENS - sum(bare)
    text, text_tokens = _beside(blocks, room, counter)
    share = max(_LEAST_TEXT_TOKENS, (room - text_tokens) // len(results))
    shortened = [_short_result(block, own, share, counter) for block, own in zip(results, bare, strict=True)]
    total = FRAGMENT_TOKENS + text_tokens + sum(cost for _, cost in shortened)
    return ShortResults(tuple(short for short, _ in shortened), text, total) if total < tokens else None


def join_pieces(items: Sequence[bytes | tuple[bytes, bytes]]) -> tuple[bytes, ...]:
    """Blocks joined by commas, split where the ids of the calls go; a call is what stands before and after its id."""
    pieces: list[bytes] = []
    current = b""
    for number, item in enumerate(items):
        if number:
            current += b","
        if isinstance(item, bytes):
            current += item
        else:
            pieces.append(current + item[0])
            current = item[1]
    return (*pieces, current)


def _brief(blocks: Sequence[Block], counter: TokenCounter) -> tuple[str, int]:
    """What stands for the plain blocks, with its tokens."""
    plain = [block for block in blocks if isinstance(block, PlainBlock)]
    text = "\n".join(block.brief for block in plain)
    if len(plain) == 1 and not plain[0].media_tokens:
        return text, plain[0].tokens - BLOCK_TOKENS
    return text, counter.count(text)


def _leading_thinking(blocks: Sequence[Block], room: int) -> list[ThinkingBlock]:
    """Thinking that stands before all else and fits; else none, since it can be neither moved nor cut."""
    thinking = [block for block in blocks if isinstance(block, ThinkingBlock)]
    leads = list(blocks[: len(thinking)]) == thinking
    return thinking if leads and sum(block.tokens for block in thinking) <= room else []


def _beside(blocks: Sequence[Block], room: int, counter: TokenCounter) -> tuple[bytes | None, int]:
    """One text block for a share of ``room``, with its tokens."""
    text, text_tokens = _brief(blocks, counter)
    if not text:
        return None, 0
    budget = max(_LEAST_TEXT_TOKENS, room // _TEXT_SHARE - BLOCK_TOKENS)
    shorter, tokens = clip(text, text_tokens, budget, counter.count)
    return TEXT_HEAD + encode(shorter) + b"}", tokens + BLOCK_TOKENS


def _short_input(call: CallBlock, budget: int, counter: TokenCounter) -> bytes:
    text = call.input.decode()
    if counter.count(text) <= max(budget, counter.count(_LEAST_INPUT.decode())):
        return call.input
    measure = _measure_as(lambda part: encode({"_clipped": part}), counter)
    shorter, cost = clip(text, measure(text), budget, measure)
    return encode({"_clipped": shorter}) if cost <= budget else _LEAST_INPUT


def _short_result(block: ResultBlock, bare: int, budget: int, counter: TokenCounter) -> tuple[bytes | None, int]:
    as_json = _measure_as(encode, counter)

    def measure(text: str) -> int:
        return max(as_json(text), counter.count(text))

    # A long string is not counted a third time; what it costs beyond the bare result is close enough.
    tokens = block.tokens - bare if block.is_text else measure(block.brief)
    shorter, _ = clip(block.brief, tokens, budget, measure)
    content = encode(shorter)
    cost = result_tokens(block.call_id, block.attributes, content, [shorter], counter)
    return (content, cost) if cost < block.tokens else (None, block.tokens)


def _measure_as(form: Callable[[str], bytes], counter: TokenCounter) -> Callable[[str], int]:
    return lambda text: counter.count(form(text).decode())
