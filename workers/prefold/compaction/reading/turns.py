"""What is known of one turn without looking at the others: its sentences with their features.

A turn is read once. Readings are kept in a cache of bounded weight, because a refresh sees every earlier turn
again; the cache is keyed by incarnation, seq and revision, so an edited turn is read anew.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from prefold.compaction.extractive.weighing import base_weights
from prefold.compaction.gate.injection import gives_orders
from prefold.compaction.gate.pasted import doubtful_ranges
from prefold.compaction.ledger.labels import announces_correction, corrected_pairs, opens_correction, stated_values
from prefold.compaction.reading.cue import Cue
from prefold.compaction.reading.cues import find_cues
from prefold.compaction.reading.pasted import is_inside, pasted_ranges
from prefold.compaction.reading.results import call_gist, result_gist
from prefold.compaction.reading.sentences import Span, SpanKind, split_sentences
from prefold.compaction.reading.source import Part, PartKind, SourceTurn, read_source
from prefold.compaction.reading.units import Unit
from prefold.compaction.reading.values import Value, find_values
from prefold.conversation.markers import document_placeholder, image_placeholder
from prefold.storage.types import SessionRef, StoredTurn
from prefold.tokens import TokenCounter

TERM_SPACE = 1 << 18
_WORD = re.compile(
    r"[A-Za-z0-9_\u00c0-\u024f\u0370-\u052f\u0590-\u07ff\u0900-\u0fff]+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_MOST_CAPTION = 200
_LETTER = re.compile(r"[^\W\d_]")
_DANGLING = " \t\n,;:，；：、-–—"
"""What a cut leaves at the end of a clause."""
_STOP = frozenset(
    """a about above after again against all also am an and any are as at be because been before being below between
    both but by can could did do does doing down during each few for from further get got had has have having he her
    here hers him his how i if in into is it its just ll let like m me more most my no nor not now of off on once only
    or other our out over own re s same she should so some such t than that the their them then there these they this
    those through to too under until up us ve very was we were what when where which while who why will with would
    you your yours im ive id dont thats its""".split()
)


@dataclass(frozen=True, slots=True)
class TurnReading:
    """One turn, read."""

    seq: int
    role: str
    """user, assistant, tool or system."""
    speaker: str
    date: str
    tokens: int
    """Raw tokens of the turn in the context."""
    units: tuple[Unit, ...]
    terms: NDArray[np.uint32]
    """Hashed content words of all units, one after the other."""
    bounds: NDArray[np.int32]
    """Unit i has the terms ``bounds[i]`` to ``bounds[i + 1]``."""
    weights: NDArray[np.float32]
    """How much each unit matters by its wording and place alone."""
    wide: int
    """Letters that are ideographs, kana or hangul."""
    kana: int
    letters: int

    @property
    def weight_bytes(self) -> int:
        """About what it takes in memory."""
        return (
            400 + int(self.terms.nbytes) + sum(380 + 2 * len(unit.text) + 120 * len(unit.values) for unit in self.units)
        )


def read_turn(turn: StoredTurn, counter: TokenCounter) -> TurnReading:
    """``turn`` read. Deterministic; time is linear in its length."""
    source = read_source(turn)
    role, speaker = _who(source)
    is_person = role == "user" or speaker != role
    units = tuple(
        unit for index, part in enumerate(source.parts) for unit in _units(part, index, counter, is_person=is_person)
    )
    hashed = [terms_of(unit.text) for unit in units]
    bounds = np.cumsum([0, *map(len, hashed)], dtype=np.int32)
    terms = np.fromiter((term for one in hashed for term in one), dtype=np.uint32, count=int(bounds[-1]))
    text = "".join(part.text for part in source.parts)
    wide, kana, letters = script_of(text)
    weights = np.array(base_weights(units, is_person=is_person), dtype=np.float32)
    return TurnReading(
        turn.seq, role, speaker, source.date, turn.tokens, units, terms, bounds, weights, wide, kana, letters
    )


def terms_of(text: str) -> list[int]:
    """Hashes of the content words of ``text``: stems, and pairs of neighbouring ideographs."""
    terms: list[int] = []
    for word in _WORD.findall(text):
        if _WIDE.match(word):
            terms.extend(crc32(word[at : at + 2].encode()) % TERM_SPACE for at in range(max(1, len(word) - 1)))
        elif (lowered := word.lower()) not in _STOP:
            terms.append(crc32(stem(lowered).encode()) % TERM_SPACE)
    return terms


def stem(word: str) -> str:
    """A word without its commonest English endings; numbers and identifiers stay."""
    if len(word) < 5 or not word.isalpha():
        return word
    for ending in ("ings", "ing", "edly", "ed", "ies", "es", "ly", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def script_of(text: str) -> tuple[int, int, int]:
    """How many letters of ``text`` are ideographs, kana or hangul; kana; letters at all."""
    return len(_WIDE.findall(text)), len(_KANA.findall(text)), len(_LETTER.findall(text))


def fold(text: str) -> str:
    """``text`` on one line, white space folded: the only change that a quote may show."""
    return " ".join(text.split())


class TurnCache:
    """Readings of turns, the least recently used ones dropped beyond ``most_bytes``. Safe in threads."""

    def __init__(self, counter: TokenCounter, most_bytes: int = 128 << 20) -> None:
        self._counter = counter
        self._most_bytes = most_bytes
        self._kept: OrderedDict[tuple[SessionRef, int, int], TurnReading] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0
        self.hits = 0
        self.misses = 0

    def read(self, ref: SessionRef, turns: Iterable[StoredTurn]) -> list[TurnReading]:
        """Readings of ``turns``, in order."""
        return [self._read(ref, turn) for turn in turns]

    def _read(self, ref: SessionRef, turn: StoredTurn) -> TurnReading:
        key = (ref, turn.seq, turn.revision)
        with self._lock:
            if found := self._kept.get(key):
                self._kept.move_to_end(key)
                self.hits += 1
                return found
        reading = read_turn(turn, self._counter)
        with self._lock:
            self.misses += 1
            if key not in self._kept:
                self._kept[key] = reading
                self.bytes += reading.weight_bytes
            while self.bytes > self._most_bytes and len(self._kept) > 1:
                _, dropped = self._kept.popitem(last=False)
                self.bytes -= dropped.weight_bytes
        return reading


def language_of(readings: Sequence[TurnReading]) -> str:
    """``zh``, ``ja``, ``en`` (any language written with spaces), by the share of letters."""
    wide, kana, letters = (sum(getattr(one, name) for one in readings) for name in ("wide", "kana", "letters"))
    if wide * 4 < letters or not letters:
        return "en"
    return "ja" if kana * 10 > wide else "zh"


def _who(source: SourceTurn) -> tuple[str, str]:
    if source.parts and all(part.kind is PartKind.RESULT for part in source.parts):
        return "tool", "tool"
    return source.role, source.speaker


def _units(part: Part, index: int, counter: TokenCounter, *, is_person: bool) -> Iterable[Unit]:
    if part.kind is PartKind.TEXT:
        units = (_sentence(part.text, index, span, counter) for span in split_sentences(part.text))
        if not is_person:
            return units
        pasted, doubtful = pasted_ranges(part.text), doubtful_ranges(part.text)
        return (_said(unit, quoted=_is_quoted(unit, pasted, doubtful)) for unit in units)
    if part.kind is PartKind.IMAGE:
        text = image_placeholder(fold(part.text)[:_MOST_CAPTION])
        return (_unit("image", text, index, 0, len(part.text), counter),)
    if part.kind is PartKind.DOCUMENT:
        text = document_placeholder(fold(part.text)[:_MOST_CAPTION])
        return (_unit("image", text, index, 0, len(part.text), counter),)
    if part.kind is PartKind.CALL:
        said = call_gist(part.text)
        return (_unit("call", said, index, 0, len(part.text), counter, name=part.name, call_id=part.call_id),)
    gist, is_error, values = result_gist(part.text, part.is_error)
    found = _unit(
        "result", gist, index, 0, len(part.text), counter, is_error=is_error, call_id=part.call_id, values=values
    )
    return (found,)


def _said(unit: Unit, *, quoted: bool) -> Unit:
    """A person's sentence, with what only matters for theirs."""
    retracts = Cue.RETRACTS if _retracts(unit) else Cue.NONE
    labels = Cue.LABELS if any(stated_values(unit.text)) else Cue.NONE
    return replace(unit, cues=unit.cues | retracts | labels, quoted=quoted)


def _is_quoted(unit: Unit, pasted: list[tuple[int, int]], doubtful: list[tuple[int, int]]) -> bool:
    """Whether a sentence is passed on; where that is in doubt, an order is never taken for the speaker's own."""
    return is_inside(pasted, unit.start) or (is_inside(doubtful, unit.start) and gives_orders(unit.text))


def _retracts(unit: Unit) -> bool:
    if opens_correction(unit.text) or announces_correction(unit.text):
        return True
    return len(unit.values) > 1 and bool(corrected_pairs(unit.text, unit.values))


def _sentence(text: str, part: int, span: Span, counter: TokenCounter) -> Unit:
    end = span.end if span.closes else span.start + len(text[span.start : span.end].rstrip(_DANGLING))
    folded = fold(text[span.start : end]) or fold(text[span.start : span.end])
    quiet = span.kind in (SpanKind.CODE, SpanKind.TABLE)
    cues = Cue.NONE if quiet else find_cues(folded)
    values = () if quiet and "Error" not in folded and "Exception" not in folded else find_values(folded)
    tokens = counter.count(folded)
    return Unit(span.kind, folded, part, span.start, span.end, span.opens, span.closes, tokens, cues, values)


def _unit(
    kind: str,
    text: str,
    part: int,
    start: int,
    end: int,
    counter: TokenCounter,
    *,
    is_error: bool = False,
    name: str = "",
    call_id: str = "",
    values: tuple[Value, ...] | None = None,
) -> Unit:
    found = find_values(text[:2000]) if values is None else values
    cues = Cue.OUTCOME if is_error else Cue.NONE
    return Unit(kind, text, part, start, end, True, True, counter.count(text), cues, found, is_error, name, call_id)
