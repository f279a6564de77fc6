"""Exact values that a summary names although its source does not have them."""

import re

from prefold.compaction.gate.source import Spoken
from prefold.compaction.reading.values import Value, ValueKind, find_values

_LETTER_BY_LETTER = frozenset(
    {ValueKind.EMAIL, ValueKind.URL, ValueKind.ID, ValueKind.PHONE, ValueKind.VERSION, ValueKind.PATH}
)
_BY_DIGITS = frozenset({ValueKind.AMOUNT, ValueKind.QUANTITY, ValueKind.NUMBER, ValueKind.DATE})
_DIGITS = re.compile(r"\d+")
_LEAST_DIGITS = 3


class KnownValues:
    """What the source has, in a form that finds a value however it is spelled."""

    def __init__(self, spoken: Spoken) -> None:
        text = "\n".join((spoken.folded, *spoken.dates))
        self._bare = _bare(text)
        self._numbers = set(_DIGITS.findall(text.replace(",", "")))
        self._numbers.update(str(one.seq) for one in spoken.sentences)

    def invented_in(self, line: str) -> list[Value]:
        """Values of ``line`` that occur nowhere."""
        return [value for value in find_values(line) if not self._has(value)]

    def _has(self, value: Value) -> bool:
        if value.kind in _LETTER_BY_LETTER:
            return _bare(value.text) in self._bare
        if value.kind in _BY_DIGITS:
            numbers = _DIGITS.findall(value.text.replace(",", ""))
            return all(len(one) < _LEAST_DIGITS or one in self._numbers for one in numbers)
        return True


def _bare(text: str) -> str:
    return re.sub(r"[\s,;:'\"`()\[\]-]+", "", text.lower())
