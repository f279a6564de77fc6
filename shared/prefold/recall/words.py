"""A text as the words that it is found by.

English words lose their endings (Porter). Identifiers are kept whole and in parts, so that ``mia_li_3668`` and
``HAT136`` are found by all and by a piece of them. Scripts written without spaces give pairs of characters.
"""

import threading
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import regex  # type: ignore[import-untyped]
import snowballstemmer  # type: ignore[import-untyped]

from prefold.recall.stopwords import STOP_WORDS

_MAX_CHARS: Final = 32_768
_MAX_SPLIT_CHARS: Final = 80
"""A longer run (base64, a hash) is one word and has no parts."""

_UNSPACED: Final = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_RUN: Final = regex.compile(
    rf"(?P<unspaced>[{_UNSPACED}]+)"
    rf"|(?P<compound>[\p{{L}}\p{{M}}\p{{N}}_--{_UNSPACED}]+(?:[.,:/@+#'’-][\p{{L}}\p{{M}}\p{{N}}_--{_UNSPACED}]+)*)",
    regex.V1,
)
_PART: Final = regex.compile(r"\p{N}+|\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{L}\p{M}--\p{Lu}]+|\p{Lu}", regex.V1)
_GROUPED_NUMBER: Final = regex.compile(r"\p{N}{1,3}(?:,\p{N}{3})+(?:\.\p{N}+)?")
_NUMBER: Final = regex.compile(r"\p{N}+(?:\.\p{N}+)?")
_POSSESSIVE: Final = regex.compile(r"['’][sS]$")
_JOINT: Final = regex.compile("[,-]")
_APOSTROPHE: Final = regex.compile("['’]")
_IDENTIFIER: Final = regex.compile(r"[\p{N}_@/#+]|\p{Ll}\p{Lu}|\p{Lu}{2}\p{Ll}{2}|[.:]")
_MARKS: Final = regex.compile(r"(?<=[\p{Latin}\p{Greek}\p{Cyrillic}])\p{Mn}+")

_per_thread: Final = threading.local()


def words_of(text: str) -> list[str]:
    """The words in the order in which they stand, repeats included; of a huge text those of its beginning."""
    normal = unicodedata.normalize("NFKC", text[:_MAX_CHARS])
    return [word for run in _RUN.finditer(normal) for word in _of_run(run)]


def _of_run(run: Any) -> Iterable[str]:
    if compound := run["compound"]:
        return (compound.casefold(),) if len(compound) > _MAX_SPLIT_CHARS else _of_compound(compound)
    unspaced = run["unspaced"]
    return (unspaced[i : i + 2] for i in range(max(1, len(unspaced) - 1)))


@lru_cache(maxsize=65_536)
def _of_compound(compound: str) -> tuple[str, ...]:
    compound = _POSSESSIVE.sub("", compound)
    if _GROUPED_NUMBER.fullmatch(compound):
        return (compound.replace(",", ""),)
    if _NUMBER.fullmatch(compound):
        return (compound,)
    if _IDENTIFIER.search(compound):
        return (compound.casefold(), *_parts(compound))
    return tuple(word for piece in _JOINT.split(compound) for word in _plain(piece))


def _parts(compound: str) -> Iterator[str]:
    """Pieces of an identifier, if it has more than one. Single letters say nothing."""
    pieces = _PART.findall(compound)
    if len(pieces) > 1:
        for piece in pieces:
            if len(piece) > 1:
                yield from _plain(piece)


def _plain(piece: str) -> Iterator[str]:
    word = _folded(_APOSTROPHE.sub("", piece))
    if word and word not in STOP_WORDS:
        yield _stem(word)


def _folded(word: str) -> str:
    """Lower case, without the accents that people leave out when they type."""
    if word.isascii():
        return word.lower()
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", word.casefold())))


def _stem(word: str) -> str:
    if len(word) < 3 or not word.isascii() or not word.isalpha():
        return word
    stemmer: Any = getattr(_per_thread, "stemmer", None)
    if stemmer is None:  # a stemmer keeps its word in itself, so threads must not share one
        stemmer = _per_thread.stemmer = snowballstemmer.stemmer("porter")
    return str(stemmer.stemWord(word))
