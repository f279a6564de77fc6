"""The ledger as text, within a number of tokens: what binds first, then exact values by turn."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from prefold.compaction.ledger import EntryKind, Ledger, LedgerEntry
from prefold.compaction.reading import terms_of
from prefold.tokens import TokenCounter

_TITLES = {
    "en": ("Said (the newest counts):", "Exact values:", "replaces", "is replaced by"),
    "zh": ("已说明（以最新为准）：", "确切数值：", "取代", "已被取代，见"),
    "ja": ("述べられたこと（新しいものが有効）:", "正確な値:", "旧", "変更あり、参照"),
}
_STATEMENT_SHARE = 0.75
"""Of the room, for statements, while there are values to show."""
_LINE_TOKENS = 7
_NOTE_TOKENS = 9
_SAME_WORDS = 0.75
_SAME_WORDS_AND_VALUES = 0.4
_ROOM_FOR_TITLES = 120
_CONSIDERED = 600


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
    ledger: Ledger, room_tokens: int, counter: TokenCounter, language: str, carried: Sequence[str] = ()
) -> LedgerText:
    """The best of ``ledger`` in at most ``room_tokens``; what ``carried`` texts say whole is left out."""
    chosen = _choose(ledger, room_tokens, counter, carried)
    titles = _TITLES.get(language, _TITLES["en"]) if room_tokens >= _ROOM_FOR_TITLES else ("", "", *_TITLES["en"][2:])
    while chosen:
        text = "\n".join(_lines(chosen, titles))
        tokens = counter.count(text)
        if tokens <= room_tokens:
            return LedgerText(text, tokens, tuple(chosen), len(ledger.entries) - len(chosen))
        chosen.pop()
    return LedgerText("", 0, (), len(ledger.entries))


def _choose(ledger: Ledger, room_tokens: int, counter: TokenCounter, carried: Sequence[str]) -> list[LedgerEntry]:
    """Entries by rank that fit by estimate; a second round gives values what statements left."""
    elsewhere = " ".join(" ".join(carried).lower().split())
    chosen: list[LedgerEntry] = []
    turns: set[int] = set()
    words: list[frozenset[int]] = []
    left = float(room_tokens)
    statements_left = room_tokens * _STATEMENT_SHARE
    waiting: list[LedgerEntry] = []
    for entry in ledger.entries[:_CONSIDERED]:
        cost = counter.count(entry.text) + 1 + _starts_line(entry, turns)
        if cost > left or _is_told(entry, elsewhere, chosen):
            continue
        if entry.by_person:
            if cost > statements_left:
                waiting.append(entry)
                continue
            own = frozenset(terms_of(entry.text))
            if _repeats(entry, own, chosen, words):
                continue
            words.append(own)
            statements_left -= cost
        chosen.append(entry)
        turns.add(entry.seq)
        left -= cost
    for entry in waiting:
        cost = counter.count(entry.text) + 1 + _starts_line(entry, turns)
        if cost <= left:
            chosen.append(entry)
            left -= cost
    return chosen


def _starts_line(entry: LedgerEntry, turns: set[int]) -> int:
    if entry.by_person:
        return _LINE_TOKENS + _NOTE_TOKENS * (bool(entry.replaces) + len(entry.outdated))
    return 1 if entry.seq in turns else _LINE_TOKENS


def _is_told(entry: LedgerEntry, elsewhere: str, chosen: Iterable[LedgerEntry]) -> bool:
    """Whether a text beside the ledger, or a chosen statement, has it already."""
    if entry.by_person:
        return bool(elsewhere) and not entry.replaces and " ".join(entry.text.lower().split()) in elsewhere
    value = " ".join(entry.values[0].lower().split())
    return value in elsewhere or any(value in other.text.lower() for other in chosen if other.by_person)


def _repeats(
    entry: LedgerEntry, own: frozenset[int], chosen: Sequence[LedgerEntry], words: Sequence[frozenset[int]]
) -> bool:
    """Whether it says again, in about the same words, what stands already; fewer words do where no value is new."""
    told = [value for value in entry.values if any(value in other.text for other in chosen if other.by_person)]
    same = _SAME_WORDS if len(told) < len(entry.values) else _SAME_WORDS_AND_VALUES
    return any(_overlap(own, other) >= same for other in words)


def _overlap(one: frozenset[int], other: frozenset[int]) -> float:
    return len(one & other) / max(1, min(len(one), len(other)))


def _lines(chosen: Iterable[LedgerEntry], titles: tuple[str, str, str, str]) -> Iterable[str]:
    ordered = sorted(chosen, key=lambda entry: entry.seq)
    statements = [entry for entry in ordered if entry.kind is not EntryKind.VALUE]
    if statements and titles[0]:
        yield titles[0]
    for entry in statements:
        yield f"[{entry.seq} {entry.speaker}] {entry.text}{_notes(entry, titles[2], titles[3])}"
    values = [entry for entry in ordered if entry.kind is EntryKind.VALUE]
    if values and titles[1]:
        yield titles[1]
    for (seq, speaker), group in groupby(values, key=lambda entry: (entry.seq, entry.speaker)):
        yield f"[{seq} {speaker}] " + "; ".join(_with_labels(list(group)))


def _notes(entry: LedgerEntry, replaces: str, changed: str) -> str:
    """What it replaced, and what of it has been replaced."""
    old = f' ({replaces} "{entry.replaces}" [{entry.replaces_seq}])' if entry.replaces else ""
    return old + "".join(f' ("{value}" {changed} [{seq}])' for value, seq in entry.outdated)


def _with_labels(group: Sequence[LedgerEntry]) -> Iterable[str]:
    """``label: value``, the label said once for values of one label that follow each other."""
    before = ""
    for entry in group:
        label, _, value = entry.text.rpartition(": ") if ": " in entry.text else ("", "", entry.text)
        yield entry.text if label != before or not label else value
        before = label
