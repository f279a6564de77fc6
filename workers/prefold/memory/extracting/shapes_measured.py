"""What a rule's object may look like where it is a measure: heights, sizes, years, zones, medicines."""

import re

__all__ = ["measure", "medicine", "size", "year", "zone"]

_MEASURE = re.compile(
    r"\d[\d.,]*\s?(?:cm|kg|kilos?|lbs?|pounds?|stone|m\b|ft|feet|foot|['′])(?:\s?\d{1,2}(?:\s?(?:\"|″|inches|in\b))?)?",
    re.IGNORECASE,
)
_SIZE = re.compile(
    r"(?:EU|US|UK)?\s?\d{1,2}(?:[.,]5)?\b|(?:X{0,3}[SL]|M)\b|(?:extra[ -])?(?:small|medium|large)\b", re.IGNORECASE
)
_ZONE = re.compile(r"(?:[\w/+-]+\s){1,2}time(?:\s?zone)?", re.IGNORECASE)
_MEDICINE = re.compile(
    r"(?P<name>[a-z]{2,}(?:min|ol|ide|one|ine|pam|lam|statin|pril|sartan|azole|cillin|mycin|tine|fen|ium|lin|pine|done|mab|thyroxine|aspirin|rin)|\w+ pills?|vitamin \w+|iron|insulin)"
    r"(?:\s\d+\s?mg)?(?=\s(?:daily|once|twice|three\stimes|every\s(?:day|morning|night|evening|week)|for\smy)|\s\d+\s?mg|[,.!]|$)",
    re.IGNORECASE,
)


def measure(rest: str) -> tuple[str, ...]:
    """A number with its unit."""
    return _first(_MEASURE, rest)


def size(rest: str) -> tuple[str, ...]:
    """Of clothes or shoes."""
    return _first(_SIZE, rest)


def year(rest: str) -> tuple[str, ...]:
    """Four digits."""
    return _first(re.compile(r"\d{4}"), rest)


def zone(rest: str) -> tuple[str, ...]:
    """A time zone by its name."""
    found = _first(_ZONE, rest)
    return (
        ()
        if found and re.match(r"(?:a|an|my|right|good|bad|same|free|spare|real|no)\b", found[0], re.IGNORECASE)
        else found
    )


def medicine(rest: str) -> tuple[str, ...]:
    """What is taken against something, by the look of its name."""
    found = _MEDICINE.match(rest.strip())
    return (found.group().strip(),) if found else ()


def _first(pattern: re.Pattern[str], rest: str) -> tuple[str, ...]:
    found = pattern.match(rest.strip())
    return (found.group().strip(),) if found else ()
