"""Plans that were changed without a word of regret: ``delivery by 2 April now`` after ``delivery by 14 April``.

The newer sentence must openly tell news (now, instead, sooner, 改, 提前, doch, plutôt …) in the clause of the value or right
before it, of the same thing and the same kind of value. Asking, wondering and adding change nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from prefold.compaction.ledger.labels import adds, unit_of
from prefold.compaction.ledger.things import Thing, things_in, words_of
from prefold.compaction.reading.units import Unit
from prefold.compaction.reading.values import Value, ValueKind

_REACH_TURNS = 60
_MOST_INTRO = 60
_NEAR_TURNS = 12
"""For a sentence that only says ``it``."""
_NEWS = re.compile(
    r"""(?<!^)\bnow\b | \binstead\b(?!\sof\s\w+ing\b) | \bsooner\b(?!\sor\slater) | (?<!^)(?<!said\s)(?<!told\s)(?<!mentioned\s)(?<!discussed\s)(?<!shared\s)\bearlier\b(?!\sthis\b) | \blater\s(?:than|one)\b | \ba\slater\b | \b(?:longer|shorter|bigger|smaller|larger)\b | \b(?:changed|moved|pushed|postponed|rescheduled|shifted|delayed|deferred|raised|lowered|extend(?:ed|ing)|rather)\b
      | \bbrought\sforward\b | \b(?:went|gone|go|going)\s(?:up|down)\b | \bfor\sless\b | (?:^|\b(?:my|our|the)\s)(?:new|revised|updated)\s
      | 现在|改|提前|推迟|延后|延期|延长|缩短|换成|换到|变[了为成]|涨|调[到为整]|[提降][高低到]
      | \b(?:jetzt|nun|doch|stattdessen|lieber|früher|verschoben|verlegt|neue[rs]?)\b | \b(?:maintenant|plutôt|finalement|désormais|report[ée]e?|avancée?)\b | \b(?:ahora|mejor|cambi[óa]|pasa\sal?)\b
      | \b(?:agora|mudou|passou|adiad[oa]|melhor|afinal)\b | \b(?:теперь|перенос\w+|перенес\w+|раньше|вместо|лучше)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_IT = re.compile(
    r"\b(?:it|that|this)\b.{0,40}\b(?:sooner|earlier|later)\b|\b(?:sooner|earlier|later)\b.{0,20}\b(?:it|that|this)\b",
    re.IGNORECASE,
)
_WONDERS = re.compile(
    r"""\bwhat\sif\b | ^(?:and\s|but\s)?(?:if|suppose|imagine)\b(?!\s(?:possible|you\b)) | \b(?:maybe|perhaps|might|not\ssure|wonder(?:ing)?|would\sbe|not\sonly)\b | 要是|如果|假如|万一|也许|可能|不仅|不只|怎么样|行不行
      | \b(?:wenn|vielleicht|könnte|nicht\snur)\b | \bet\ssi\b|\bpeut-être\b|\bpas\sseulement\b | ^(?:y\s)?si\s|\b(?:quizás?|tal\svez|no\ssolo)\b | ^e\sse\s|\b(?:talvez|seria|não\ssó)\b | \b(?:если|может|возможно|не\sтолько)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_ASKS = re.compile(r"[?？]\W{0,20}$|吗[。！]?$")
_POLITE = re.compile(
    r"\b(?:can|could|would|will)\syou\b|\bplease\b|请|麻烦|帮我|\bbitte\b|\bkönn(?:en|t)e?n?\ssie\b|s'il\s(?:vous|te)\spla[iî]t|\bpo[rd]\s?(?:favor|ías?)\b|\bpoderia\b|пожалуйста",
    re.IGNORECASE,
)


def is_tentative(sentence: str) -> bool:
    """Whether it asks or wonders about a change; to ask somebody politely to make one is an order."""
    if _WONDERS.search(sentence):
        return True
    return bool(_ASKS.search(sentence)) and not _POLITE.search(sentence)


@dataclass(frozen=True, slots=True)
class Move:
    """A value that a sentence replaced, and the turns that told it."""

    old: Value
    seqs: tuple[int, ...]
    openly: bool
    """The thing had this one value: else it is only marked."""


@dataclass(slots=True)
class _Held:
    thing: Thing
    seqs: list[int]


@dataclass(slots=True)
class Moves:
    """The things of a conversation with the values that hold, in the order in which they were told."""

    _held: dict[tuple[ValueKind, str, str], dict[str, _Held]] = field(default_factory=dict)
    """By kind, unit and noun: value -> who told it."""
    _before: tuple[int, str] = (0, "")
    """A sentence without a value, for the one after it in the same turn."""

    def note(self, seq: int, unit: Unit) -> list[Move]:
        """Takes in a sentence of a person, gives what it replaced."""
        intro = self._before[1] if self._before[0] == seq else ""
        self._before = (0, "") if unit.values or len(unit.text) > _MOST_INTRO else (seq, unit.text)
        things = list(things_in(unit.text, unit.values)) if unit.values else []
        if not things or is_tentative(unit.text):
            return []
        settled = (
            [] if adds(unit.text) else [move for thing in things for move in self._moved(seq, unit.text, intro, thing)]
        )
        for thing in things:
            self._tell(seq, thing)
        return settled

    def _moved(self, seq: int, sentence: str, intro: str, thing: Thing) -> Iterator[Move]:
        if thing.is_past:
            return
        start, end = thing.clause
        lead = _last_clause(sentence[:start]) or intro
        own = sentence[start:end]
        if not (_NEWS.search(own if start else sentence[:end]) or _NEWS.search(lead)):
            return
        for place, held in self._candidates(seq, thing, f"{lead}, {own}"):
            old = held[-1]
            yield Move(old.thing.value, tuple(old.seqs), openly=len(held) == 1)
            self._held[place].pop(old.thing.value.key, None)
            return

    def _candidates(
        self, seq: int, thing: Thing, said: str
    ) -> Iterator[tuple[tuple[ValueKind, str, str], list[_Held]]]:
        """What the sentence may mean, the likeliest first."""
        kind, unit = thing.value.kind, unit_of(thing.value)
        for noun in sorted(thing.nouns or words_of(said) | {f"={name}" for name in thing.apart}):
            place = kind, unit, noun
            if found := self._standing(place, seq - _REACH_TURNS, seq, thing):
                yield place, found
        if not thing.nouns and not thing.apart and _IT.search(said):
            near = [
                (place, found)
                for place in self._held
                if place[:2] == (kind, unit) and (found := self._standing(place, seq - _NEAR_TURNS, seq, thing))
            ]
            yield from sorted(near, key=lambda one: -one[1][-1].seqs[-1])

    def _standing(self, place: tuple[ValueKind, str, str], first_seq: int, seq: int, thing: Thing) -> list[_Held]:
        return [
            held
            for key, held in self._held.get(place, {}).items()
            if first_seq <= held.seqs[-1] < seq and key != thing.value.key and thing.may_replace(held.thing)
        ]

    def _tell(self, seq: int, thing: Thing) -> None:
        for noun in (*thing.nouns, *(f"={name}" for name in thing.apart)):
            told = self._held.setdefault((thing.value.kind, unit_of(thing.value), noun), {})
            known = told.pop(thing.value.key, None)
            told[thing.value.key] = _Held(thing, [*(known.seqs if known else ()), seq])


def _last_clause(before: str) -> str:
    """The clause right before another."""
    return re.split(r"[,;:.!?，。；：！？]", before.rstrip(" ,;:.!?，。；：！？"))[-1]
