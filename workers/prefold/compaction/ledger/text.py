"""The ledger as text, within a number of tokens: what binds first, then exact values by turn."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from prefold.compaction.ledger.collect import Ledger
from prefold.compaction.ledger.entry import EntryKind, LedgerEntry
from prefold.compaction.reading.turns import terms_of
from prefold.tokens import TokenCounter

_TITLES = {
    "en": ("Said (the newest counts):", "Exact values:", "replaces", "is replaced by"),
    "zh": ("已说明（以最新为准）：", "确切数值：", "取代", "已被取代，见"),
    "ja": ("述べられたこと（新しいものが有効）:", "正確な値:", "旧", "変更あり、参照"),
}
_STATEMENT_SHARE = 0.75
"""Of the room, for statements that bind nobody, while there are values to show."""
_LINE_TOKENS = 7
_SAME_WORDS = 0.75
_SAME_WORDS_AND_VALUES = 0.4
_ROOM_FOR_TITLES = 120
_CONSIDERED = 900


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens that the ledger may take, by what asks for them."""

    most: int
    """For what a person cannot do without: lasting statements, corrections."""
    binding: int
    """Up to here for anything that binds."""
    rest: int
    """Up to here for other statements, and values."""

    @classmethod
    def of(cls, tokens: int) -> "Room":
        """The same for all."""
        return cls(tokens, tokens, tokens)

    def less(self, tokens: int) -> "Room":
        return Room(self.most - tokens, self.binding - tokens, self.rest - tokens)

    def within(self, tokens: int) -> "Room":
        """No more than ``tokens`` for anything."""
        return Room(min(self.most, tokens), min(self.binding, tokens), min(self.rest, tokens))


@dataclass(frozen=True, slots=True)
class LedgerText:
    """What of a ledger fits."""

    text: str
    """Empty when nothing does."""
    tokens: int
    entries: tuple[LedgerEntry, ...]
    left_out: int
    """Entries that had no room, or stand elsewhere already."""


def render_ledger(
    ledger: Ledger,
    room: Room | int,
    counter: TokenCounter,
    language: str,
    carried: Sequence[str] = (),
    summary: str = "",
) -> LedgerText:
    """The best of ``ledger`` in at most ``room`` tokens.

    What ``carried`` texts, which are the conversation's own, say whole is left out. Of what ``summary`` carries, what
    binds comes after what it lacks, and the rest is left out: a summary may turn a statement into its contrary.
    """
    room = Room.of(room) if isinstance(room, int) else room
    titles = _TITLES.get(language, _TITLES["en"])
    if room.most < _ROOM_FOR_TITLES:
        titles = ("", "", *titles[2:])
    chosen = _Choice(ledger, room, counter, titles[2:], _folded("\n".join(carried)), _folded(summary)).made()
    while chosen:
        text = "\n".join(_lines(chosen, titles))
        tokens = counter.count(text)
        if tokens <= room.most:
            return LedgerText(text, tokens, tuple(chosen), len(ledger.entries) - len(chosen))
        chosen.pop()
    return LedgerText("", 0, (), len(ledger.entries))


@dataclass(slots=True)
class _Choice:
    """Entries by rank that fit by estimate: what binds and is nowhere else, other statements and values, the rest."""

    ledger: Ledger
    room: Room
    counter: TokenCounter
    notes: tuple[str, str]
    carried: str
    summary: str
    chosen: list[LedgerEntry] = field(default_factory=list)
    said: str = ""
    """Folded statements that were chosen."""
    turns: set[int] = field(default_factory=set)
    words: list[frozenset[int]] = field(default_factory=list)
    used: float = 0.0

    def made(self) -> list[LedgerEntry]:
        """The chosen ones, best first."""
        entries = self.ledger.entries[:_CONSIDERED]
        late = [entry for entry in entries if self._corrects_what_stands(entry)]
        for entry in late:
            self._take(entry, self.room.most)
        waiting = [entry for entry in entries if entry.binds and entry not in late and not self._bind(entry)]
        others = [entry for entry in entries if not entry.binds and not self._is_carried(entry)]
        statements = self.room.rest * _STATEMENT_SHARE
        behind = []
        for entry in others:
            most = statements if entry.by_person else self.room.rest
            if not self._take(entry, most):
                behind.append(entry)
        for entry in (*waiting, *behind):
            self._take(entry, self.room.binding if entry.binds else self.room.rest)
        return self.chosen

    def _corrects_what_stands(self, entry: LedgerEntry) -> bool:
        """Whether a text beside the ledger still tells what this one replaced."""
        old = _folded(entry.replaces) if entry.by_person else ""
        return bool(old) and (old in self.carried or old in self.summary)

    def _bind(self, entry: LedgerEntry) -> bool:
        """Whether a binding statement is settled: taken, or told by the conversation's own words."""
        if not entry.replaces and _folded(entry.text) in self.carried:
            return True
        if self.summary and _folded(entry.text) in self.summary and not entry.replaces:
            return False
        return self._take(entry, self.room.most if entry.is_essential else self.room.binding)

    def _is_carried(self, entry: LedgerEntry) -> bool:
        if entry.by_person:
            text = _folded(entry.text)
            return not entry.replaces and (text in self.carried or text in self.summary)
        value = _folded(entry.values[0])
        return value in self.carried or value in self.summary

    def _take(self, entry: LedgerEntry, most: float) -> bool:
        cost = self._cost(entry)
        if self.used + cost > most:
            return False
        if not entry.by_person and _folded(entry.values[0]) in self.said:
            return False
        own = frozenset(terms_of(entry.text)) if entry.by_person else frozenset()
        if entry.by_person and not entry.replaces and self._repeats(entry, own):
            return False
        if entry.by_person:
            self.words.append(own)
            self.said += "\n" + _folded(entry.text)
        self.chosen.append(entry)
        self.turns.add(entry.seq)
        self.used += cost
        return True

    def _cost(self, entry: LedgerEntry) -> int:
        if entry.by_person:
            return self.counter.count(_line(entry, self.notes)) + 1
        return self.counter.count(entry.text) + 1 + (1 if entry.seq in self.turns else _LINE_TOKENS)

    def _repeats(self, entry: LedgerEntry, own: frozenset[int]) -> bool:
        """Whether it says again, in about the same words, what stands already; fewer words do where no value is new."""
        new = any(_folded(value) not in self.said for value in entry.values)
        same = _SAME_WORDS if new else _SAME_WORDS_AND_VALUES
        return any(_overlap(own, other) >= same for other in self.words)


def _folded(text: str) -> str:
    return " ".join(text.lower().split())


def _overlap(one: frozenset[int], other: frozenset[int]) -> float:
    return len(one & other) / max(1, min(len(one), len(other)))


def _lines(chosen: Iterable[LedgerEntry], titles: tuple[str, str, str, str]) -> Iterable[str]:
    ordered = sorted(chosen, key=lambda entry: entry.seq)
    statements = [entry for entry in ordered if entry.kind is not EntryKind.VALUE]
    if statements and titles[0]:
        yield titles[0]
    for entry in statements:
        yield _line(entry, titles[2:])
    values = [entry for entry in ordered if entry.kind is EntryKind.VALUE]
    if values and titles[1]:
        yield titles[1]
    for (seq, speaker), group in groupby(values, key=lambda entry: (entry.seq, entry.speaker)):
        yield f"[{seq} {speaker}] " + "; ".join(_with_labels(list(group)))


def _line(entry: LedgerEntry, notes: tuple[str, str]) -> str:
    """A statement, what it replaced, and what of it has been replaced."""
    replaces, changed = notes
    old = f' ({replaces} "{entry.replaces}" [{entry.replaces_seq}])' if entry.replaces else ""
    since = "".join(f' ("{value}" {changed} [{seq}])' for value, seq in entry.outdated)
    return f"[{entry.seq} {entry.speaker}] {entry.text}{old}{since}"


def _with_labels(group: Sequence[LedgerEntry]) -> Iterable[str]:
    """``label: value``, the label said once for values of one label that follow each other."""
    before = ""
    for entry in group:
        label, _, value = entry.text.rpartition(": ") if ": " in entry.text else ("", "", entry.text)
        yield entry.text if label != before or not label else value
        before = label
