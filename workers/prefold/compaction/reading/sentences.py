"""Text into sentences that are true: each is an exact span of its text, and reads as a whole where it can.

Handles prose in languages with and without spaces, soft line ends, lists, headings, quotes, tables and fenced
code. A sentence longer than ``LONG`` characters is split between its clauses; spans know whether they start and
end their sentence. Time is linear in the length of the text, whatever is in it.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

LONG = 200
"""Characters after which a sentence is split at its clauses (two thirds of it where letters are ideographs)."""
_LONGEST = 400
_MIN_CLAUSE = 50


class SpanKind(StrEnum):
    """Where a span stands."""

    PROSE = "prose"
    ITEM = "item"
    HEADING = "heading"
    CODE = "code"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Span:
    """``text[start:end]``; never empty, no whitespace at its ends."""

    start: int
    end: int
    kind: SpanKind
    opens: bool = True
    """It starts its sentence."""
    closes: bool = True
    """It ends its sentence."""


_FENCE = re.compile(r" {0,3}(```|~~~)")
_HEADING = re.compile(r" {0,3}#{1,6}\s+")
_ITEM = re.compile(r"\s*(?:[-*+•·–]|\(?\d{1,3}[.)、]|\(?[a-zA-Z][.)]|[①-⑳])\s+(?:\[[ xX]\]\s+)?")
_QUOTE = re.compile(r"\s*>+\s?")
_RULE = re.compile(r"\s*(?:[-=*_]\s*){3,}$")
_BOUNDARY = re.compile(
    r"""(?P<cjk>[。！？｡]+["'”’」』）)\]】》]*)
      | (?P<soft>[.!?…]+["'”’»)\]*_`]*)(?=\s|$)
      | (?P<glued>[!?]+)(?=[A-Z])""",
    re.VERBOSE,
)
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof sr jr st vs e.g i.e eg ie approx nr fig inc ltd co corp dept est al cf ca vol pp p "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun u.s u.k a.m p.m min max".split()
)
_MONTH_NEXT = re.compile(r"\s(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)[a-zä]*\b")
"""After a day, as German writes it: ``3. Mai``."""
_DAY_DIGITS = 2
_LAST_WORD = re.compile(r"[\w.]{1,12}$")
_CLAUSE = re.compile(
    r"""[,;:]\s+(?![\d$€£]) | [，；：、] | \s[-–—]\s | —
      | \s(?=(?:and|but|so|because|while|which|since|although|however|then|where|when|unless|considering)\s)""",
    re.VERBOSE,
)
_JOINERS = frozenset("\u200d\ufe0e\ufe0f") | frozenset(map(chr, range(0x1F3FB, 0x1F400)))
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def split_sentences(text: str) -> list[Span]:
    """The sentences of ``text`` in order. White space, list marks, heading marks and fences belong to none."""
    return [span for start, end, kind in _lines(text) for span in _line_spans(text, start, end, kind)]


def _lines(text: str) -> Iterator[tuple[int, int, SpanKind]]:
    """Lines without their marks; the lines of one paragraph as one, where they were wrapped."""
    fence = ""
    pending: tuple[int, int] | None = None
    for start, end in _raw_lines(text):
        line = text[start:end]
        opened = _FENCE.match(line)
        special = _special(line)
        if pending and (fence or opened or special or not _continues(text, pending, start)):
            yield (*pending, SpanKind.PROSE)
            pending = None
        if opened and (not fence or opened.group(1) == fence):
            fence = "" if fence else opened.group(1)
        elif fence:
            yield start, end, SpanKind.CODE
        elif special:
            yield start + special[0], end, special[1]
        elif line and not line.isspace():
            pending = (pending[0] if pending else start, end)
    if pending:
        yield (*pending, SpanKind.PROSE)


def _raw_lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


def _special(line: str) -> tuple[int, SpanKind] | None:
    """Length of the line's mark and its kind, or None for plain prose."""
    if found := _HEADING.match(line):
        return found.end(), SpanKind.HEADING
    if _RULE.match(line[:200]):
        return len(line), SpanKind.HEADING
    if found := _ITEM.match(line):
        return found.end(), SpanKind.ITEM
    if line.lstrip().startswith("|"):
        return 0, SpanKind.TABLE
    if found := _QUOTE.match(line):
        return found.end(), SpanKind.PROSE
    return None


def _continues(text: str, pending: tuple[int, int], start: int) -> bool:
    """Whether a line goes on with the sentence of the one before: wrapped by a mail program or an editor."""
    before = text[max(pending[0], pending[1] - 80) : pending[1]].rstrip()
    first = text[start : start + 1]
    return len(before) >= 50 and first.islower() and before[-1:] not in ".!?:;。！？：；"


def _line_spans(text: str, start: int, end: int, kind: SpanKind) -> Iterator[Span]:
    if kind in (SpanKind.PROSE, SpanKind.ITEM):
        for first, last in _sentence_bounds(text, start, end):
            yield from _clauses(text, first, last, kind)
    elif trimmed := _trim(text, start, end):
        yield from _pieces(text, *trimmed, kind)


def _sentence_bounds(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for found in _BOUNDARY.finditer(text, start, end):
        if not _is_boundary(text, found, at, end):
            continue
        if trimmed := _trim(text, at, found.end()):
            yield trimmed
        at = found.end()
    if trimmed := _trim(text, at, end):
        yield trimmed


def _is_boundary(text: str, found: re.Match[str], at: int, end: int) -> bool:
    if found["soft"] is None:
        return True
    mark = found["soft"]
    if mark[0] in "!?…" or len(mark) > 3:
        return True
    following = text[found.end() : min(end, found.end() + 4)].lstrip()[:1]
    if following.islower():
        return False
    word = _LAST_WORD.search(text, max(at, found.start() - 12), found.start())
    if word is None:
        return True
    last = word.group().lower().rstrip(".")
    if last.isdigit() and len(last) <= _DAY_DIGITS and _MONTH_NEXT.match(text, found.end()):
        return False
    is_initial = len(last) == 1 and last.isalpha() and word.group().isupper() and last != "i"
    is_number = last == "no" and following.isdigit()
    return last not in _ABBREVIATIONS and not is_initial and not is_number


def _clauses(text: str, start: int, end: int, kind: SpanKind) -> Iterator[Span]:
    """The sentence, whole while it is short; else groups of its clauses."""
    most = LONG * 2 // 3 if _WIDE.search(text, start, min(end, start + 60)) else LONG
    if end - start <= most:
        yield Span(start, end, kind)
        return
    bounds, at = [start], start
    for found in _CLAUSE.finditer(text, start, end):
        if found.end() - at >= _MIN_CLAUSE and end - found.end() >= _MIN_CLAUSE // 2:
            at = found.end()
            bounds.append(at)
    bounds.append(end)
    groups = [trimmed for pair in pairwise(bounds) if (trimmed := _trim(text, *pair))]
    pieces = [piece for group in groups for piece in _pieces(text, *group, kind)]
    for index, piece in enumerate(pieces):
        yield Span(piece.start, piece.end, kind, opens=index == 0, closes=index == len(pieces) - 1)


def _pieces(text: str, start: int, end: int, kind: SpanKind) -> Iterator[Span]:
    """Cuts of at most ``_LONGEST`` characters: for text without any punctuation."""
    at = start
    while at < end:
        last = _cut(text, at, end)
        if trimmed := _trim(text, at, last):
            yield Span(*trimmed, kind, opens=at == start, closes=last == end)
        at = last


def _cut(text: str, at: int, end: int) -> int:
    """Where the piece from ``at`` ends: at a space near its limit, never inside a combined character."""
    last = at + _LONGEST
    if last >= end:
        return end
    space = text.rfind(" ", last - 60, last)
    if space > at:
        return space + 1
    while last < min(end, at + _LONGEST + 32) and (unicodedata.combining(text[last]) or _glues(text, last)):
        last += 1
    return last


def _glues(text: str, at: int) -> bool:
    return text[at] in _JOINERS or text[at - 1] == "\u200d"


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None
