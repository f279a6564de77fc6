"""The conversation that every side is given."""

import random
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from bench.paced.words import turns_of

PLANTED = (
    ("My booking number is KX-48213.", "KX-48213"),
    ("Write to me at mara.lindqvist@fjordmail.example, please.", "mara.lindqvist@fjordmail.example"),
    ("I am allergic to walnuts.", "walnuts"),
    ("The budget is 1,340 EUR and not a cent more.", "1,340 EUR"),
    ("We arrive on 17 October.", "17 October"),
    ("The deposit went to account DE-7719-0042.", "DE-7719-0042"),
    ("Never call me before 11 in the morning.", "before 11"),
    ("The room has to be on the ground floor.", "ground floor"),
)
"""What the user says early, and the words that have to be in the last context."""
_TURN_TOKENS = (60, 160)


class Exchange(NamedTuple):
    user: str
    assistant: str


def exchanges(count: int, seed: int) -> list[Exchange]:
    """``count`` exchanges; the planted sentences stand in the second to the ninth."""
    words = turns_of(f"side by side {seed}", _TURN_TOKENS)
    talk = list(islice(_pairs(words), count))
    planted = list(PLANTED)
    random.Random(seed).shuffle(planted)
    for place, (sentence, _) in enumerate(planted, 1):
        talk[place] = Exchange(sentence, "Noted.")
    return talk


def kept(context: str) -> int:
    """How many of the planted words a context still has."""
    return sum(words in context for _, words in PLANTED)


def _pairs(turns: Iterator[dict[str, str]]) -> Iterator[Exchange]:
    while True:
        yield Exchange(next(turns)["content"], next(turns)["content"])
