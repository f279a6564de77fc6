"""Texts cut to a number of tokens, never inside a character that a reader sees as one."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from prefold.conversation.markers import left_out_text
from prefold.tokens.counter import WHOLE_TEXT_CHARS, TokenCounter, may_cut

try:
    import regex  # type: ignore[import-untyped]

    _GRAPHEME = regex.compile(r"\X")
except ImportError:  # a backend that has the base dependencies only
    from prefold.conversation.plain_graphemes import GRAPHEME as _GRAPHEME

Measure = Callable[[str], int]

_APART = re.compile("[\\x00-\u02ff\u3000-\u3029\u3030-\u3098\u309b-\u9fff\uff00-\uff60]{2}")
"""Two characters that never belong together, ``\\r\\n`` apart: Latin, kana, Chinese. Spares most texts the slower rule."""
_LOOK_BACK = 64
_WORD_CHARS = 16
"""How far a cut moves to stand at a space."""

_MARKER_TOKENS = 10
_MOST_CHARS_A_TOKEN = 8
_LEAST_CHARS = 12
_TRIES = 6

_CHARS_A_TOKEN = 4.2
"""Of English, where a text's own are not known yet."""
_LEAST_FILLED = 0.6
"""Of the budget: where a guess leaves more of it, the text deserves a closer look."""


class Clipped(NamedTuple):
    """A text that was counted and clipped."""

    tokens: int
    """What the whole text measures."""
    text: str
    shorter_tokens: int


def count_clipped(text: str, budget: int, counter: TokenCounter) -> Clipped:
    """Counts the text and clips it as ``clip`` does, mostly for the price of one count.

    Head and tail are cut where their counts and that of the rest add up to the whole's, by a guess of how long a token
    is; where the guess was a bad one, or no such place is near, ``clip`` does it.
    """
    ends = _guessed_ends(text, budget) if counter.adds_up else None
    if ends is None:
        tokens = counter.count(text)
        return Clipped(tokens, *clip(text, tokens, budget, counter.count))
    count, (head_end, tail_start) = counter.count, ends
    head, tail = text[:head_end], text[tail_start:]
    kept, left_out = count(head) + count(tail), count(text[head_end:tail_start])
    tokens = kept + left_out
    marker, marker_tokens = _spaced_marker(count, left_out)
    if tokens > budget and _LEAST_FILLED * budget <= kept + marker_tokens <= budget:
        return Clipped(tokens, head + marker + tail, kept + marker_tokens)
    return Clipped(tokens, *clip(text, tokens, budget, count))


def _guessed_ends(text: str, budget: int) -> tuple[int, int] | None:
    """Where the head ends and the tail starts, each at a space where the text may be cut."""
    chars = int(0.9 * _CHARS_A_TOKEN * (budget - _MARKER_TOKENS))
    if chars < _LEAST_CHARS or not 2 * chars < len(text) <= WHOLE_TEXT_CHARS:
        return None
    head_end, tail_start = _cut_back(text, chars * 2 // 3), _cut_forward(text, len(text) - chars // 3)
    return (head_end, tail_start) if may_cut(text, head_end) and may_cut(text, tail_start) else None


@lru_cache(maxsize=4096)
def _spaced_marker(measure: Measure, left_out: int) -> tuple[str, int]:
    marker = " " + left_out_text(left_out)
    return marker, measure(marker)


def clip(text: str, tokens: int, budget: int, measure: Measure) -> tuple[str, int]:
    """The text, or its head and tail around ``[… 4,321 tokens left out …]``, with what it measures.

    ``tokens`` is what the whole text measures. The result measures at most ``budget``, except that nothing is shorter
    than the bare marker (or the text itself, where that is shorter still).
    """
    if tokens <= budget:
        return text, tokens
    chars_per_token = len(text) / tokens
    chars = min(0.9 * chars_per_token * (budget - _MARKER_TOKENS), _MOST_CHARS_A_TOKEN * budget)
    for _ in range(_TRIES):
        if chars < _LEAST_CHARS:
            break
        shorter = _around_marker(text, int(chars), tokens)
        measured = measure(shorter)
        if measured <= budget:
            return shorter, measured
        chars *= 0.85 * budget / measured
    marker = left_out_text(tokens)
    measured = measure(marker)
    return (marker, measured) if measured < tokens else (text, tokens)


def _around_marker(text: str, chars: int, tokens: int) -> str:
    head_end = _cut_back(text, chars * 2 // 3)
    tail_start = _cut_forward(text, len(text) - chars // 3)
    kept = head_end + len(text) - tail_start
    left_out = max(1, tokens - round(tokens * kept / len(text)))
    head, tail = text[:head_end], text[tail_start:]
    return head + _gap(head[-1:]) + left_out_text(left_out) + _gap(tail[:1]) + tail


def _gap(neighbour: str) -> str:
    return "" if not neighbour or neighbour.isspace() else " "


def _cut_back(text: str, at: int) -> int:
    space = text.rfind(" ", max(0, at - _WORD_CHARS), at + 1)
    return space if space > 0 else grapheme_start(text, at)


def _cut_forward(text: str, at: int) -> int:
    space = text.find(" ", at, at + _WORD_CHARS)
    if space >= 0:
        return space
    start = grapheme_start(text, at)
    cluster = _GRAPHEME.match(text, start) if start < at else None
    return cluster.end() if cluster else at


def grapheme_start(text: str, at: int) -> int:
    """The last place at or before ``at`` where the text may be cut.

    Looks back at most 64 characters: a longer cluster, or a longer row of flags, is cut between two code points.
    """
    if at <= 0 or at >= len(text):
        return max(0, min(at, len(text)))
    if _APART.match(text, at - 1) and text[at] != "\n":
        return at
    begin = max(0, at - _LOOK_BACK)
    for cluster in _GRAPHEME.finditer(text, begin):
        if cluster.end() > at:
            return at if begin and cluster.start() == begin else cluster.start()
    return at
