"""What users said in their own words: sentences, without what they passed on, played or had somebody say.

A sentence comes with what stands around it, for a joke is often taken back in the next one.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from prefold.compaction.gate.pasted import doubtful_ranges
from prefold.compaction.reading.pasted import is_inside
from prefold.compaction.reading.sentences import Span, SpanKind, split_sentences
from prefold.compaction.reading.source import PartKind, read_source
from prefold.compaction.reading.turns import fold
from prefold.conversation.turns import TurnKind
from prefold.memory.extracting.announcing import announces_others
from prefold.memory.extracting.staging import Stage
from prefold.recall.index_text import parse_time
from prefold.storage.types import StoredTurn

__all__ = ["OwnSentence", "own_sentences", "said_at_ms"]

MOST_CHARACTERS = 700
"""Longer sentences are lists or no sentences: they are left out."""
_QUOTES = re.compile(
    r"\"[^\"\n]{0,2000}+(?:\"|$)|“[^“”\n]{0,2000}+(?:”|$)|「[^「」\n]{0,2000}+(?:」|$)|『[^『』\n]{0,2000}+(?:』|$)|«[^«»\n]{0,2000}+(?:»|$)"
    r"|(?<![\w'])'(?=\w)(?:[^'\n]|(?<=\w)'(?=\w)){1,400}+'(?!\w)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class OwnSentence:
    """One sentence of a user, that they mean themself as far as its surroundings tell."""

    turn: StoredTurn
    text: str
    """On one line, with plain apostrophes."""
    quotes: tuple[tuple[int, int], ...]
    """Parts of ``text`` that stand in quotation marks."""
    following: str
    """The sentence after it in its turn, or empty."""
    preceding: str = ""
    """The sentence of the same paragraph before it, or empty."""


def own_sentences(turns: Sequence[StoredTurn]) -> Iterator[OwnSentence]:
    """Sentences of the plain turns of the user among ``turns``, in order."""
    stage = Stage()
    for turn in turns:
        if turn.role != "user" or turn.kind != TurnKind.PLAIN or turn.removed:
            continue
        texts = [part.text for part in read_source(turn).parts if part.kind is PartKind.TEXT]
        if stage.is_played("\n".join(texts)):
            continue
        for text in texts:
            yield from _sentences(turn, text.replace("’", "'"))


def said_at_ms(turn: StoredTurn, otherwise_ms: int = 0) -> int:
    """When a turn was said, as its producer told; else ``otherwise_ms``, also for a time before 1970."""
    try:
        published = msgspec.json.decode(turn.verbatim_json)
    except (msgspec.DecodeError, RecursionError):
        return otherwise_ms
    told = parse_time(published.get("ts")) if isinstance(published, dict) else None
    at_ms = int(told.timestamp() * 1000) if told else 0
    return at_ms if at_ms > 0 else otherwise_ms


def _sentences(turn: StoredTurn, text: str) -> Iterator[OwnSentence]:
    pasted = doubtful_ranges(text)
    quotes = [found.span() for found in _QUOTES.finditer(text)]
    spans = list(_whole(split_sentences(text)))
    others = _of_others(text, spans)
    for index, (start, end) in enumerate(spans):
        if end - start > MOST_CHARACTERS or is_inside(pasted, start) or index in others:
            continue
        following = fold(text[slice(*spans[index + 1])]) if index + 1 < len(spans) else ""
        own = tuple(
            (max(first, start) - start, min(last, end) - start)
            for first, last in quotes
            if start < last and first < end
        )
        preceding = _on_one_line(text[slice(*spans[index - 1])]) if index else ""
        is_apart = (
            not preceding or "\n\n" in text[spans[index - 1][1] : start] or is_inside(pasted, spans[index - 1][0])
        )
        yield OwnSentence(turn, _on_one_line(text[start:end]), own, following, "" if is_apart else preceding)


def _of_others(text: str, spans: Sequence[tuple[int, int]]) -> set[int]:
    """Indexes of sentences that others say: from one that announces them to the end of the paragraph below it."""
    found: set[int] = set()
    is_theirs = False
    for index, (start, end) in enumerate(spans):
        is_apart = index > 0 and "\n\n" in text[spans[index - 1][1] : start]
        is_theirs = is_theirs and not (is_apart and index - 1 in found)
        if is_theirs:
            found.add(index)
        is_short = end - start <= MOST_CHARACTERS
        is_theirs = is_theirs or (is_short and announces_others(_on_one_line(text[start:end])))
    return found


def _whole(spans: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Sentences of prose and lists, those that were split at their clauses put together again."""
    start: int | None = None
    for span in spans:
        if span.kind not in (SpanKind.PROSE, SpanKind.ITEM):
            start = None
            continue
        start = span.start if span.opens or start is None else start
        if span.closes:
            yield start, span.end
            start = None


def _on_one_line(text: str) -> str:
    """Line ends as spaces: every character keeps its place."""
    return re.sub(r"\s", " ", text)
