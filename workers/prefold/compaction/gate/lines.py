"""Line by line: what of a written summary may stand, and in which form.

- Under ``constraints`` and ``corrections`` stands nothing but what a person said in their own words, quoted, with its
  turn and speaker. The words are taken from the source, not from the model.
- A line elsewhere that binds its reader (an order, a duty, something for all time) stands if a person said it, and then
  as such a quotation; else it goes.
- What tries to take rules off, to forge a role or to hide goes in any case.
- A line that comes from a passage of a tool, page or document that gives orders goes.
- A line of another language, or one whose words the source does not have, goes.
- What was copied from a tool or a document is marked as a quotation of it.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from math import log

from prefold.compaction.engine import SummarySection
from prefold.compaction.gate.disguises import decoded
from prefold.compaction.gate.injection import Order, gives_orders, order_of
from prefold.compaction.gate.source import CLAIM, UNTRUSTED, Sentence, Spoken, Voice
from prefold.compaction.gate.words import share_of, stems_of
from prefold.compaction.segments.titles import BINDING_KEYS
from prefold.conversation.marks import neutralise

_SUPPORTED = 0.6
"""Share of a line's words, by weight, that the words of a person must have."""
_ERRAND_SUPPORTED = 0.6
_GROUNDED = 0.5
_ECHO = 0.85
_LEAST_STEMS = 3
_TAINT = 4
"""So many sentences around an order in a tool's or document's text are taken for part of it."""
_MOST_QUOTE = 400
_MOST_LOOKED_AT = 24
_COPIED = 0.8
"""Share of a line's words in one sentence of a tool or document from which it is taken for that sentence."""
_LEAD = re.compile(
    r"^(?:asked|implied|user|assistant|human|用户|用戶|助手|ユーザー|アシスタント)\s?[:：]\s?", re.IGNORECASE
)
_NAMES = re.compile(
    r"\"[^\"\n]{2,80}\"|“[^”\n]{2,80}”|«[^»\n]{2,80}»|「[^」\n]{2,80}」|《[^》\n]{2,80}》|`[^`\n]{2,80}`|'[^'\n]{3,80}'(?!\w)"
    r"|\b[A-Z][A-Z0-9_-]{2,}\b|(?<=[a-z,;] )[A-Z][a-z]{2,}\b|\b\w*\d\w*\b"
)
_REPORTED = re.compile(
    r"\b(?:contain(?:s|ed)|instruct(?:s|ed)|ask(?:s|ed)|told|said|says|claim(?:s|ed)|tried|attempt(?:s|ed)|request(?:s|ed)|injection|which was not|not followed|ignored by|refused|declined|suspicious)\b|注入|声称|要求|未执行|没有执行|指示が|従わな",
    re.IGNORECASE,
)


@dataclass
class Dropped:
    """How many lines went, by reason."""

    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.reasons.total()

    @property
    def untrue(self) -> int:
        """Lines that do not go back to what was said."""
        return self.reasons["unfounded"] + self.reasons["tainted"] + self.reasons["encoded"]

    @property
    def obeyed(self) -> int:
        """Lines in which the model gave an order of the text on as its own."""
        return self.reasons["obeyed"]


class LineCheck:
    """Holds lines against one source."""

    def __init__(self, spoken: Spoken) -> None:
        self.spoken = spoken
        self.dropped = Dropped()
        self._persons = spoken.of(Voice.PERSON)
        self._index: dict[str, list[int]] = {}
        for number, sentence in enumerate(self._persons):
            for stem in sentence.stems:
                self._index.setdefault(stem, []).append(number)
        self._weights = {stem: log(1 + len(self._persons) / len(at)) for stem, at in self._index.items()}
        self._rare = log(2 + len(self._persons))
        self._orders, self._tainted = _orders_in(spoken.sentences)
        self._foreign = spoken.of(*UNTRUSTED)
        self._foreign_at: dict[str, list[int]] = {}
        for number, sentence in enumerate(self._foreign):
            for stem in sentence.stems:
                self._foreign_at.setdefault(stem, []).append(number)
        self._duties = [one.stems for one in self._foreign if order_of(one.text) is Order.DUTY]
        self._hidden = [stems_of(text) for one in spoken.sentences for text in decoded(one.text)]
        self._assistant = spoken.of(Voice.ASSISTANT)
        self._ours = spoken.of(Voice.ASSISTANT, Voice.SYSTEM)
        self._trusted = frozenset[str]().union(*(one.stems for one in spoken.of(Voice.PERSON, Voice.ASSISTANT)))
        self._said = spoken.of(Voice.PERSON, Voice.ASSISTANT, Voice.SYSTEM)

    def section(self, section: SummarySection) -> tuple[str, ...]:
        """What stands of ``section``; a line is not said twice."""
        kept: dict[str, None] = {}
        for line in section.lines:
            checked = self._binding(line) if section.key in BINDING_KEYS else self._free(line)
            if checked:
                kept[checked] = None
        return tuple(kept)

    def first_words(self) -> str:
        """What was said first, a person's words before all others, quoted: an intent that needs no model."""
        return self._plain_quote(self.spoken.sentences)

    def last_words(self) -> str:
        """What was said last."""
        return self._plain_quote(self.spoken.sentences[::-1])

    def _plain_quote(self, sentences: Sequence[Sentence]) -> str:
        for voice in (Voice.PERSON, Voice.ASSISTANT, Voice.TOOL, Voice.CALL):
            for one in sentences:
                if one.voice is voice and one.seq and len(one.stems) >= _LEAST_STEMS and not order_of(one.text):
                    return _quote(one.seq, one.speaker, one.text)
        return ""

    def _drop(self, reason: str) -> str:
        self.dropped.reasons[reason] += 1
        return ""

    def _binding(self, line: str) -> str:
        bare, _ = _without_claim(line)
        quoted = self._quotation(bare)
        if quoted and order_of(quoted) < Order.OVERRIDE:
            return quoted
        return self._drop("obeyed" if self._obeys(bare, order_of(bare)) else "unsupported")

    def _free(self, line: str) -> str:
        bare, claim = _without_claim(line)
        if claim is not None and (verified := self._verified(bare, claim)):
            return verified if order_of(verified) < Order.OVERRIDE else self._drop("order")
        order = order_of(bare)
        if order >= Order.DUTY:
            return self._ordering(bare, order)
        if order is Order.TASK and not self._is_errand(bare):
            return self._drop("order")
        return self._told(bare)

    def _ordering(self, line: str, order: Order) -> str:
        if order < Order.OVERRIDE:
            quoted = self._quotation(line) or self._echo(line)
            if quoted and order_of(quoted) < Order.OVERRIDE:
                return quoted
        elif _REPORTED.search(line):
            return self._drop("reported")
        return self._drop("obeyed" if self._obeys(line, order) else "order")

    def _told(self, line: str) -> str:
        stems = stems_of(line)
        if self._from_order(stems):
            return self._drop("obeyed")
        if any(len(stems) >= _LEAST_STEMS and share_of(stems, tainted) >= _SUPPORTED for tainted in self._tainted):
            return self._drop("tainted")
        if decoded(line):
            return self._drop("encoded")
        if share_of(stems, self.spoken.stems) < _GROUNDED and self._names_news(line):
            return self._drop("unfounded")
        return self._marked(line)

    def _names_news(self, line: str) -> bool:
        """Whether ``line`` has a name, a quotation or a shout in it that nobody ever uttered."""
        return any(not stems_of(found.group()) <= self.spoken.stems for found in _NAMES.finditer(line))

    def _obeys(self, line: str, order: Order) -> bool:
        """Whether the order in ``line`` is one for all time, or out of a tool or document; not if it is the backend's own."""
        stems = stems_of(line)
        if order >= Order.LASTING and not any(share_of(stems, one.stems) >= _ECHO for one in self._ours):
            return True
        return self._from_order(stems) or (gives_orders(line) and self._is_from(stems, self._duties))

    def obeys(self, line: str) -> bool:
        """Whether ``line``, which nobody asked for, gives an order on."""
        bare, _ = _without_claim(line)
        order = order_of(bare)
        return order >= Order.DUTY and self._obeys(bare, order)

    def _echo(self, line: str) -> str:
        """What the assistant said, quoted, where ``line`` repeats it almost word for word."""
        stems = stems_of(line)
        best = max(self._assistant, key=lambda one: share_of(stems, one.stems), default=None)
        if best is None or len(stems) < _LEAST_STEMS or share_of(stems, best.stems) < _ECHO:
            return ""
        return _quote(best.seq, best.speaker, best.text) if best.seq else neutralise(line)

    def _from_order(self, stems: frozenset[str]) -> bool:
        return self._is_from(stems, (*self._orders, *self._hidden))

    def _is_from(self, stems: frozenset[str], orders: Sequence[frozenset[str]]) -> bool:
        """Whether most of ``stems`` stand in one of ``orders``, and fewer of them in anything that may be told."""
        if len(stems) < _LEAST_STEMS:
            return False
        share = max((share_of(stems, one) for one in orders), default=0.0)
        return share >= _SUPPORTED and share > max((share_of(stems, one.stems) for one in self._said), default=0.0)

    def _is_errand(self, line: str) -> bool:
        """Whether a line that begins as an order tells what a person, or the assistant, meant to do."""
        stems = stems_of(line)
        share = share_of(stems, self._trusted)
        return share >= _ERRAND_SUPPORTED and share >= max(
            (share_of(stems, one.stems) for one in self._foreign), default=0.0
        )

    def _verified(self, line: str, claim: re.Match[str]) -> str:
        """A quotation that stands in the turn that it names, with the speaker of that turn."""
        turn = self.spoken.by_seq.get(int(claim["seq"]), [])
        words = _unquoted(line).lower()
        for one in turn:
            if words and words in one.text.lower() and len(words) * 4 > len(one.text):
                return _quote(one.seq, one.speaker, one.text)
        best = max(turn, key=lambda one: share_of(stems_of(words), one.stems), default=None)
        if best is not None and share_of(stems_of(words), best.stems) >= _SUPPORTED:
            return _quote(best.seq, best.speaker, best.text)
        return ""

    def _quotation(self, line: str) -> str:
        """The sentences of a person that say what ``line`` says, from one turn; empty without any."""
        stems = stems_of(line)
        total = sum(self._weights.get(stem, self._rare) for stem in stems)
        scores: dict[int, float] = {}
        for stem in stems:
            for number in self._index.get(stem, ()):
                scores[number] = scores.get(number, 0.0) + self._weights[stem]
        if not scores or not total:
            return ""
        turns: dict[int, list[int]] = {}
        for number in nlargest(_MOST_LOOKED_AT, scores, key=lambda number: scores[number]):
            turns.setdefault(self._persons[number].seq, []).append(number)
        best = max(
            turns.values(),
            key=lambda numbers: (self._weight(stems, numbers), -len(numbers), self._persons[numbers[0]].seq),
        )
        chosen = self._telling(stems, best)
        if self._weight(stems, chosen) < _SUPPORTED * total:
            return ""
        said = [self._persons[number] for number in sorted(chosen)]
        return _quote(said[0].seq, said[0].speaker, " … ".join(one.text for one in said))

    def _telling(self, stems: frozenset[str], numbers: Sequence[int]) -> list[int]:
        """Those of ``numbers``, best first, that each add something."""
        chosen: list[int] = []
        for number in numbers[:3]:
            if self._weight(stems, [*chosen, number]) > self._weight(stems, chosen) * 1.15 or not chosen:
                chosen.append(number)
        return chosen

    def _weight(self, stems: frozenset[str], numbers: Sequence[int]) -> float:
        said = frozenset[str]().union(*(self._persons[number].stems for number in numbers))
        return sum(self._weights.get(stem, 0.0) for stem in stems & said)

    def _marked(self, line: str) -> str:
        """``line``; where it is a tool's, a page's or a document's words, these, quoted, whatever their language."""
        stems = stems_of(line)
        shared = Counter(number for stem in stems for number in self._foreign_at.get(stem, ()))
        is_short = len(stems) <= _LEAST_STEMS
        if not shared or (is_short and any(map(str.isdigit, line))):
            return neutralise(line)
        number, count = shared.most_common(1)[0]
        least = 1.0 if is_short else _COPIED
        if count < least * len(stems) or any(share_of(stems, one.stems) >= count / len(stems) for one in self._said):
            return neutralise(line)
        source = self._foreign[number]
        return self._drop("order") if gives_orders(source.text) else _quote(source.seq, source.speaker, source.text)


def _orders_in(sentences: Sequence[Sentence]) -> tuple[list[frozenset[str]], list[frozenset[str]]]:
    """Stems of the orders in untrusted text, and of the sentences around them."""
    untrusted = [one for one in sentences if one.voice in UNTRUSTED]
    at = [index for index, one in enumerate(untrusted) if order_of(one.text) >= Order.LASTING]
    orders = {index: untrusted[index].stems for index in at}
    near = {
        index
        for order in at
        for index in range(max(0, order - _TAINT), min(len(untrusted), order + _TAINT + 1))
        if untrusted[index].seq == untrusted[order].seq and index not in orders
    }
    return list(orders.values()), [untrusted[index].stems for index in sorted(near)]


def _without_claim(line: str) -> tuple[str, re.Match[str] | None]:
    claim = CLAIM.match(line)
    bare = line[claim.end() :] if claim else line
    return _LEAD.sub("", bare).strip(), claim


def _unquoted(line: str) -> str:
    return " ".join(line.strip(" \"'“”„«»「」『』*`").split())


def _quote(seq: int, speaker: str, text: str) -> str:
    said = text if len(text) <= _MOST_QUOTE else text[:_MOST_QUOTE].rsplit(" ", 1)[0] + " …"
    return f'[{seq} {speaker}] "{neutralise(said)}"'
