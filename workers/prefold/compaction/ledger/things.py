"""What a value in plain words belongs to: ``delivery by 14 April`` gives (delivery, 14 April), ``4月2日之前交货`` gives 交货.

Looser than a label: the noun beside the value, past prepositions and verbs of planning. What else the clause says of it
(``with Ann``, ``for the chairs``, ``his``) keeps two things of one noun apart.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prefold.compaction.reading.values import Value, ValueKind

_KINDS = frozenset({ValueKind.DATE, ValueKind.TIME, ValueKind.AMOUNT, ValueKind.QUANTITY, ValueKind.NUMBER})
_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_ELIDED = re.compile(r"^[ld]['’](?=\w)")
_BORDER = re.compile(r"[,;:.!?](?=\s)|[，。；：！？、]|\s[-–—]\s|—")
_WIDE = re.compile(r"[\u3400-\u9fff]")
_PASSED = frozenset(
    """at on by before until till of for in within from to after around about under over the a an is are be been has have
    will should moved pushed postponed rescheduled brought forward back shifted changed raised lowered increased reduced
    extended cut set got gets leaves departs starts begins ends closes opens arrives runs was were went delayed deferred advanced now instead then actually rather
    only up down um bis am vor von für ab auf der die das den dem ein eine einen ist jetzt nun doch lieber wird wurde verschoben verlegt
    à avant le la les de du des pour un une est maintenant plutôt au reporté reportée avancé avancée el antes del para una es ahora
    mejor hasta en día cambió pasa até no na dia o do um uma é agora mudou passou às foi adiada adiado em до в на к теперь переносится перенесли
    перенесена будет сейчас это""".split()
)
"""Between a noun and its value."""
_APART = frozenset("with for to of at on mit für nach avec pour con para com с со для".split())
"""What follows says which of several things of one noun it is."""
_ARTICLES = frozenset(
    "the a an my our your new der die das den dem ein eine einen le la les un une el los las una o os as um uma".split()
)
_INDEFINITE = frozenset("a an ein eine einen un une una um uma".split())
"""``asked for a loan of``: what is new in a talk is what the value is of, whatever stands before it."""
_NO_NOUN = frozenset(
    """i we you he she it they this that these those there here my our your me us who what which i'm we're it's that's i'd we'd
    i've we've let's there's i'll we'll it'll do does did go goes get need want make take give put say said know think like can
    could would may might must and or but so if not just also please one ones more less better sooner earlier later longer
    ich wir sie es er je nous il elle c'est yo eu nós я мы он она оно y et und e и a""".split()
)
_THEIRS = re.compile(
    r"\b(?:his|her|their|seine?[nmrs]?|son|sa|ses|sus?|dele|dela|его|её|их)\b"
    r"|\b(?!(?:it|that|let|he|she|what|here|there|who|how|where)['’])[^\W\d_]+['’]s\b",
    re.IGNORECASE,
)
_FOR = re.compile(r"(?:\bfor|\bfür|\bpour|\bpara|\bдля)\s$", re.IGNORECASE)
_PAST = re.compile(r"^\s(?:was|were|went|had)\b", re.IGNORECASE)
_WIDE_BEFORE = re.compile(
    r"(?:现在|目前|已经|大概|需要|安排|推迟|提前|延后|延期|延长|缩短|提高|降低|增加|减少|调整|上调|下调|最多|最少|每[月天年人周晚]|一[张个间份]|[都就也在是为定订改换变延涨降调成到至于了要交买约有得吧的])+$"
)
_WIDE_AFTER = re.compile(r"^(?:之前|以前|之后|以后|[前后就的])*(?P<thing>[\u3400-\u9fff]{2})")
_WIDE_FIRST = re.compile(r"^(?:我们?的?|咱们?的?|那么?|请|麻烦|所以|但是?|还是|再|帮我|现在|[把将])+")
_PLURAL = re.compile(r"[^siu]s$")
"""Several of a name have several values."""
_MOST_BEFORE = 120
_MOST_WORDS = 14
_LEAST_NOUN = 3


@dataclass(frozen=True, slots=True)
class Thing:
    """A value with what it belongs to."""

    value: Value
    nouns: frozenset[str]
    """One name, or two in Chinese, for what stands before a value or after it; none where the clause has only a pronoun."""
    apart: frozenset[str]
    """Which one of several."""
    clause: tuple[int, int]
    """Where its clause is in the sentence."""
    is_past: bool = False
    """It is told of as over (``on 5 May was better``)."""

    def may_replace(self, older: "Thing") -> bool:
        """Whether both can be values of the same thing."""
        return self.value.kind is older.value.kind and self.apart <= older.apart


def things_in(sentence: str, values: Sequence[Value]) -> Iterator[Thing]:
    """The values of a kind that plans are made of, each with what it belongs to. Linear in their number."""
    telling = [value for value in values if value.kind in _KINDS]
    borders = [0, *(found.end() for found in _BORDER.finditer(sentence)), len(sentence)] if telling else []
    for value in telling:
        if value.kind is ValueKind.NUMBER and not _FOR.search(sentence[: value.start][-8:]):
            continue
        start = max(border for border in borders if border <= value.start)
        end = min(border for border in borders if border >= value.end)
        before = sentence[max(start, value.start - _MOST_BEFORE) : value.start]
        if (not before.strip() and start and sentence[start - 1] in ":：") or before.endswith((": ", "：")):
            before = sentence[max(0, start - _MOST_BEFORE) : value.start]
        yield _thing(value, before, sentence[value.end : min(end, value.end + _MOST_BEFORE)], (start, end))


def _words(text: str) -> list[str]:
    """Words in lower case, without a French article that clings to them."""
    return [_ELIDED.sub("", found.group().lower()) for found in _WORD.finditer(text)]


def words_of(text: str) -> frozenset[str]:
    """Every word of ``text`` that could name a thing, in the form of ``Thing.nouns``."""
    wide = {_bare_wide(clause)[0] for clause in _BORDER.split(text) if _WIDE.search(clause)}
    words = (word for word in _words(text) if not _WIDE.search(word))
    return frozenset(wide - {""}) | {_noun(word) for word in words if _is_noun(word)}


def possessors(sentence: str) -> frozenset[str]:
    """Words that say that something is somebody else's."""
    return frozenset(found.group().lower() for found in _THEIRS.finditer(sentence))


def _thing(value: Value, before: str, after: str, clause: tuple[int, int]) -> Thing:
    if _WIDE.search(before) or (_WIDE.search(after) and not _WORD.search(before)):
        return _wide_thing(value, before, after, clause)
    words = _words(before)[-_MOST_WORDS:]
    noun, apart = _walk_back(words)
    apart |= _named_after(after) | possessors(before)
    return Thing(value, frozenset({noun} if noun else ()), frozenset(apart), clause, bool(_PAST.match(after)))


def _walk_back(words: list[str]) -> tuple[str, set[str]]:
    """The noun before a value, past what says which one it is."""
    apart: set[str] = set()
    while words:
        word = words.pop()
        if word in _PASSED:
            continue
        article = ""
        while words and words[-1] in _ARTICLES:
            article = words.pop()
        if article not in _INDEFINITE and words and words[-1] in _APART and len(words) > 1:
            words.pop()
            apart.add(word)
            continue
        return (_noun(word) if _is_noun(word) else ""), apart
    return "", apart


def _named_after(after: str) -> set[str]:
    """``drinks`` of ``$300 for drinks``."""
    words = _words(after)[:_MOST_WORDS]
    found: set[str] = set()
    for at, word in enumerate(words[:-1]):
        if word in _APART:
            named = next((one for one in words[at + 1 :] if one not in _ARTICLES), "")
            found.update({named} if _could_name(named) else ())
    return found


def _wide_thing(value: Value, before: str, after: str, clause: tuple[int, int]) -> Thing:
    name, apart = _bare_wide(_BORDER.split(before)[-1])
    follows = _WIDE_AFTER.match(after)
    nouns = {name, follows["thing"] if follows else ""} - {""}
    return Thing(value, frozenset(nouns), frozenset({apart} - {""}), clause)


def _bare_wide(text: str) -> tuple[str, str]:
    """``会议`` and ``周二`` of ``周二的会议现在``."""
    text = _WIDE_FIRST.sub("", _WIDE_BEFORE.sub("", text.strip()))
    apart, _, name = text.rpartition("的")
    return (name if len(name) > 1 else ""), apart


def _is_noun(word: str) -> bool:
    return _could_name(word) and not _PLURAL.search(word)


def _could_name(word: str) -> bool:
    return len(word) >= _LEAST_NOUN and word not in _NO_NOUN and word not in _PASSED


def _noun(word: str) -> str:
    """Russian words without their last letter, which changes with the case."""
    return word[:-1] if "а" <= word[0] <= "я" and len(word) > _LEAST_NOUN + 1 else word
