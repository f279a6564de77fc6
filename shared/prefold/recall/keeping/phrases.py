"""A text as a row of known phrases, whatever its case, punctuation and spaces."""

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Final

import regex  # type: ignore[import-untyped]

_TOKEN: Final = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}]|[\p{L}\p{M}\p{N}--[\p{Han}\p{Hiragana}\p{Katakana}]]+|\p{S}", regex.V1
)
_UNHEARD: Final = regex.compile(r"['’\uFE0E\uFE0F\u200D\U0001F3FB-\U0001F3FF]", regex.V1)
"""Apostrophes, and what only shades an emoji."""

Tokens = tuple[str, ...]


def tokens_of(text: str) -> Tokens:
    """Words, single characters of scripts without spaces, and symbols; punctuation is not one of them."""
    normal = unicodedata.normalize("NFKC", _UNHEARD.sub("", text)).casefold()
    return tuple(_TOKEN.findall(normal))


class Phrases:
    """Phrases by kind."""

    def __init__(self, by_kind: Mapping[str, Iterable[str]]) -> None:
        """Where a phrase stands in two kinds, the first counts."""
        self._kinds: dict[Tokens, str] = {}
        for kind, phrases in by_kind.items():
            for phrase in phrases:
                self._kinds.setdefault(tokens_of(phrase), kind)
        self._longest = max(map(len, self._kinds), default=0)

    def kinds_in(self, tokens: Tokens, names: Iterable[Tokens] = ()) -> list[str] | None:
        """Kinds of the phrases that the text consists of, in order; None if it has anything else. ``names`` go unsaid.

        Of several ways to cut it, the one with the longest phrases first.
        """
        unsaid = {name for name in names if name}
        longest = max([self._longest, *map(len, unsaid)])
        ways: list[list[str] | None] = [*([None] * len(tokens)), []]
        for start in reversed(range(len(tokens))):
            ways[start] = self._way(tokens, start, longest, unsaid, ways)
        return ways[0]

    def _way(
        self, tokens: Tokens, start: int, longest: int, unsaid: set[Tokens], ways: list[list[str] | None]
    ) -> list[str] | None:
        for end in range(min(len(tokens), start + longest), start, -1):
            rest, piece = ways[end], tokens[start:end]
            if rest is None:
                continue
            if piece in self._kinds:
                return [self._kinds[piece], *rest]
            if piece in unsaid:
                return rest
        return None


def holds(tokens: Tokens, phrases: Iterable[Tokens]) -> bool:
    """True if one of the phrases stands in the text."""
    return any(
        tokens[at : at + len(phrase)] == phrase for phrase in phrases for at in range(len(tokens) - len(phrase) + 1)
    )


def begins(tokens: Tokens, phrases: Iterable[Tokens]) -> bool:
    """True if the text begins with one of the phrases."""
    return any(tokens[: len(phrase)] == phrase for phrase in phrases)
