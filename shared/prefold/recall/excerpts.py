"""The passage of a long text that a query asks for: what is shown of it where the whole has no room."""

from collections import Counter
from itertools import pairwise
from typing import Final

from prefold.recall.words import words_of

__all__ = ["passage_for"]

_PIECE_CHARS: Final = 300
"""At most; a passage is two pieces: some 120 to 150 tokens of English."""
_LEAST_PIECE_CHARS: Final = 80
_MOST_CHARS: Final = 100_000


def passage_for(text: str, query: str, room_tokens: int) -> str:
    """The two neighbouring pieces of ``text`` with the most words of ``query``, rare ones first; empty without any.

    ``room_tokens`` is a hint: a passage of English is mostly shorter.
    """
    size = min(_PIECE_CHARS, max(_LEAST_PIECE_CHARS, room_tokens * 3 // 2))
    pieces = _pieces(text[:_MOST_CHARS], size)
    asked = frozenset(words_of(query))
    found = [asked.intersection(words_of(piece)) for piece in pieces]
    pieces_with = Counter(word for words in found for word in words)
    if len(pieces) < 2 or not pieces_with:
        return ""
    worth = [sum(1 / pieces_with[word] for word in words | after) for words, after in pairwise(found)]
    best = max(range(len(worth)), key=lambda at: (worth[at], -at))
    return (pieces[best] + pieces[best + 1]).strip()


def _pieces(text: str, size: int) -> list[str]:
    """``text`` in pieces of at most ``size`` characters that end between words where there are any."""
    pieces, start = [], 0
    while start < len(text):
        end = start + size
        space = text.rfind(" ", start + size // 2, end) + 1 if end < len(text) else 0
        end = space or end
        pieces.append(text[start:end])
        start = end
    return pieces
