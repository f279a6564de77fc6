"""The segmenting engine without a server: a model that is one of the fake's brains, and a storage in memory."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from prefold.compaction.segments.engine import PrefixSource, SegmentedSummarizer
from prefold.compaction.segments.plain import WritesPlainly
from prefold.messages.asking import Ask, Reply
from prefold.storage.types import BuildTicket, ModelUsage, SessionRef, StoredSegment
from prefold.tokens import load_counter
from tests.support.messages_api import Answer, Wanted
from tests.support.messages_api.brains import brain_called
from tests.support.messages_api.catalogue import MODELS

Fails = Callable[[Ask, int], Exception | None]
"""Of a call and its number, from 1: what it raises instead of an answer."""


@dataclass
class BrainMessages:
    """``Messages`` without a network. Keeps every question."""

    brain: str = "faithful"
    fails: Fails | None = None
    model: str = "claude-haiku-5-5"
    fallback_model: str | None = None
    brains: dict[str, str] = field(default_factory=dict)
    """Of models that have another brain."""
    asked: list[Ask] = field(default_factory=list)

    async def ask(self, ask: Ask) -> Reply:
        self.asked.append(ask)
        error = self.fails(ask, len(self.asked)) if self.fails else None
        if error is not None:
            raise error
        model = ask.model or self.model
        answer = brain_called(self.brains.get(model, self.brain))(self._wanted(ask))
        assert isinstance(answer, (str, Answer))
        text = answer if isinstance(answer, str) else str(answer.blocks[0].get("text", ""))
        usage = ModelUsage(calls=1, input_tokens=ask.input_tokens, output_tokens=load_counter().count(text))
        return Reply(text, model, f"req_{len(self.asked)}", usage, 0.0)

    def _wanted(self, ask: Ask) -> Wanted:
        body = {"messages": ask.messages, "system": ask.system, "max_tokens": ask.max_tokens}
        return Wanted(body, MODELS["claude-haiku-5-5"], ask.input_tokens, len(self.asked))

    @property
    def sent_tokens(self) -> int:
        """Of all questions, instructions included."""
        return sum(ask.input_tokens for ask in self.asked)

    def of(self, purpose: str) -> list[Ask]:
        return [ask for ask in self.asked if ask.purpose == purpose]


@dataclass
class MemorySegments:
    """Segments as Redis keeps them."""

    kept: dict[tuple[int, int, int], StoredSegment] = field(default_factory=dict)
    is_void: bool = False
    """The ticket of whoever asks now is worth nothing."""

    async def read_segments(self, ref: SessionRef) -> list[StoredSegment]:
        return sorted(self.kept.values(), key=lambda one: (one.first_seq, one.level, one.last_seq))

    async def keep_segment(self, ticket: BuildTicket, segment: StoredSegment) -> bool:
        if self.is_void:
            return False
        assert segment.last_seq <= ticket.covers_to
        self.kept[segment.level, segment.first_seq, segment.last_seq] = segment
        return True

    def change(self, seq: int) -> None:
        """What an edit or removal of turn ``seq`` does."""
        self.kept = {place: one for place, one in self.kept.items() if one.last_seq < seq}

    def of_level(self, level: int) -> Sequence[StoredSegment]:
        return [one for one in self.kept.values() if one.level == level]


class ManySegments:
    """Those of any number of sessions."""

    def __init__(self) -> None:
        self._of: defaultdict[SessionRef, MemorySegments] = defaultdict(MemorySegments)

    async def read_segments(self, ref: SessionRef) -> list[StoredSegment]:
        return await self._of[ref].read_segments(ref)

    async def keep_segment(self, ticket: BuildTicket, segment: StoredSegment) -> bool:
        return await self._of[ticket.ref].keep_segment(ticket, segment)


def segmented(
    messages: Any,
    storage: Any,
    *,
    chunk_tokens: int = 60_000,
    prefix: PrefixSource | None = None,
    plain: WritesPlainly | None = None,
) -> SegmentedSummarizer:
    """The engine on top of stand-ins."""
    return SegmentedSummarizer(
        messages,
        storage,
        load_counter(),
        chunk_tokens=chunk_tokens,
        most_output_tokens=8_000,
        prefix=prefix,
        plain=plain,
    )
