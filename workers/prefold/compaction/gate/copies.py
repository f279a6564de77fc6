"""Summaries that are none because they repeat: themselves, or what they should have shortened."""

import re
import zlib
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from prefold.compaction.gate.refusals import GateRefusedError
from prefold.compaction.gate.source import CLAIM, Spoken

_MOST_REPEATED = 0.3
_LEAST_LINES = 6
_LEAST_ZIPPED = 0.22
_ZIPPED_FROM = 800
_GRAM = 4
_MOST_GRAM = 6
_IN_A_ROW = 0.7
_ROW_LINES = 8
_WORD = re.compile(r"[^\W_]+|[\u3400-\u9fff]")


def check_repeats(lines: Sequence[str]) -> None:
    """Refuses the loops of small models: ``summary_repeats``."""
    if _loops(lines):
        raise GateRefusedError("it repeats itself", code="summary_repeats")


def check_copies(lines: Sequence[str], spoken: Spoken) -> None:
    """Refuses lines that are the conversation's sentences one after the other: ``summary_copied``."""
    if len(lines) < _ROW_LINES:
        return
    places: dict[str, int] = {}
    for number, one in enumerate(spoken.sentences):
        places.setdefault(_bare(one.text), number)
    at = [places.get(_bare(line), -9) for line in lines]
    in_a_row = sum(1 for before, after in pairwise(at) if before >= 0 and after - before in (1, 2))
    if in_a_row >= _IN_A_ROW * (len(lines) - 1):
        raise GateRefusedError(f"{in_a_row} of {len(lines)} lines follow the text", code="summary_copied")


def own_words(lines: Sequence[str], said: Sequence[str]) -> str:
    """The lines without those that stand in ``said`` word by word, be it as a quotation."""
    known = " ".join(map(_bare, said))
    return "\n".join(line for line in lines if _bare(CLAIM.sub("", line)) not in known)


def _loops(lines: Sequence[str]) -> bool:
    folded = [_bare(line) for line in lines]
    if len(folded) >= _LEAST_LINES and len(folded) - len(set(folded)) > _MOST_REPEATED * len(folded):
        return True
    text = "\n".join(folded)
    raw = text.encode()
    if len(raw) >= _ZIPPED_FROM and len(zlib.compress(raw, 6)) < _LEAST_ZIPPED * min(len(raw), 6_000):
        return True
    return any(_stutters(line) for line in (*folded, text))


def _stutters(text: str) -> bool:
    words = _WORD.findall(text)
    grams = Counter(tuple(words[at : at + _GRAM]) for at in range(len(words) - _GRAM + 1))
    if not grams:
        return False
    _, times = grams.most_common(1)[0]
    return times > _MOST_GRAM and times * _GRAM > _MOST_REPEATED * len(words)


def _bare(line: str) -> str:
    return " ".join(_WORD.findall(line.lower()))
