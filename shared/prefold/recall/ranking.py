"""From candidates to turns in order.

    score = cos + 0.8 (share of the words reached by the turn + by its window) / 2
          + the better neighbour's score, the speaker, the date, the sitting, the user: see ``weights``

A window is a turn with the two before and the one after it: an answer often has none of the words of its question.
It is computed here, from the neighbours' own words, and stored nowhere: a turn that is edited or erased so leaves
nothing behind in what is stored of its neighbours.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from prefold.recall.fuse import WordScale
from prefold.recall.matrix import WordMatrix
from prefold.recall.question import Question
from prefold.recall.retrieval import Candidate
from prefold.recall.weights import RECIPE, Weights

BEFORE: Final = 2
AFTER: Final = 1
_STEPS: Final = np.array([*range(-BEFORE, 0), *range(1, AFTER + 1)], dtype=np.int64)
_SITTING_MS: Final = 86_400_000
"""Turns of one session, said on one day (UTC), are one sitting."""

_FIRST_HAND: Final = ("user", "tool", "call")
"""What the user or a tool said, and what was done, not what the assistant made of it."""

Floats = NDArray[np.float32]


class Said:
    """Who said the candidates and when, a list each. Read as they come."""

    __slots__ = ("_numbers", "seqs", "sittings", "speakers", "voices")

    def __init__(self, candidates: Sequence[Candidate] = ()) -> None:
        self.sittings: list[int] = []
        """A number a sitting, below the number of all candidates."""
        self.seqs: list[int] = []
        self.voices: list[str] = []
        self.speakers: list[tuple[int, ...]] = []
        self._numbers: dict[Any, int] = {}
        self.add(candidates)

    def add(self, candidates: Sequence[Candidate]) -> None:
        """As the payloads tell."""
        numbers = self._numbers
        for one in candidates:
            payload = one.payload
            self.sittings.append(numbers.setdefault(_sitting(payload), len(numbers)))
            self.seqs.append(payload["seq"])
            self.voices.append(payload.get("voice") or payload["role"])
            self.speakers.append(tuple(payload.get("speaker") or ()))


class Ranking:
    """Scores the candidates of one search. What lies beside a candidate counts as far as it is a candidate, too."""

    def __init__(
        self,
        question: Question,
        candidates: Sequence[Candidate],
        words: WordMatrix,
        scale: WordScale,
        weights: Weights = RECIPE,
        said: Said | None = None,
    ) -> None:
        """``words``: the candidates', for the question's. ``said``: theirs, where it is known already."""
        self._question = question
        self._candidates = candidates
        self._weights = weights
        self._scale = scale
        self._words = words
        said = said or Said(candidates)
        self._sittings = np.array(said.sittings, dtype=np.int64)
        self._voices, self._speakers = said.voices, said.speakers
        self._beside = _places(np.array(said.seqs, dtype=np.int64), self._sittings)

    def word_shares(self) -> Floats:
        """0..1 a candidate."""
        own = self._scale.shares(self._words.bm25)
        has_window = self._words.are_short | np.array([voice == "tool" for voice in self._voices], dtype=bool)
        around = self._scale.shares(self._words.windows(self._beside, has_window))
        weight = np.where(has_window, self._weights.window, 1 - self._weights.long)
        shares: Floats = (own * (1 - weight) + around * weight).astype(np.float32)
        return shares

    def scores(self, shares: Floats) -> Floats:
        """The fused score of each candidate."""
        if not self._candidates:
            return np.zeros(0, dtype=np.float32)
        cosines = np.array([one.cosine or 0.0 for one in self._candidates], dtype=np.float32)
        base = cosines + self._weights.words * shares
        total = base + self._weights.neighbour * self._best_beside(base)
        total += self._weights.speaker * self._said_by_named()
        total += self._weights.date * self._said_then()
        total += self._user_turns()
        fused: Floats = (total + self._weights.sitting * self._best_of_sitting(total)).astype(np.float32)
        return fused

    def _best_beside(self, base: Floats) -> Floats:
        padded = np.append(base, np.float32(0))
        best: Floats = np.maximum(padded[self._beside[:, BEFORE - 1]], padded[self._beside[:, BEFORE]])
        return np.maximum(best, 0)

    def _said_by_named(self) -> Floats | float:
        asked = set(self._question.words.indices)
        named = [speaker for speaker in set(self._speakers) if not asked.isdisjoint(speaker)]
        if len(named) != 1:
            return 0.0
        return np.array([speaker == named[0] for speaker in self._speakers], dtype=np.float32)

    def _said_then(self) -> Floats | float:
        dates = self._question.dates
        if not dates:
            return 0.0
        return np.array([any(date.fits(one.payload["ts"]) for date in dates) for one in self._candidates], np.float32)

    def _user_turns(self) -> Floats | float:
        if all(self._speakers):
            return 0.0
        voices = ["" if speaker else voice for voice, speaker in zip(self._voices, self._speakers, strict=True)]
        answers = self._words.are_short[[voice == "assistant" for voice in voices]]
        long = 1 - answers.mean() if len(answers) else 0.0
        weight = self._weights.user_short + (self._weights.user - self._weights.user_short) * long
        return np.array([weight if voice in _FIRST_HAND else 0.0 for voice in voices], dtype=np.float32)

    def _best_of_sitting(self, scores: Floats) -> Floats:
        best = np.zeros(len(scores))
        np.maximum.at(best, self._sittings, scores)
        most = best.max()
        return (best / most if most > 0 else best)[self._sittings].astype(np.float32)


def _sitting(payload: Mapping[str, Any]) -> Any:
    ts = payload["ts"]
    return payload["session"], payload["incarnation"], None if ts is None else ts // _SITTING_MS


def _places(seqs: NDArray[np.int64], sittings: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each candidate's neighbours stand: two before (further first), one after; -1 where there is none."""
    # One number a turn, with room for the steps between one sitting's numbers and the next one's.
    keys = sittings * (int(seqs.max(initial=0)) + BEFORE + AFTER + 1) + seqs
    order = keys.argsort()
    in_order = keys[order]
    wanted = keys[:, None] + _STEPS
    places = np.minimum(in_order.searchsorted(wanted), max(0, len(keys) - 1))
    return np.where(in_order[places] == wanted, order[places], -1) if len(keys) else places
