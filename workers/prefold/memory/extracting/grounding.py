"""A model's row held against what its user said: where it is said there, and whether it was stated.

A row that cannot be found in its turn is no fact, whatever the model thinks; nor is one that was only played with.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from prefold.memory.extracting.answer import AnswerRow
from prefold.memory.extracting.clauses import clauses_of, stated_part, without_filler
from prefold.memory.extracting.hedges import doubtful, is_doubtful, is_joke, is_secret, why_no_statement
from prefold.memory.extracting.rule import without_lead
from prefold.memory.extracting.said import OwnSentence
from prefold.memory.extracting.vocabulary import KIN

__all__ = ["Grounded", "grounded"]

_WORD = re.compile(r"[^\W_]+")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_EMPTY = frozenset("a an the my of to in at on for with and or is are am i".split())
_FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|i've|i'll|im|ive|my|mine|me|myself|we|we're|our|us)\b|我|咱|本人|俺", re.IGNORECASE
)
_BINDING = frozenset({"instruction", "constraint"})
_OTHERS = re.compile(
    rf"(?:my|our)\s(?:[\w-]+\s)?(?:{KIN[3:-1]}|friend|colleague|coworker|neighbou?r|teacher|doctor|kids?|children|parents|team|company|cousin)s?(?:\s[A-Z]\w+)?\s(?!name|is\scalled|is\snamed)|(?:he|she|they|it|you|your|his|her|their)\b",
    re.IGNORECASE,
)
_OTHERS_WIDE = re.compile(
    r"(?:我的?)?(?:妻子|老婆|丈夫|老公|爱人|女朋友|男朋友|儿子|女儿|孩子|妈妈|母亲|爸爸|父亲|父母|姐姐|妹妹|哥哥|弟弟|奶奶|爷爷|朋友|同事|老板|老师|同学|邻居|室友|妈|爸|妹|弟|姐|哥)(?!叫|的名字|名叫)|他|她|它|你|您"
)
_ENDS = re.compile(
    r"\b(?:no longer|any ?more|any longer|not|stopped|quit|left|moved|sold|gave up|given up|broke up|cancell?ed|changed|don't|doesn't|isn't|am not|i'm not|used to|former)\b|不再|不.{0,12}了|没有?.{0,8}了|离开|离职|辞职|搬|戒|卖|取消|分手|换",
    re.IGNORECASE,
)
"""Wording with which something is taken back: a model's word alone ends no fact."""
_DENIES = re.compile(
    r"\b(?:not|never|no longer|no|none|neither|cannot|without|hardly)\b|n't\b|不|没|无|别|未", re.IGNORECASE
)
_NEGATIVE = frozenset(
    {
        "dislikes",
        "cannot",
        "can_only",
        "does_not",
        "does_not_eat",
        "does_not_drink",
        "intolerant_to",
        "condition",
        "avoids",
    }
)


@dataclass(frozen=True, slots=True)
class Grounded:
    """Where a row is said, or why it is not."""

    sentence: OwnSentence | None
    reason: str = ""


def grounded(row: AnswerRow, category: str, sentences: Sequence[OwnSentence]) -> Grounded:
    """The first of ``sentences``, those of the row's turn, that states it; else the reason of the last that does not."""
    if is_secret(f"{row.relation.replace('_', ' ')} {row.object}"):
        return Grounded(None, "secret")
    reason = "not_said"
    for sentence in sentences:
        if not _holds(sentence.text, row.object):
            continue
        reason = _why_not(sentence, row, category)
        if not reason:
            return Grounded(sentence)
    return Grounded(None, reason)


def _why_not(sentence: OwnSentence, row: AnswerRow, category: str) -> str:
    stated = stated_part(without_filler(sentence.text))
    if not _holds(stated, row.object):
        return "question"
    if is_joke(sentence.text, sentence.following):
        return "joke"
    binds = category in _BINDING
    doubt = why_no_statement(stated)
    if doubt and not (binds and doubt == "condition"):
        return doubt
    own = stated
    for start, end in reversed(sentence.quotes):
        own = own[:start] + own[end:]
    if not binds and not _FIRST_PERSON.search(own):
        return "not_first_person"
    if any(_holds(stated[start:end], row.object) for start, end in sentence.quotes) and not _names(row):
        return "quoted"
    return _why_not_clause(stated, row, category)


def _why_not_clause(stated: str, row: AnswerRow, category: str) -> str:
    """The same for the clause that holds the row's object; an object that spans several has the whole sentence."""
    clauses = [clause.text for clause in clauses_of(stated)]
    at = next((index for index, clause in enumerate(clauses) if _holds(clause, row.object)), -1)
    clause = clauses[at] if at >= 0 else stated
    is_doubted = doubtful(clauses)[at] if at >= 0 else is_doubtful(stated)
    if is_doubted and category not in _BINDING:
        return "hedged"
    if category != "family" and _is_of_other(clause):
        return "other_person"
    if row.retracts:
        return "" if _ENDS.search(stated) else "not_taken_back"
    is_denied = (
        _DENIES.search(clause) and not _holds(row.relation.replace("_", " "), "not") and category not in _BINDING
    )
    return "negated" if is_denied and row.relation not in _NEGATIVE else ""


def _names(row: AnswerRow) -> bool:
    """Titles stand in quotation marks and are meant all the same."""
    return row.relation.startswith("favorite")


def _is_of_other(clause: str) -> bool:
    """Whether a clause is about somebody else."""
    if _WIDE.search(clause):
        return bool(_OTHERS_WIDE.match(clause.strip()))
    return bool(_OTHERS.match(clause[without_lead(clause) :]))


def _holds(text: str, named: str) -> bool:
    """Whether the words of ``named`` are in ``text`` in their order; ideographs in a row, small words left out."""
    folded, wanted = _folded(text), _folded(named)
    if _WIDE.search(wanted):
        return "".join(wanted.split()) in "".join(folded.split())
    content = [word for word in _words(wanted) if word not in _EMPTY] or list(_words(wanted))
    there = iter(_words(folded))
    return bool(content) and all(word in there for word in content)


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
