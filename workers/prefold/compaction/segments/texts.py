"""Texts of segments side by side."""

from collections.abc import Iterable, Sequence

from prefold.compaction.engine import SummarySection
from prefold.compaction.gate.refusals import GateRefusedError
from prefold.compaction.segments.titles import REQUIRED_KEYS, SECTION_KEYS, title_of
from prefold.compaction.segments.written import render
from prefold.tokens import TokenCounter

JOINT_TOKENS = 12
"""Most that the line above a text and the line feeds around it take, two numbers of seven digits included."""
_FIRST_TO_GO = ("done", "errors", "decisions", "pending", "state", "intent", "values", "corrections", "constraints")
"""Sections whose last line goes first where a text is over its cap. What binds goes last."""


def joined(parts: Sequence[tuple[int, int, Sequence[SummarySection]]], language: str) -> str:
    """Texts of turns ``first`` to ``last``, in order, each under its range where there are several."""
    texts = [(f"[{first}-{last}]", render(sections, language)) for first, last, sections in parts]
    return texts[0][1] if len(texts) == 1 else "\n".join(line for text in texts for line in text)


def sections_together(parts: Iterable[Sequence[SummarySection]]) -> tuple[SummarySection, ...]:
    """The sections of several texts as those of one, their lines in order."""
    found: dict[str, tuple[SummarySection, dict[str, None]]] = {}
    for section in (one for part in parts for one in part):
        found.setdefault(section.key, (section, {}))[1].update(dict.fromkeys(section.lines))
    return tuple(SummarySection(key, found[key][0].title, tuple(found[key][1])) for key in SECTION_KEYS if key in found)


def fitted(
    sections: Sequence[SummarySection], language: str, cap: int, counter: TokenCounter
) -> tuple[SummarySection, ...]:
    """``sections`` with as few lines less as keep their text within ``cap`` tokens.

    Raises ``GateRefusedError`` (``summary_over_cap``) where the required sections alone are over it.
    """
    lines = {section.key: list(section.lines) for section in sections}
    while (tokens := counter.count(_text(lines, language))) > cap:
        victim = next((key for key in _FIRST_TO_GO if len(lines.get(key, ())) > (key in REQUIRED_KEYS)), None)
        if victim is None:
            raise GateRefusedError(f"{tokens} tokens, {cap} allowed", code="summary_over_cap")
        lines[victim].pop()
    return _sections(lines, language)


def _text(lines: dict[str, list[str]], language: str) -> str:
    return render(_sections(lines, language), language)


def _sections(lines: dict[str, list[str]], language: str) -> tuple[SummarySection, ...]:
    kept = ((key, tuple(lines[key])) for key in SECTION_KEYS if lines.get(key))
    return tuple(SummarySection(key, title_of(key, language), said) for key, said in kept)
