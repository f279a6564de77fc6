"""Tokens estimated from above by the shape of a text: no vocabulary, no package, for a backend with the base only.

A text is mapped to classes of characters, a byte each, and what o200k's pattern would cut it into is counted by
searching for the borders between classes: some forty searches that run at the speed of C. A piece is a token at least;
what long words, rows of signs and other scripts cost beyond that is set above what real conversations need.
"""

import math
import re
from collections.abc import Sequence
from typing import Final

__all__ = ["EstimatingCounter"]

_LETTER, _UPPER, _DIGIT, _SPACE, _BREAK, _SIGN = b"aA0 \n."


def _table(*, cases: bool) -> bytes:
    classes = bytearray([_SIGN] * 256)
    for code in range(128):
        character = chr(code)
        if character.isalpha():
            classes[code] = _UPPER if cases and character.isupper() else _LETTER
        elif character.isdigit():
            classes[code] = _DIGIT
        elif character in "\r\n":
            classes[code] = _BREAK
        elif character.isspace():
            classes[code] = _SPACE
    return bytes(classes)


_PLAIN: Final = _table(cases=False)
_CASED: Final = _table(cases=True)
_STARTS: Final = (
    *(b" a", b"0a", b".a", b"\na"),  # a word, with the space or the sign before it
    *(b"a0", b" 0", b".0", b"\n0", b" 0", b"0000", b"0000000"),  # three digits each; the space before them stands alone
    *(b"a.", b"0.", b" .", b"\n."),  # a row of signs, with the line end after it
    *(b"a\n", b"0\n", b" \n"),
    *(b"a  ", b"0  ", b".  ", b"\n  "),
)
"""One token each, where two of them overlap too."""
_JOINED: Final = (b"a.a", b"0.a", b"\n.a")
"""A sign that stands with the word after it."""
_MIXED: Final = ((b"a0", 0.3),)
"""A syllable with the number of its tone, hexadecimal digits: letters that are no word."""
_LENGTHS: Final = ((b"a" * 5, 0.06), (b"a" * 7, 0.16), (b"a" * 9, 0.17), (b"a" * 12, 0.45), (b"a" * 16, 2.0))
_SIGNS: Final = ((b"...", 0.42), (b".aaaa", 0.3))
_CAPITALS: Final = ((b"A0", 0.6), (b"0A", 0.6), (b"aA", 1.4), (b"AAA", 0.6), (b"aAa", 0.3))
"""Within words, and in what is none: keys, base64."""


def _words(text: str) -> tuple[bytes, ...]:
    return tuple(f" {word} ".encode() for word in text.split())


_ENGLISH: Final = _words("the and you that it with this your my are have not be what from they would can but has")
_WELL_KNOWN: Final = _words(
    "que el una con por os um uma che il non per del der die das und nicht ist ich ein eine wir het een van niet ik dat "
    "voor les des pour pas est"
)
"""German, Dutch, French, Spanish, Italian, Portuguese."""
_FEW_LETTERS: Final = 80
"""A text has one of the short words of its language at least for so many."""
_LETTERS_A_TOKEN: Final = ((_WELL_KNOWN, 3.3), ((), 2.5))
"""Of running text by its short words; a vocabulary has few tokens for the words of other languages."""
_ESCAPE: Final = 0.7
_MARGIN: Final = 1.02
_OTHER: Final = (
    (re.compile("[\u0080-\u00ff\u1e00-\u1eff]"), 0.7),
    (re.compile("[\u0100-\u024f]"), 1.7),
    (re.compile("[\u0370-\u052f]"), 0.2),
    (re.compile("[\u0590-\u06ff]"), 0.3),
    (re.compile("[\u4e00-\u9fff]"), 0.75),
    (re.compile("[\u3000-\u30ff\uff00-\uffef]"), 0.75),
    (re.compile("[\uac00-\ud7a3]"), 0.6),
    (re.compile("[\u2000-\u2bff]"), 1.0),
    (re.compile("[\u0900-\u0e7f]"), 0.4),
)
"""Tokens of one character beside those of the row that it stands in."""
_ELSE: Final = re.compile(
    "[\u0250-\u036f\u0530-\u058f\u0700-\u08ff\u0e80-\u1dff\u1f00-\u1fff\u2c00-\u2fff\u3100-\u4dff\ua000-\uabff"
    "\ud7a4-\ufeff\ufff0-\U0010ffff]"
)
_ELSE_COST: Final = 3.0


class EstimatingCounter:
    """At least as many tokens over a context as o200k_base counts, though not in each single text."""

    adds_up: Final = False

    def count(self, text: str) -> int:
        """See ``TokenCounter.count``, whose exactness this one has not."""
        return math.ceil(_measure(text) * _MARGIN) if text else 0


def _measure(text: str) -> float:
    raw = text.encode("ascii", "replace")
    plain = raw.translate(_PLAIN)
    counted, cased = plain.count, raw.translate(_CASED).count
    tokens: float = 1 + sum(map(counted, _STARTS)) - sum(map(counted, _JOINED)) - _contractions(raw)
    for run, cost in (*_MIXED, *_LENGTHS):
        tokens += counted(run) * cost
    for run, cost in _SIGNS:
        tokens += counted(run) * cost
    for run, cost in _CAPITALS:
        tokens += cased(run) * cost
    tokens += raw.count(b"\\") * _ESCAPE
    if not text.isascii():
        tokens += _foreign(text)
    return max(tokens, _least_of_prose(raw, plain))


def _least_of_prose(raw: bytes, plain: bytes) -> float:
    """What running text costs that is not English, by its letters. 0 for English, and for code."""
    letters = plain.count(b"a")
    if 2 * plain.count(b"a a") < plain.count(b" a") + plain.count(b"\na") or _is_in(raw, _ENGLISH, letters):
        return 0.0
    each = next(each for words, each in _LETTERS_A_TOKEN if not words or _is_in(raw, words, letters))
    return letters / each + plain.count(b". ") + plain.count(b".\n") + plain.count(b"0") / 2


def _is_in(raw: bytes, words: Sequence[bytes], letters: int) -> bool:
    return sum(map(raw.count, words)) * _FEW_LETTERS >= letters - _FEW_LETTERS / 2


def _contractions(raw: bytes) -> int:
    """Of the commonest: ``don't`` is one piece."""
    return raw.count(b"'s ") + raw.count(b"'t ") + raw.count(b"'m ") + raw.count(b"'re ") + raw.count(b"'ve ")


def _foreign(text: str) -> float:
    """What characters outside ASCII cost."""
    found = sum(len(kind.findall(text)) * cost for kind, cost in _OTHER)
    return found + len(_ELSE.findall(text)) * _ELSE_COST
