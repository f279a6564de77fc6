"""Source turns as the summarizer gets them: how large, by which digest, and one too large in pieces."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from math import ceil
from typing import Any

import msgspec

from prefold.compaction.reading.source import clean
from prefold.compaction.segments.planning import LEAST_RUN_TOKENS, SentTurn
from prefold.compaction.segments.transcript import render_transcript
from prefold.conversation.clipping import grapheme_start
from prefold.storage.types import SessionRef, StoredTurn
from prefold.tokens import TokenCounter

_MOST_KEPT = 200_000
"""About 30 MB."""
_LOOK_BACK = 2_000
_MARGIN = 0.9

_Key = tuple[SessionRef, int, int]


class SentTurns:
    """Sizes and digests of turns as sent. A turn is rendered once; of them only these two are kept. Safe in threads."""

    def __init__(self, counter: TokenCounter, most_kept: int = _MOST_KEPT) -> None:
        self._counter = counter
        self._most_kept = most_kept
        self._kept: OrderedDict[_Key, SentTurn] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, ref: SessionRef, turns: Iterable[StoredTurn]) -> tuple[SentTurn, ...]:
        """``turns``, in order."""
        return tuple(self._one(ref, turn) for turn in turns)

    def _one(self, ref: SessionRef, turn: StoredTurn) -> SentTurn:
        key = (ref, turn.seq, turn.revision)
        with self._lock:
            if found := self._kept.get(key):
                self._kept.move_to_end(key)
                return found
        sent = self._rendered(turn)
        with self._lock:
            self._kept[key] = sent
            while len(self._kept) > self._most_kept:
                self._kept.popitem(last=False)
        return sent

    def _rendered(self, turn: StoredTurn) -> SentTurn:
        text = render_transcript([turn]).text
        digest = sha256(text.encode()).hexdigest()[:32]
        return SentTurn(turn.seq, turn.revision, digest, self._counter.count(text), turn.tokens, turn.is_cut)


def parts_of(turns: Sequence[StoredTurn], most_tokens: int, counter: TokenCounter) -> list[list[StoredTurn]]:
    """``turns`` in lists of about one size, of at most ``most_tokens`` as sent and a crumb, in order.

    A turn over it comes in pieces. Nothing is left out but what a transcript clips of a tool's output, with its size said.
    """
    pieces = [piece for turn in turns for piece in _pieces_of(turn, most_tokens, counter)]
    sizes = [counter.count(render_transcript([piece]).text) for piece in pieces]
    target = sum(sizes) / max(1, ceil(sum(sizes) / most_tokens))
    parts: list[list[StoredTurn]] = []
    size = left = sum(sizes)
    for piece, tokens in zip(pieces, sizes, strict=True):
        is_over = size + tokens > most_tokens or size + tokens / 2 > target
        if not parts or (is_over and min(size, left) >= LEAST_RUN_TOKENS):
            parts.append([])
            size = 0
        parts[-1].append(piece)
        size, left = size + tokens, left - tokens
    return parts


def _pieces_of(turn: StoredTurn, most_tokens: int, counter: TokenCounter) -> list[StoredTurn]:
    """``turn``, or turns of its number that say one after the other what it says. Calls and results stay in the first."""
    tokens = counter.count(render_transcript([turn]).text)
    if tokens <= most_tokens:
        return [turn]
    blocks = _blocks(turn)
    said = "\n".join(clean(str(block.get("text", ""))) for block in blocks if block.get("type") == "text")
    rest = [block for block in blocks if block.get("type") != "text"]
    most_characters = max(1, int(_MARGIN * most_tokens * len(said) / tokens))
    slices = list(_slices(said, most_characters)) if said.strip() else []
    size = max(0, turn.tokens - counter.count(said))
    pieces = [replace(turn, content=_content(rest), tokens=size)] if rest else []
    for number, text in enumerate(slices, start=1):
        noted = f"[part {number} of {len(slices)} of this message] {text}"
        content = _content([{"type": "text", "text": noted}])
        pieces.append(replace(turn, content=content, tokens=counter.count(noted)))
    return pieces or [turn]


def _slices(text: str, most: int) -> Iterator[str]:
    """``text`` in pieces of at most ``most`` characters, cut at white space where there is any near."""
    start = 0
    while len(text) - start > most:
        end = start + most
        space = max(text.rfind(mark, max(start + 1, end - _LOOK_BACK), end) for mark in ("\n", " "))
        end = space + 1 if space > 0 else max(start + 1, grapheme_start(text, end))
        yield text[start:end]
        start = end
    yield text[start:]


def _blocks(turn: StoredTurn) -> list[dict[str, Any]]:
    try:
        blocks = msgspec.json.decode(b"[" + turn.content + b"]")
    except (msgspec.DecodeError, RecursionError):
        return [{"type": "text", "text": turn.content.decode(errors="replace")}]
    return [block for block in blocks if isinstance(block, dict)]


def _content(blocks: Sequence[dict[str, Any]]) -> bytes:
    return msgspec.json.encode(blocks)[1:-1]
