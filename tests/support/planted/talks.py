"""Long conversations with planted statements near their beginning, and other people's talk after them."""

import json
import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, repeat
from typing import Any

from tests.support.compaction import DATA
from tests.support.planted.filler import SAMPLES
from tests.support.planted.wordings import Planted

Said = dict[str, Any]
"""One turn as it is published: role, content, perhaps name and ts."""

_ACKNOWLEDGED = ("Noted.", "All right.", "Thank you, I have that.", "好的，记下了。", "Understood.")
_PIECE = 14
"""Turns of one conversation before another goes on."""
_AT_ONCE = 3
"""Conversations that take turns."""


def talk_with(planted: Sequence[Planted], seed: int) -> Iterator[Said]:
    """An endless conversation: an exchange about nothing, ``planted`` with their corrections, then filler."""
    rng = random.Random(seed)
    filler = _filler(rng)
    yield from _exchange("Hello, I have a few things to sort out today.", "Of course, go ahead.")
    order = list(planted)
    rng.shuffle(order)
    for one in order:
        yield from _exchange(one.said, rng.choice(_ACKNOWLEDGED))
        if one.corrected:
            yield from _exchange(rng.choice(_BETWEEN), "Sure.")
            yield from _exchange(one.corrected, rng.choice(_ACKNOWLEDGED))
    yield from filler


_BETWEEN = (
    "Could you also look at the weather for me?",
    "Let me think about the rest for a moment.",
    "顺便问一下，最近有什么好看的电影吗？",
    "I am making some coffee, one second.",
)


def _exchange(said: str, answer: str) -> Iterator[Said]:
    yield {"role": "user", "content": said}
    yield {"role": "assistant", "content": answer}


def _filler(rng: random.Random) -> Iterator[Said]:
    """Pieces of a few conversations at a time by turns, each whole in the end, over and over."""
    while True:
        waiting = [list(one) for one in _conversations()]
        rng.shuffle(waiting)
        running = [_pieces(one) for one in waiting[:_AT_ONCE]]
        later = waiting[_AT_ONCE:]
        while running:
            source = running.pop(0)
            piece = next(source, None)
            if piece is not None:
                running.append(source)
                yield from piece
            elif later:
                running.append(_pieces(later.pop()))


def _pieces(turns: Sequence[Said]) -> Iterator[list[Said]]:
    """Runs of turns, the next beginning with plain words of the user: a call is never cut from its results."""
    piece: list[Said] = []
    for turn in turns:
        if len(piece) >= _PIECE and turn["role"] == "user" and _is_plain(turn):
            yield piece
            piece = []
        piece.append(turn)
    yield piece


def _is_plain(turn: Said) -> bool:
    return isinstance(turn["content"], str) or all(block["type"] == "text" for block in turn["content"])


@cache
def _conversations() -> tuple[tuple[Said, ...], ...]:
    """The development conversations; short ones of our own where there are none."""
    files = sorted(DATA.glob("*.jsonl"))
    if not files:
        return tuple(tuple(chain.from_iterable(repeat(one, 20))) for one in SAMPLES)
    return tuple(tuple(_said(json.loads(line)) for line in path.read_text().splitlines()) for path in files)


def _said(line: dict[str, Any]) -> Said:
    return {key: line[key] for key in ("role", "content", "name", "ts") if line.get(key) and (key != "role")} | {
        "role": line["role"]
    }
