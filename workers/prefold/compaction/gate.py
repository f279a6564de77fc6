"""What a summary must be before it may stand for turns. Nothing an engine answers gets past it unchecked."""

from collections.abc import Sequence

from prefold.compaction.engine import Summary, SummaryInput
from prefold.compaction.reading import script_of
from prefold.errors import RefusedError
from prefold.storage.types import BuildTicket, HeadFragment, StoredTurn

LEAST_GAIN = 0.10
"""Share by which what is put in must be smaller than what it stands for."""
_KNOWN_SECTIONS = frozenset({"binding", "events", "open"})
_LEAST_LETTERS = 40
"""Below this the language of a text cannot be told."""


class GateRefusedError(RefusedError):
    """The summary may not be used; ``code`` says why."""

    code = "summary_refused"


class NoGainError(GateRefusedError):
    """It would not make the context smaller."""

    code = "no_gain"


def check_summary(summary: Summary, wanted: SummaryInput) -> None:
    """Raises ``GateRefusedError`` unless the summary is whole, within its cap, of these turns, in their language."""
    if not summary.text.strip():
        raise GateRefusedError("the summary is empty", code="summary_empty")
    if summary.tokens > wanted.cap_tokens:
        raise GateRefusedError(f"{summary.tokens} tokens, {wanted.cap_tokens} allowed", code="summary_over_cap")
    if summary.covered != (wanted.first_seq, wanted.last_seq):
        raise GateRefusedError("the engine did not read every turn", code="summary_not_covering")
    keys = {section.key for section in summary.sections if any(line.strip() for line in section.lines)}
    if not keys or not keys <= _KNOWN_SECTIONS:
        raise GateRefusedError("a section is missing or unknown", code="summary_sections")
    if not _speaks(summary.text, wanted.language):
        raise GateRefusedError(f"not in the conversation's language ({wanted.language})", code="summary_language")


def check_gain(ticket: BuildTicket, turns: Sequence[StoredTurn], head: Sequence[HeadFragment]) -> None:
    """Raises ``NoGainError`` unless the head is smaller, by the margin, than the turns that it stands for.

    Where an older head is replaced too, which is about as large, the turns that are newly covered must make up
    the margin alone.
    """
    head_tokens = sum(fragment.tokens for fragment in head)
    covered = sum(turn.tokens for turn in turns)
    newly = sum(turn.tokens for turn in turns if turn.seq > ticket.base_covers_to)
    replaced = covered if not ticket.base_covers_to else min(covered, head_tokens + newly)
    if head_tokens > (1 - LEAST_GAIN) * replaced:
        raise NoGainError(f"{head_tokens} tokens would stand for {replaced}")


def _speaks(text: str, language: str) -> bool:
    """Whether the script of ``text`` goes with the conversation's; unsure counts as yes."""
    wide, kana, letters = script_of(text)
    if letters < _LEAST_LETTERS:
        return True
    if language == "en":
        return wide < letters * 0.6
    return wide > letters * 0.1 and not (language == "zh" and kana > wide * 0.4)
