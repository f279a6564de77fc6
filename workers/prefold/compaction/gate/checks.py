"""What a summary must be before it may stand for turns. Nothing an engine answers gets past it unchecked."""

from collections.abc import Sequence
from dataclasses import dataclass

from prefold.compaction.engine import Summary, SummaryInput
from prefold.compaction.gate.answer import check_is_summary
from prefold.compaction.gate.copies import check_copies, check_repeats, own_words
from prefold.compaction.gate.language import says_something, speaks_like
from prefold.compaction.gate.lines import LineCheck
from prefold.compaction.gate.refusals import GateRefusedError, NoGainError
from prefold.compaction.gate.source import CLAIM, Spoken, Voice, read_spoken
from prefold.compaction.gate.values import KnownValues
from prefold.compaction.gate.words import share_of, stems_of
from prefold.compaction.reading.turns import script_of
from prefold.compaction.segments.titles import REQUIRED_KEYS, SECTION_KEYS
from prefold.compaction.segments.written import Written, render, written_of
from prefold.storage.types import BuildTicket, HeadFragment, StoredTurn
from prefold.tokens import load_counter

__all__ = ["GateRefusedError", "GateSource", "NoGainError", "check_gain", "check_summary", "check_written"]

LEAST_GAIN = 0.10
"""Share by which what is put in must be smaller than what it stands for."""
_KNOWN_SECTIONS = frozenset({"binding", "events", "open", *SECTION_KEYS})
_FEW_INVENTED = 2
_MOST_INVENTED = 0.2
_MOST_UNTRUE = 0.5
_MOST_DROPPED = 0.8
_OVER_CAP = 1.25
"""Models count badly: what is a little over its cap is merged or shortened later, with the rest."""
_LEAST_OF_CAP = 0.04
_LEAST_OF_SOURCE = 0.003
_LEAST_OF_LITTLE = 0.02
_LEAST_TOKENS = 24
_LEAST_SHARED = 0.3
"""Of a text without a single little word of any language that we know: so many of its words must be the source's."""
_LEAST_LETTERS = 40
"""Below this the language of a text cannot be told."""


@dataclass(frozen=True, slots=True)
class GateSource:
    """What a written summary is held against."""

    turns: Sequence[StoredTurn]
    """Source turns that it stands for."""
    language: str
    """As ``language_of`` tells it."""
    cap_tokens: int
    source_tokens: int
    """Raw tokens of what it stands for."""
    texts: Sequence[str] = ()
    """Summaries that were merged into it; empty for one that was made from turns."""


def check_written(written: Written, source: GateSource) -> Written:
    """What of ``written`` may stand in a context. Raises ``GateRefusedError`` where too little, or nothing, may.

    Codes: ``summary_empty``, ``_placeholder``, ``_refusal``, ``_error``, ``_continues``, ``_language``, ``_repeats``,
    ``_copied``, ``_invented``, ``_instruction``, ``_unfounded``, ``_sections``, ``_fragment``, ``_over_cap``. CPU work,
    linear in the source: call it in a thread.
    """
    spoken = read_spoken(source.turns, source.texts)
    lines = written.lines
    if not lines:
        raise GateRefusedError("no line says anything", code="summary_empty")
    check_is_summary(tuple(CLAIM.sub("", line) for line in lines), spoken.folded)
    if not _speaks_their_language(written, source, spoken):
        raise GateRefusedError("not in the conversation's language", code="summary_language")
    check_repeats(lines)
    check_copies(lines, spoken)
    kept = _checked_lines(written, source, spoken)
    _check_size(kept, source)
    return kept


def _speaks_their_language(written: Written, source: GateSource, spoken: Spoken) -> bool:
    """In all, or in what is no quotation: a talk in two languages has values and demands in both."""
    said = [one.text for one in spoken.of(Voice.PERSON, Voice.ASSISTANT)] or [one.text for one in spoken.sentences]
    theirs = (*said, *source.texts)
    whole, own = "\n".join(written.lines), own_words(written.lines, theirs)
    return any(_is_theirs(text, source, spoken, theirs) for text in (whole, own))


def _is_theirs(text: str, source: GateSource, spoken: Spoken, theirs: Sequence[str]) -> bool:
    if not says_something(text) and share_of(stems_of(text), spoken.stems) < _LEAST_SHARED:
        return False
    return _speaks(text, source.language) and speaks_like(text, theirs)


def _checked_lines(written: Written, source: GateSource, spoken: Spoken) -> Written:
    """The lines that may stand. Refuses all of them where the model obeyed the text, invented, or too few are left."""
    values = KnownValues(spoken)
    honest = {one.key: [line for line in one.lines if not values.invented_in(line)] for one in written.sections}
    total = len(written.lines)
    invented = total - sum(map(len, honest.values()))
    if invented > max(_FEW_INVENTED, total * _MOST_INVENTED):
        raise GateRefusedError(f"{invented} of {total} lines name values that nobody said", code="summary_invented")
    check = LineCheck(spoken)
    standing = {one.key: list(check.section(one)) for one in written_of(honest, source.language).sections}
    if check.dropped.obeyed or any(map(check.obeys, written.beside)):
        raise GateRefusedError("it obeys an instruction in the text", code="summary_instruction")
    if check.dropped.untrue > total * _MOST_UNTRUE or check.dropped.total > total * _MOST_DROPPED:
        raise GateRefusedError(f"{dict(check.dropped.reasons)} of {total} lines", code="summary_unfounded")
    for key, words in (("intent", check.first_words), ("state", check.last_words)):
        if not standing.get(key) and (quoted := words()):
            standing[key] = [quoted]
    if missing := REQUIRED_KEYS - {key for key, lines in standing.items() if lines}:
        raise GateRefusedError(f"nothing is left of {', '.join(sorted(missing))}", code="summary_sections")
    return written_of(standing, source.language, dropped=check.dropped.total + invented)


def _check_size(written: Written, source: GateSource) -> None:
    count = load_counter().count
    tokens = count(render(written.sections, source.language))
    replaced = sum(map(count, source.texts)) if source.texts else source.source_tokens
    if tokens > _OVER_CAP * source.cap_tokens:
        raise GateRefusedError(f"{tokens} tokens, {source.cap_tokens} allowed", code="summary_over_cap")
    if tokens > (1 - LEAST_GAIN) * replaced:
        raise GateRefusedError(f"{tokens} tokens would stand for {replaced}", code="summary_copied")
    least = min(source.cap_tokens * _LEAST_OF_CAP, source.source_tokens * _LEAST_OF_SOURCE)
    if tokens < max(least, min(_LEAST_TOKENS, source.source_tokens * _LEAST_OF_LITTLE)):
        raise GateRefusedError(f"{tokens} tokens for {source.source_tokens}", code="summary_fragment")


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
    # What is quoted is in the language in which it was said, also where a conversation has two.
    if not summary.quoted and not _speaks(summary.text, wanted.language):
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
