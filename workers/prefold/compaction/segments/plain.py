"""What stands where no answer of a model could be used: quotes, in the form of a segment.

Kept like any other, so that one run that every model refuses costs its calls once, and the rest of the summary is the
model's all the same.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from prefold.compaction.engine import Summary, SummaryInput, SummarySection
from prefold.compaction.segments.titles import title_of
from prefold.storage.types import StoredTurn

__all__ = ["WritesPlainly", "plain_sections"]


class WritesPlainly(Protocol):
    """Part of ``ExtractiveSummarizer``. CPU work; never raises."""

    def summarize_now(self, wanted: SummaryInput) -> Summary: ...


def plain_sections(
    engine: WritesPlainly, wanted: SummaryInput, turns: Sequence[StoredTurn], cap_tokens: int
) -> tuple[SummarySection, ...]:
    """The sections of a segment of ``turns``, of about ``cap_tokens``. CPU work."""
    made = engine.summarize_now(replace(wanted, turns=tuple(turns), cap_tokens=cap_tokens, carried=()))
    lines = {section.key: list(section.lines) for section in made.sections}
    events = lines.get("events") or lines.get("binding") or lines.get("open") or [made.text]
    named = {
        "intent": events[:1],
        "constraints": lines.get("binding", []),
        "pending": lines.get("open", []),
        "state": events[1:] or events[-1:],
    }
    return tuple(
        SummarySection(key, title_of(key, wanted.language), tuple(said)) for key, said in named.items() if said
    )
