"""The chosen candidates as text: sections of lines, each line a turn's quotes in order.

A line reads ``[12 user] quote``, or ``[12 user quoting] quote`` where they only pass it on; quotes of one turn that do not touch are joined by `` … ``, and ``…`` also stands
where a sentence was cut. What is quoted is a span of the turn's text with white space folded: nothing else is
changed after ``source`` has made the text safe. What Prefold adds stands in round brackets: ``(×3)``, said three
times in all; ``("$3000": → [20])``, turn 20 has another value for it.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

from prefold.compaction.engine import SummarySection
from prefold.compaction.extractive.candidates import Candidate
from prefold.conversation.clipping import grapheme_start
from prefold.tokens import TokenCounter

_TITLES = {
    "en": {"binding": "Wishes, constraints and corrections", "events": "What happened", "open": "Asked last"},
    "zh": {"binding": "愿望、限制与更正", "events": "经过", "open": "最后的请求"},
    "ja": {"binding": "希望・制約・訂正", "events": "経過", "open": "最後の依頼"},
}
_NOTHING = "(nothing was said in words)"


def sections_of(parts: Sequence[tuple[str, Sequence[Candidate]]], language: str) -> tuple[SummarySection, ...]:
    """Sections with their lines in the conversation's order; parts without candidates are left out."""
    titles = _titles(language)
    return tuple(SummarySection(key, titles[key], tuple(_lines(chosen))) for key, chosen in parts if chosen)


def text_of(sections: Iterable[SummarySection], *, titled: bool) -> str:
    """All sections as one text, with their titles or without."""
    return "\n".join(line for one in sections for line in ((f"## {one.title}", *one.lines) if titled else one.lines))


def single_line(candidate: Candidate | None, cap: int, language: str, counter: TokenCounter) -> SummarySection:
    """What is left where next to nothing fits, or nothing was said."""
    line = _NOTHING if candidate is None else next(iter(_lines([candidate])))
    while line and counter.count(line) > cap:
        shorter = grapheme_start(line, len(line) * 3 // 4 - 2)
        line = line[:shorter].rstrip() + " …" if shorter > 0 else ""
    return SummarySection("events", _titles(language)["events"], (line,))


def _titles(language: str) -> dict[str, str]:
    return _TITLES.get(language, _TITLES["en"])


def _lines(chosen: Sequence[Candidate]) -> Iterable[str]:
    date = ""
    ordered = sorted(chosen, key=lambda one: (one.reading.seq, one.unit.part, one.unit.start))
    for (_, quoting), group in groupby(ordered, key=lambda one: (one.reading.seq, one.unit.quoted)):
        turn = list(group)
        reading = turn[0].reading
        when = f" {reading.date}" if reading.date and reading.date != date else ""
        date = reading.date or date
        yield f"[{reading.seq} {reading.speaker}{' quoting' if quoting else ''}{when}] {_quotes(turn)}"


def _quotes(turn: Sequence[Candidate]) -> str:
    text = ""
    before: Candidate | None = None
    for candidate in turn:
        text += _joint(before, candidate) + candidate.text
        if candidate.repeats > 1:
            text += f" (×{candidate.repeats})"
        text += "".join(f' ("{value}": → [{seq}])' for value, seq in candidate.outdated)
        before = candidate
    return text + ("" if before is None or before.unit.closes else " …")


def _joint(before: Candidate | None, after: Candidate) -> str:
    """What stands between two quotes of one turn."""
    if before is None:
        return "" if after.unit.opens else "… "
    if before.unit.kind == "call" or after.unit.kind == "call":
        return "; "
    touching = before.unit.part == after.unit.part and after.unit.start - before.unit.end <= 2 and before.repeats == 1
    return " " if touching else " … "
