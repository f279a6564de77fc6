"""Whether a text carries what a question needs: the instruction or preference as a sentence, or the newest value.

No model judges. An instruction or a preference stands in a text when one sentence has ``_SENTENCE_SHARE`` of its
words; a value does when one sentence has its numbers and some words of the question.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from prefold.recall.stopwords import STOP_WORDS

__all__ = ["ABILITIES", "Needed", "needed"]

ABILITIES: Final = ("instruction_following", "preference_following", "knowledge_update")

_SENTENCE_SHARE = 0.6
_QUESTION_SHARE = 0.25
_LEAST_WORDS = 2
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_NUMBER = re.compile(r"\d[\d.,]*\d|\d")
_STATES = "LLM response should state:"


@dataclass(frozen=True, slots=True)
class Needed:
    """What an answer to one question has to rest on."""

    words: frozenset[str]
    least: int
    """So many of the words in one sentence."""
    numbers: frozenset[str] = frozenset()
    """All of them in that sentence."""

    def stands_in(self, text: str) -> bool:
        """True when one sentence of the text carries it."""
        return any(self._is_carried(sentence) for sentence in _SENTENCE_END.split(text))

    def _is_carried(self, sentence: str) -> bool:
        if not self.numbers <= set(_NUMBER.findall(sentence)):
            return False
        return len(self.words & words_of(sentence)) >= self.least


def needed(question: dict[str, Any], evidence: Sequence[str]) -> Needed | None:
    """Of a question of ``ABILITIES``, with the texts of its turns; None where they do not say what is asked for.

    An instruction or preference is asked of a context as clearly as its own turn says it, at most.
    """
    want = _needed(question)
    if want is None or any(want.stands_in(text) for text in evidence):
        return want
    said = max((len(want.words & words_of(text)) for turn in evidence for text in _SENTENCE_END.split(turn)), default=0)
    return None if want.numbers or said < _LEAST_WORDS else Needed(want.words, said)


def _needed(question: dict[str, Any]) -> Needed | None:
    tested = question.get("instruction_being_tested") or question.get("preference_being_tested")
    if tested:
        words = words_of(str(tested))
        return Needed(words, max(_LEAST_WORDS, round(_SENTENCE_SHARE * len(words))))
    stated = [line.partition(_STATES)[2] for line in question.get("rubric", ()) if line.startswith(_STATES)]
    numbers = frozenset(number for value in stated for number in _NUMBER.findall(value))
    words = words_of(str(question["question"]))
    least = max(_LEAST_WORDS, round(_QUESTION_SHARE * len(words)))
    return Needed(words, least, numbers) if numbers else None


def words_of(text: str) -> frozenset[str]:
    """Its words but for the commonest, without a plural's s."""
    return frozenset(_stems(match.group().lower() for match in _WORD.finditer(text)))


def _stems(words: Iterable[str]) -> Iterable[str]:
    return (
        word.removesuffix("s")
        for word in words
        if word.replace("'", "").replace("’", "") not in STOP_WORDS and not word.isdigit()
    )
