"""Signs in the wording that a sentence binds, corrects, decides, or is still open."""

import re

from prefold.compaction.reading.cue import Cue
from prefold.compaction.reading.cues_cjk import CJK
from prefold.compaction.reading.cues_english import ENGLISH, SELF_NAMED
from prefold.compaction.reading.cues_european import EUROPEAN
from prefold.compaction.reading.cues_lasting import LASTING
from prefold.compaction.reading.cues_lasting_cjk import LASTING_CJK

_WORDS = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_QUESTION = re.compile(r"[?？]\W{0,20}$|吗[。！]?$")
_SPACED = (*ENGLISH, *LASTING, *EUROPEAN)
_UNSPACED = (*CJK, *LASTING_CJK)


def find_cues(sentence: str) -> Cue:
    """All cues in the wording of ``sentence``, whoever said it."""
    cues = Cue.QUESTION if _QUESTION.search(sentence) else Cue.NONE
    plain = sentence.replace("’", "'")
    lowered = plain.lower()
    words = set(_WORDS.findall(lowered))
    for cue, triggers, pattern in _SPACED:
        if not triggers.isdisjoint(words) and pattern.search(lowered):
            cues |= cue
    if SELF_NAMED.search(plain):
        cues |= Cue.IDENTITY
    if _WIDE.search(sentence):
        for cue, pattern in _UNSPACED:
            if pattern.search(sentence):
                cues |= cue
    return cues
