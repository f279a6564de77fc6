"""The source of a summary, sentence by sentence, each with the voice that it was said in.

A *voice* is where words come from, not what role their message has: a page that a user pasted, a tool's late result
that travels in a user message, a caption or a document's title are no words of the user.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from prefold.compaction.gate.injection import gives_orders
from prefold.compaction.gate.pasted import split_pasted
from prefold.compaction.gate.visible import visible
from prefold.compaction.gate.words import stems_of
from prefold.compaction.reading.sentences import split_sentences
from prefold.compaction.reading.source import Part, PartKind, SourceTurn, read_source
from prefold.storage.types import StoredTurn

_MOST_SENTENCE = 600
CLAIM = re.compile(r"^\[(?P<seq>\d{1,9})\s(?P<speaker>[^\]\n]{1,40})\]\s?")
"""How a line begins that quotes a turn."""


class Voice(StrEnum):
    """Who speaks."""

    PERSON = "person"
    """A user in their own words, or a partner with a name."""
    ASSISTANT = "assistant"
    PASTED = "pasted"
    """What a person quoted, pasted or attached."""
    TOOL = "tool"
    """Tool results."""
    CALL = "call"
    """Tool names and arguments."""
    SYSTEM = "system"


_SPEAKERS = {Voice.TOOL: "tool", Voice.PASTED: "{} quoting"}
_VOICES = {"tool": Voice.TOOL, "assistant": Voice.ASSISTANT, "quoting": Voice.PASTED}
"""By the last word in a quotation's bracket; all others are persons."""
UNTRUSTED = frozenset({Voice.PASTED, Voice.TOOL, Voice.CALL})


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of the source."""

    seq: int
    speaker: str
    """As it stands in a quotation's bracket."""
    voice: Voice
    text: str
    """White space folded."""
    stems: frozenset[str]


@dataclass(frozen=True)
class Spoken:
    """Everything that was said, in order."""

    sentences: tuple[Sentence, ...]
    texts: tuple[str, ...] = ()
    """Summaries that are the source beside, or instead of, turns."""
    dates: tuple[str, ...] = ()
    """That turns carry beside their words."""

    @cached_property
    def folded(self) -> str:
        """All of it as one text, lower case, white space folded."""
        return "\n".join((*(one.text for one in self.sentences), *self.texts)).lower()

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of all words that occur."""
        known = {stem for one in self.sentences for stem in one.stems}
        beside = {one.speaker for one in self.sentences}
        return frozenset(known.union(*(stems_of(text) for text in (*self.texts, *self.dates, *beside))))

    @cached_property
    def by_seq(self) -> dict[int, list[Sentence]]:
        """Sentences of each turn."""
        found: dict[int, list[Sentence]] = {}
        for one in self.sentences:
            found.setdefault(one.seq, []).append(one)
        return found

    def of(self, *voices: Voice) -> list[Sentence]:
        """The sentences in these voices."""
        return [one for one in self.sentences if one.voice in voices]


def read_spoken(turns: Sequence[StoredTurn], texts: Sequence[str] = ()) -> Spoken:
    """The sentences of ``turns``; of ``texts``, which are summaries of ours, the quotations they are made of."""
    read = [read_source(turn) for turn in turns]
    said = [one for turn in read for one in _sentences(turn)]
    if not turns:
        said = [one for text in texts for one in _quotations(text)]
    dates = dict.fromkeys(turn.date for turn in read if turn.date)
    return Spoken(tuple(said), tuple(texts), tuple(dates))


def _sentences(turn: SourceTurn) -> Iterator[Sentence]:
    for part in turn.parts:
        for voice, text in _voices(turn, part):
            speaker = _SPEAKERS.get(voice, "{}").format(turn.speaker)
            for span in split_sentences(text):
                yield _sentence(turn.seq, speaker, voice, text[span.start : span.end])


def _sentence(seq: int, speaker: str, voice: Voice, text: str) -> Sentence:
    folded = " ".join(visible(text).split())[:_MOST_SENTENCE]
    return Sentence(seq, speaker, voice, folded, stems_of(folded))


def _voices(turn: SourceTurn, part: Part) -> Iterable[tuple[Voice, str]]:
    if part.kind is PartKind.RESULT:
        return ((Voice.TOOL, part.text),)
    if part.kind is PartKind.CALL:
        return ((Voice.CALL, f"{part.name} {part.text}"),)
    if part.kind is not PartKind.TEXT:
        return ((Voice.PASTED, part.text),)
    if turn.role == "system":
        return ((Voice.SYSTEM, part.text),)
    if turn.role == "assistant" and turn.speaker == "assistant":
        return ((Voice.ASSISTANT, part.text),)
    return ((Voice.PASTED if is_pasted else Voice.PERSON, text) for is_pasted, text in split_pasted(part.text))


def _quotations(text: str) -> Iterator[Sentence]:
    """What a summary of ours quotes of persons; a line that gives orders counts as foreign, the rest as the assistant's."""
    for raw in text.split("\n"):
        line = raw.removeprefix("- ")
        claim = CLAIM.match(line)
        if claim is None:
            yield _sentence(0, "", Voice.PASTED if gives_orders(line) else Voice.ASSISTANT, line)
            continue
        speaker = claim["speaker"]
        voice = _VOICES.get(speaker.rsplit(" ", 1)[-1], Voice.PERSON)
        yield _sentence(int(claim["seq"]), speaker, voice, line[claim.end() :].strip('"“”'))
