"""Words of a text in a form in which a report and what it reports can be compared, in any language."""

import re
import unicodedata
from collections.abc import Iterable

_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_STEM = 5
_STOP = frozenset(
    """a about after again against all also am an and any are as asked at be because been before being below between both but
    by can could did do does doing down during each for from further get got had has have having he her here him his how i if
    in into is it its just like may me might more most must my need needs no nor not now of off on once only or other our out
    over own please said same shall she should so some such than that the their them then there these they this those through
    to told too under until up us use user users very wanted wants was we were what when where which while who why will with
    would you your assistant
    der die das und ist nicht ein eine den dem des mit auf für von zu im sich auch es ich sie wir ihr
    le la les de des du et est un une en que qui dans pour pas sur au il elle nous vous je
    el los las y es un una que en por con para no se su lo al del yo
    o os as e é um uma que em por com para não se do da no na eu
    il lo gli i e è un una che in per con non si del della di io
    de het een en is niet van op te dat die in voor met ik
    и в на не что это с по как из у я мы вы он она они за к
    bir ve bu için ile de da ne çok ben sen
    的 了 是 在 和 也 都 就 我 你 他 她 它 们""".split()
)


def stems_of(text: str) -> frozenset[str]:
    """Content words cut to their beginnings; pairs of neighbouring characters where there are no spaces."""
    return frozenset(_stems(_THOUSANDS.sub("", unicodedata.normalize("NFKC", text).lower())))


def _stems(text: str) -> Iterable[str]:
    for word in _WORD.findall(text):
        at = 0
        for wide in _WIDE.finditer(word):
            yield from _narrow(word[at : wide.start()])
            run = wide.group()
            yield from (run[index : index + 2] for index in range(max(1, len(run) - 1)))
            at = wide.end()
        yield from _narrow(word[at:])


def _narrow(word: str) -> Iterable[str]:
    if word and word not in _STOP and (len(word) > 1 or word.isdigit()):
        yield word if any(map(str.isdigit, word)) else word[:_STEM]


def share_of(stems: frozenset[str], known: frozenset[str]) -> float:
    """How much of ``stems`` is in ``known``; 1 for nothing at all."""
    return len(stems & known) / len(stems) if stems else 1.0
