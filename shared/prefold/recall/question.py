"""What a query asks for, as the ranking needs it: its words, and the dates that it names."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import regex  # type: ignore[import-untyped]

from prefold.recall.sparse import SparseWords, query_words

_MONTHS: Final = "january february march april may june july august september october november december".split()
_MONTH: Final = r"(?P<month>january|february|march|april|may|june|july|august|september|october|november|december)"
_DAY: Final = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)"
_DATES: Final = tuple(
    regex.compile(pattern, regex.IGNORECASE)
    for pattern in (
        rf"\b{_YEAR}-(?P<number>[01]?\d)-{_DAY}\b",
        rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}\b(?:,?\s+{_YEAR}\b)?",
        rf"\b{_MONTH}\s+{_DAY}\b(?:,?\s+{_YEAR}\b)?",
        rf"\b{_MONTH}\b(?:,?\s+(?:of\s+)?{_YEAR}\b)?",
        rf"(?:{_YEAR}\s*年\s*)?(?P<number>[01]?\d)\s*月(?:\s*(?P<day>[0-3]?\d)\s*[日号號])?",
        rf"\b{_YEAR}\b",
    )
)
_PART_OF_DATE: Final = regex.compile(rf"\d|{_MONTH}", regex.IGNORECASE)
_MAY: Final = regex.compile(r"\bMay\b(?!\s+(?:I|we|you|he|she|it|they)\b)")
_MAX_CHARS: Final = 2_000


@dataclass(frozen=True, slots=True)
class NamedDate:
    """A day, a month or a year, as far as it was said."""

    year: int | None
    month: int | None
    day: int | None

    def fits(self, ts_ms: int | None) -> bool:
        """True if this moment lies in it (UTC)."""
        if ts_ms is None:
            return False
        try:
            at = datetime.fromtimestamp(ts_ms / 1000, UTC)
        except (ValueError, OverflowError, OSError):
            return False
        return all(
            said is None or said == is_now
            for said, is_now in ((self.year, at.year), (self.month, at.month), (self.day, at.day))
        )


@dataclass(frozen=True, slots=True)
class Question:
    """A query, read once."""

    words: SparseWords
    dates: tuple[NamedDate, ...]

    @classmethod
    def of(cls, text: str) -> "Question":
        return cls(query_words(text), dates_in(text))


def dates_in(text: str) -> tuple[NamedDate, ...]:
    """Dates and months that a text names. "May" is a month only where it is written like one."""
    rest = text[:_MAX_CHARS]
    if not _PART_OF_DATE.search(rest):
        return ()
    found: list[NamedDate] = []
    for pattern in _DATES:
        for match in pattern.finditer(rest):
            date = _date(match)
            if date is not None:
                found.append(date)
        rest = pattern.sub(lambda match: match[0] if _date(match) is None else " ", rest)
    return tuple(dict.fromkeys(found))


def _date(match: Any) -> NamedDate | None:
    parts = match.groupdict()
    if parts.get("month") == "may" or (
        parts.get("month") == "May" and not parts.get("day") and not _MAY.match(match.string, match.start("month"))
    ):
        return None
    month = parts.get("number") or (parts.get("month") and _MONTHS.index(parts["month"].casefold()) + 1)
    year, month, day = (int(part) if part else None for part in (parts.get("year"), month, parts.get("day")))
    if month is not None and not 1 <= month <= 12:
        return None
    return NamedDate(year, month, day)
