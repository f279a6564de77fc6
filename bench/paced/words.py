"""What the sessions say: sentences of the project's sample, in an order of their own."""

import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from bench.reduction.sources import SAMPLE
from prefold.replay.reading import read_conversation
from prefold.tokens import load_counter

_SENTENCE = re.compile(r"[^.!?\n]{15,300}[.!?]")


@cache
def sentences() -> tuple[tuple[str, int], ...]:
    """Sentences and their tokens."""
    count = load_counter().count
    texts = (turn.published["content"] for turn in read_conversation(SAMPLE))
    found = {one.strip() for text in texts if isinstance(text, str) for one in _SENTENCE.findall(text)}
    return tuple((one, count(one)) for one in sorted(found))


def turns_of(seed: str, tokens: tuple[int, int]) -> Iterator[dict[str, Any]]:
    """Turns without end, user and assistant by turns, each with an id."""
    source = random.Random(f"words {seed}")
    number = 0
    while True:
        wanted, said = source.randint(*tokens), list[str]()
        while wanted > 0:
            one, count = source.choice(sentences())
            said.append(one)
            wanted -= count
        role = "assistant" if number % 2 else "user"
        yield {"id": f"t{number}", "role": role, "content": " ".join(said)}
        number += 1
