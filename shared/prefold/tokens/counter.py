"""The port, and what every counter does before it hands a text to its encoder."""

import re
from collections.abc import Callable, Iterator
from typing import Protocol

WHOLE_TEXT_CHARS = 32_768
"""Texts up to this length go to the encoder in one piece.

Longer ones are cut, because tiktoken's regular expression overflows its stack on a long run of white space
(seen at 1,000,000 spaces) and ends the call with a panic that is no ``Exception``.
"""

_CUT_SEARCH_CHARS = 2_048
_CUT = re.compile(r"(?<=\S) (?=[A-Za-z])")
"""Before the space of " word": o200k's pattern always begins a new piece there, so that a cut changes no count."""


class TokenCounter(Protocol):
    """Counts tokens. Safe to call from any thread; never raises on a ``str``; opens nothing."""

    @property
    def adds_up(self) -> bool:
        """True: a text of up to ``WHOLE_TEXT_CHARS`` counts as much as its pieces do, cut as ``may_cut`` allows."""
        ...

    def count(self, text: str) -> int:
        """Tokens of ``text`` in o200k_base.

        Text that spells a special token (``<|endoftext|>``) counts as the text it is; a lone surrogate as U+FFFD.
        Exact for texts with a word boundary at least every 30,000 characters; one without (100 KB of one
        letter) is cut there, which adds at most a few tokens a cut. The time is linear in the length.
        """
        ...


def may_cut(text: str, at: int) -> bool:
    """Whether a piece of o200k's begins at the space ``at`` for certain."""
    return _CUT.match(text, at) is not None


def without_surrogates(text: str) -> str:
    """The text with pairs of surrogates joined and lone ones replaced by U+FFFD, as tiktoken does."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def count_in_pieces(count: Callable[[str], int], text: str) -> int:
    """Sum of the counts of ``text`` cut into pieces that no encoder chokes on."""
    return sum(count(piece) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > WHOLE_TEXT_CHARS:
        end = _cut_before(text, start + WHOLE_TEXT_CHARS)
        yield text[start:end]
        start = end
    yield text[start:]


def _cut_before(text: str, limit: int) -> int:
    cut = limit
    for found in _CUT.finditer(text, limit - _CUT_SEARCH_CHARS, limit):
        cut = found.start()
    return cut
