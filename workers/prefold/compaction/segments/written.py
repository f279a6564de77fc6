"""What a model wrote, taken apart. Tolerant of how small models dress an answer, strict in what is let through."""

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from prefold.compaction.engine import SummarySection
from prefold.compaction.gate.answer import refusal_of_text
from prefold.compaction.gate.refusals import GateRefusedError
from prefold.compaction.gate.source import CLAIM
from prefold.compaction.gate.visible import visible
from prefold.compaction.segments.titles import REQUIRED_KEYS, SECTION_KEYS, key_of, title_of
from prefold.conversation.marks import neutralise

_BEGIN = re.compile(r"^[ \t`*#]{0,8}<\s*summary\s*>", re.IGNORECASE | re.MULTILINE)
"""At the beginning of a line only: in what ``render`` made there is none, whatever was said."""
_END = re.compile(r"<\s*/\s*summary\s*>", re.IGNORECASE)
_FENCE = re.compile(r"^\s{0,3}(?:`{3,}|~{3,})[\w-]*\s*$")
_TITLE = r"[^\W\d_][^\n:：*#]{0,40}?"
_HEADING = re.compile(
    rf"^\s{{0,3}}(?:\#{{1,6}}\s*(?:\d{{1,2}}[.)]\s*)?\**(?P<hashed>{_TITLE})\**\s*[:：]?\**\s*\#*"
    rf"|\*\*(?:\d{{1,2}}[.)]\s*)?(?P<bold>{_TITLE})\s*[:：]?\*\*\s*[:：]?"
    rf"|(?:\d{{1,2}}[.)]\s*)?(?P<plain>{_TITLE})\s*[:：])\s*$"
)
_INLINE = re.compile(
    rf"^\s{{0,3}}(?:[-*•]\s+)?\*{{0,2}}(?P<title>{_TITLE})\*{{0,2}}\s*[:：]\*{{0,2}}\s+(?P<line>\S.*)$"
)
_BULLET = re.compile(r"^\s{0,12}(?:[-*+•·‣–—]\s+|\d{1,3}[.)]\s+)")
_NOTHING = re.compile(
    r"^[\W_]*(?:none|n/?a|nil|nothing|null|empty|not applicable|no (?:corrections|constraints|errors|values|decisions|pending \w+)[\w ]{0,30}|无|没有|暂无|なし|特になし)[\W_]*$",
    re.IGNORECASE,
)
_SAYS = re.compile(r"[^\W\d_]|\d{3}|\d\D+\d")
_LEAST_SECTIONS = 2
_MOST_NESTED = 5
_MOST_LINES = 400
_MOST_LINE_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Written:
    """A model's summary."""

    sections: tuple[SummarySection, ...]
    """In the order of ``SECTION_KEYS``, none empty, no line empty or longer than a line."""

    beside: tuple[str, ...] = ()
    """What stood outside of the sections, and in sections that nobody asked for: never shown, only looked at."""
    dropped: int = 0
    """Lines that the gate took out."""

    @property
    def lines(self) -> tuple[str, ...]:
        """All lines, without their headings."""
        return tuple(line for section in self.sections for line in section.lines)


def parse_written(text: str, language: str = "en") -> Written:
    """The sections of an answer, or ``GateRefusedError``.

    Codes: ``summary_empty``, ``summary_sections``, ``summary_form``, ``summary_unended``, or what the text is instead
    of a summary (see ``refusal_of_text``).

    Fences, a sentence before the summary, bold or numbered headings, headings in the conversation's language and
    lines without a dash are accepted; what stands after the end of the summary is not read at all.
    """
    seen = visible(text)
    if not seen.strip():
        raise GateRefusedError("the answer is empty", code="summary_empty")
    body, outside = _body(seen)
    if body is None:
        raise GateRefusedError("it was begun and not ended", code="summary_unended")
    found: dict[str, list[str]] = {}
    beside = [*outside]
    for key, line in _lines(body):
        lines = beside if key is None else found.setdefault(key, [])
        if len(lines) < _MOST_LINES:
            lines.append(line)
    if len(found) < _LEAST_SECTIONS and (other := refusal_of_text(body)).code != "summary_form":
        raise other
    if not found:
        raise GateRefusedError("the answer has no section", code="summary_form")
    if missing := REQUIRED_KEYS - _headings(body):
        raise GateRefusedError(f"without {', '.join(sorted(missing))}", code="summary_sections")
    return replace(written_of(found, language), beside=tuple(beside))


def written_of(lines: Mapping[str, Sequence[str]], language: str, *, dropped: int = 0) -> Written:
    """Sections in their order; those without a line are left out."""
    kept = [(key, tuple(lines[key])) for key in SECTION_KEYS if lines.get(key)]
    return Written(tuple(SummarySection(key, title_of(key, language), said) for key, said in kept), dropped=dropped)


def render(sections: Iterable[SummarySection], language: str) -> str:
    """The text that stands in a context, with titles in the conversation's language. ``parse_written`` reads it again."""
    return "\n".join(
        line
        for section in sections
        if section.lines
        for line in (f"## {title_of(section.key, language)}", *(f"- {said}" for said in section.lines))
    )


def _body(text: str) -> tuple[str | None, list[str]]:
    """What stands in the first summary element, all of it where there is no such tag; and the lines outside of it.

    None: the element is not ended, so that something is missing.
    """
    begun = _BEGIN.search(text)
    if begun is None:
        return text, []
    ended = _END.search(text, begun.end())
    if ended is None:
        return None, []
    outside = f"{text[: begun.start()]}\n{text[ended.end() :]}"
    return text[begun.end() : ended.start()], [
        line for raw in outside.split("\n")[:_MOST_LINES] if (line := _line(raw))
    ]


def _headings(body: str) -> set[str]:
    """Keys of the sections that ``body`` begins, whether or not something stands in them."""
    titles = (_heading(raw) or ((found := _INLINE.match(raw)) and found["title"]) or "" for raw in body.split("\n"))
    return {key for title in titles if (key := key_of(title))}


def _lines(body: str) -> Iterator[tuple[str | None, str]]:
    key: str | None = None
    for raw in body.split("\n"):
        if _FENCE.match(raw) or not raw.strip():
            continue
        heading = _heading(raw)
        if heading is not None:
            key = key_of(heading)
            continue
        inline = _INLINE.match(raw)
        named = key_of(inline["title"]) if inline else None
        key = named or key
        if line := _line(inline["line"] if inline and named else raw):
            yield key, line


def _heading(raw: str) -> str | None:
    """The title on a heading's line; None for any other line."""
    found = _HEADING.match(raw)
    if found is None:
        return None
    title = found["hashed"] or found["bold"] or found["plain"]
    return title if found["plain"] is None or key_of(title) else None


def _line(raw: str) -> str:
    """One line as it may stand; empty for one that says nothing."""
    said = " ".join(visible(_unescaped(_BULLET.sub("", raw, count=1))).split())
    if not _SAYS.search(said) or _NOTHING.match(said):
        return ""
    claim = CLAIM.match(said)
    at = claim.end() if claim else 0
    return said[:at] + neutralise(said[at:_MOST_LINE_CHARACTERS])


def _unescaped(text: str) -> str:
    """``text`` without any entity, so that reading it a second time finds nothing else in it than the first."""
    for _ in range(_MOST_NESTED):
        if (plain := html.unescape(text)) == text:
            return text
        text = plain
    return text.replace("&", "+")
