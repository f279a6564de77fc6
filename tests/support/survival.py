"""How much of what questions ask for is still in a text that stands for a conversation."""

import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from prefold.compaction.reading.turns import TurnReading

_WORD = re.compile(r"[a-z0-9_./$%:-]*[a-z0-9_%]|[\u4e00-\u9fff\u3040-\u30ff]+")
_WIDE = re.compile(r"[\u3040-\u9fff]")
_STOP = frozenset(
    """a an the of in on at to for and or is are was were be been i you he she it they we my your his her their our with by
    from as that this do does did what when where who how which not no yes so if then than about into over""".split()
)
_KEPT = 0.8
"""Share of a sentence's weight that must be there for the sentence to count as kept."""
_LINE_TOKENS = 6


@dataclass(frozen=True)
class Survival:
    """Shares from 0 to 1; None where no question asks for it."""

    answers: float | None
    """Of the words of the answers, by rarity."""
    evidence: float | None
    """Of the sentences of the evidence turns that the questions are about."""
    exact: float | None
    """Of short answers that the evidence has word for word."""
    asked: tuple[int, int, int] = (0, 0, 0)
    """How many questions stand behind each share."""


class Quiz:
    """The questions on one conversation, ready to be asked of any text."""

    def __init__(
        self, readings: Sequence[TurnReading], seqs: dict[str, int], questions: Iterable[dict[str, Any]]
    ) -> None:
        self._readings = {reading.seq: reading for reading in readings}
        self._words = {reading.seq: set(words(_text(reading))) for reading in readings}
        spread = Counter(word for said in self._words.values() for word in said)
        self._weights = {word: math.log(1 + len(self._words) / count) for word, count in spread.items()}
        self._answers: list[dict[str, float]] = []
        self._evidence: list[dict[str, float]] = []
        self._exact: list[str] = []
        for question in questions:
            evidence = [seqs[one] for one in question["evidence"] if one in seqs]
            self._take(question, evidence)

    def _take(self, question: dict[str, Any], evidence: list[int]) -> None:
        answer, asked = question.get("answer"), set(words(question["question"]))
        said = set().union(*(self._words[seq] for seq in evidence))
        if answer is not None:
            wanted = [word for word in words(str(answer)) if word not in asked] or words(str(answer))
            if weighed := self._weighed(word for word in wanted if word in said):
                self._answers.append(weighed)
            short = " ".join(str(answer).lower().split())
            if len(short) < 60 and short in " ".join(_text(self._readings[seq]).lower() for seq in evidence):
                self._exact.append(short)
        about = asked | set(words(str(answer or "")))
        for seq in evidence:
            if best := self._best_sentence(seq, about):
                self._evidence.append(best)

    def _best_sentence(self, seq: int, about: set[str]) -> dict[str, float]:
        sentences = [self._weighed(words(unit.text)) for unit in self._readings[seq].units]
        return max(sentences, key=lambda one: sum(one[word] for word in about & one.keys()), default={})

    def _weighed(self, said: Iterable[str]) -> dict[str, float]:
        return {word: self._weights.get(word, 1.0) for word in said}

    def survival(self, text: str) -> Survival:
        """What of it ``text`` still has."""
        have, folded = set(words(text)), " ".join(text.lower().split())

        def share(wanted: dict[str, float]) -> float:
            return sum(weight for word, weight in wanted.items() if word in have) / sum(wanted.values())

        return Survival(
            _mean([share(one) for one in self._answers]),
            _mean([float(share(one) >= _KEPT) for one in self._evidence]),
            _mean([float(one in folded) for one in self._exact]),
            (len(self._answers), len(self._evidence), len(self._exact)),
        )


def words(text: str) -> list[str]:
    """Content words without their commonest endings; pairs of ideographs."""
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        if _WIDE.match(word):
            found += [word[at : at + 2] for at in range(max(1, len(word) - 1))]
        elif word not in _STOP:
            found.append(re.sub(r"(ing|ed|es|s)$", "", word) if word.isalpha() and len(word) > 4 else word)
    return found


def sentences_in_order(readings: Sequence[TurnReading], budget: int, order: str) -> str:
    """A baseline: sentences from the front, from the end, or at random, as many as ``budget`` tokens hold."""
    offered = [(reading, unit) for reading in readings if reading.role != "system" for unit in reading.units]
    indexes = list(range(len(offered)))
    if order == "last":
        indexes.reverse()
    elif order != "lead":
        random.Random(order).shuffle(indexes)
    chosen: dict[int, str] = {}
    turns: set[int] = set()
    for index in indexes:
        reading, unit = offered[index]
        cost = unit.tokens + (1 if reading.seq in turns else _LINE_TOKENS)
        if cost > budget:
            if order in ("lead", "last"):
                break
            continue
        chosen[index] = f"[{reading.seq} {reading.speaker}] {unit.text}"
        turns.add(reading.seq)
        budget -= cost
    return "\n".join(chosen[index] for index in sorted(chosen))


def _text(reading: TurnReading) -> str:
    return " ".join(unit.text for unit in reading.units)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
