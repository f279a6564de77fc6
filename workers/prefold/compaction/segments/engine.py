"""The ``anthropic`` engine: segments from source turns, once, in parallel; their texts in order; the oldest merged.

What is made is kept as it is made. So a build that fails, or whose worker dies, leaves to the next one only what is
still missing. ``planning`` says what is made, ``tree`` what stands and what is merged, ``asking`` how
an answer is got; this module runs the calls.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import orjson

from prefold.compaction.engine import Summary, SummaryInput
from prefold.compaction.gate.checks import GateSource
from prefold.compaction.gate.refusals import GateRefusedError
from prefold.compaction.lease import LeaseLostError
from prefold.compaction.segments.asking import Answered, Asker, AsksModels, Question, read_written
from prefold.compaction.segments.plain import WritesPlainly, plain_sections
from prefold.compaction.segments.planning import (
    Piece,
    Run,
    SentTurn,
    halves_of,
    known_pieces,
    merged_hash,
    plan_segments,
    source_hash,
)
from prefold.compaction.segments.prompt import PROMPT_VERSION, merge_prompt, new_nonce, segment_prompt
from prefold.compaction.segments.source import SentTurns, parts_of
from prefold.compaction.segments.texts import JOINT_TOKENS, fitted, joined, sections_together
from prefold.compaction.segments.transcript import render_transcript
from prefold.compaction.segments.tree import LEAST_TEXT, Node, Place, choose_nodes, leaf_cap
from prefold.compaction.segments.written import parse_written, render
from prefold.errors import RefusedError, TransientError
from prefold.messages.errors import AnswerRefusedError, InputTooLongError
from prefold.storage.types import BuildTicket, SessionRef, StoredSegment, StoredTurn
from prefold.tokens import TokenCounter

T = TypeVar("T")

LEAST_CAP = 200
"""Tokens below which several texts do not fit side by side; the session is left to the extractive engine."""
_OVERSHOOT = 1.25
"""Models count badly: the gate lets through a quarter more than what was asked for, so that less is asked for."""
_LEAST_PART_TOKENS = 400
"""What is too long for the model although it is smaller than this will not fit in halves either."""


class SegmentStorage(Protocol):
    """What the engine needs of ``prefold.storage.Sessions``; see there."""

    async def read_segments(self, ref: SessionRef) -> list[StoredSegment]: ...
    async def keep_segment(self, ticket: BuildTicket, segment: StoredSegment) -> bool: ...


class PrefixSource(Protocol):
    """Summaries by a call that repeats the chat's own prompt prefix.

    ``segment`` answers with what the model wrote of turns ``first_seq`` to ``last_seq``, in the form that
    ``parse_written`` reads, of about ``cap_tokens``; it is held against its source like any other. None: the turns do
    not stand in the context as they were said, or the session has no such prefix: they are asked for in chunks.
    It notes its calls in ``wanted.tally`` and raises what ``Messages.ask`` does.
    """

    async def segment(self, wanted: SummaryInput, first_seq: int, last_seq: int, cap_tokens: int) -> str | None: ...

    def refused(self, ref: SessionRef) -> None:
        """What ``segment`` gave last could not be used."""


@dataclass(frozen=True, slots=True)
class _Session:
    """One build's source and what is stored for it."""

    wanted: SummaryInput
    sent: tuple[SentTurn, ...]
    stored: tuple[StoredSegment, ...]

    def turns(self, run: Run) -> tuple[StoredTurn, ...]:
        return self.wanted.turns[run.start : run.end]


class SegmentedSummarizer:
    """See ``Summarizer``. One for a process; nothing of a session stays here but sizes and digests of its turns."""

    name = "anthropic"

    def __init__(
        self,
        messages: AsksModels,
        storage: SegmentStorage,
        counter: TokenCounter,
        *,
        chunk_tokens: int,
        most_output_tokens: int,
        prefix: PrefixSource | None = None,
        plain: WritesPlainly | None = None,
    ) -> None:
        """``plain`` writes what no answer could be got for; None: such a build is refused as a whole."""
        self._storage = storage
        self._counter = counter
        self._chunk_tokens = chunk_tokens
        self._prefix = prefix
        self._plain = plain
        self._asker = Asker(messages, counter, most_output_tokens)
        self._sent = SentTurns(counter)
        self.prompt_version = f"{PROMPT_VERSION} {messages.model}"

    async def summarize(self, wanted: SummaryInput) -> Summary:
        """Raises ``LeaseLostError`` as well, when the ticket turned out to be void."""
        if not wanted.turns or wanted.cap_tokens < LEAST_CAP:
            raise RefusedError("too little room, or nothing said", code="summary_room")
        stored = await self._storage.read_segments(wanted.ref)
        sent = await asyncio.to_thread(self._sent.of, wanted.ref, wanted.turns)
        session = _Session(wanted, sent, tuple(stored))
        leaves = await self._leaves(session)
        if all(reasons := [_because(leaf) for leaf in leaves]):
            raise RefusedError("nothing that the model wrote could be used", code=reasons[-1])
        nodes = await self._nodes(session, leaves)
        return await asyncio.to_thread(self._summary, wanted, leaves, nodes)

    async def _leaves(self, session: _Session) -> list[StoredSegment]:
        """Segments of level 0 that stand for every turn."""
        known = known_pieces(session.sent, session.stored, self.prompt_version)
        if self._prefix is not None and known and isinstance(known[-1], Run):
            made = await self._by_prefix(session, known[-1], len(known))
            known = known if made is None else [*known[:-1], made]
        pieces = plan_segments(session.sent, known, self._chunk_tokens)
        runs = await _together([self._piece(session, piece, len(pieces)) for piece in pieces])
        return [segment for run in runs for segment in run]

    async def _piece(self, session: _Session, piece: Piece, leaves: int) -> list[StoredSegment]:
        if isinstance(piece, Run):
            return await self._run(session, piece, leaves)
        session.wanted.tally.reused += 1
        return [piece]

    async def _run(self, session: _Session, run: Run, leaves: int) -> list[StoredSegment]:
        """The segment of ``run``, or more where it is too long for the model. ``leaves``: how many there will be."""
        tokens = sum(one.tokens for one in session.sent[run.start : run.end])
        cap = leaf_cap(tokens, leaves, session.wanted.cap_tokens) - JOINT_TOKENS
        try:
            return await self._asked(session, run, leaves, tokens, cap)
        except (AnswerRefusedError, GateRefusedError) as error:
            if self._plain is None:
                raise
            turns = session.turns(run)
            sections = await asyncio.to_thread(plain_sections, self._plain, session.wanted, turns, cap)
            return [await self._keep_leaf(session, run, Answered(sections, 0, because=error.code), cap)]

    async def _asked(self, session: _Session, run: Run, leaves: int, tokens: int, cap: int) -> list[StoredSegment]:
        turns, wanted = session.turns(run), session.wanted
        try:
            answered = await self._parts(wanted, turns, tokens, cap, self._chunk_tokens)
        except InputTooLongError:
            halves = halves_of(session.sent, run)
            if halves is not None:
                both = await _together([self._run(session, half, leaves + 1) for half in halves])
                return [segment for half in both for segment in half]
            answered = await self._smaller(wanted, turns, tokens, cap, min(tokens, self._chunk_tokens) // 2)
        return [await self._keep_leaf(session, run, answered, cap)]

    async def _smaller(
        self, wanted: SummaryInput, turns: Sequence[StoredTurn], tokens: int, cap: int, most: int
    ) -> Answered:
        """As ``_parts``, with less and less in each call while that is too long for the model."""
        if most < _LEAST_PART_TOKENS:
            raise InputTooLongError(f"{tokens} tokens of source, and {2 * most} in one call are too many")
        try:
            return await self._parts(wanted, turns, tokens, cap, most)
        except InputTooLongError:
            return await self._smaller(wanted, turns, tokens, cap, most // 2)

    async def _parts(
        self, wanted: SummaryInput, turns: Sequence[StoredTurn], tokens: int, cap: int, most: int
    ) -> Answered:
        """``turns`` in as few calls as ``most`` tokens of source in each allow, the answers section by section."""
        if tokens <= most:
            return await self._part(wanted, turns, cap)
        parts = await asyncio.to_thread(parts_of, turns, most, self._counter)
        share = max(LEAST_TEXT, cap // len(parts))
        return Answered.together(await _together([self._part(wanted, part, share) for part in parts]))

    async def _part(self, wanted: SummaryInput, turns: Sequence[StoredTurn], cap: int) -> Answered:
        asked = max(1, int(cap / _OVERSHOOT))
        transcript = await asyncio.to_thread(render_transcript, turns)
        source = GateSource(turns, wanted.language, asked, sum(turn.tokens for turn in turns))

        def prompt(refused: str) -> Any:
            return segment_prompt(transcript, wanted.language, asked, new_nonce(), refused=refused)

        return await self._asker.answer(wanted, Question("segment", prompt, source))

    async def _by_prefix(self, session: _Session, run: Run, leaves: int) -> StoredSegment | None:
        """The segment of ``run``, by the chat's own prefix; None: not in this way."""
        assert self._prefix is not None
        wanted, turns = session.wanted, session.turns(run)
        tokens = sum(one.tokens for one in session.sent[run.start : run.end])
        cap = leaf_cap(tokens, leaves, wanted.cap_tokens)
        asked = int((cap - JOINT_TOKENS) / _OVERSHOOT)
        source = GateSource(turns, wanted.language, asked, sum(turn.tokens for turn in turns))
        try:
            text = await self._prefix.segment(wanted, turns[0].seq, turns[-1].seq, asked)
            if text is None:
                return None
            written = await asyncio.to_thread(read_written, text, source)
        except (AnswerRefusedError, GateRefusedError, InputTooLongError) as error:
            if isinstance(error, GateRefusedError):
                self._prefix.refused(wanted.ref)
            wanted.tally.refused.append(error.code)
            return None
        answered = Answered(written.sections, written.dropped, request_ids=tuple(wanted.tally.request_ids[-1:]))
        return await self._keep_leaf(session, run, answered, cap - JOINT_TOKENS)

    async def _keep_leaf(self, session: _Session, run: Run, answered: Answered, cap: int) -> StoredSegment:
        turns = session.sent[run.start : run.end]
        session.wanted.tally.made += 1
        span = (turns[0].seq, turns[-1].seq)
        source_tokens = sum(turn.raw_tokens for turn in turns)
        return await self._keep(session.wanted, 0, span, source_hash(turns), answered, cap, source_tokens)

    async def _keep(
        self,
        wanted: SummaryInput,
        level: int,
        span: tuple[int, int],
        hashed: str,
        answered: Answered,
        cap: int,
        source_tokens: int,
    ) -> StoredSegment:
        text, tokens = await asyncio.to_thread(self._fitted, answered, wanted.language, cap)
        segment = StoredSegment(
            level=level,
            first_seq=span[0],
            last_seq=span[1],
            source_hash=hashed,
            prompt_version=self.prompt_version,
            text=text,
            tokens=tokens,
            source_tokens=source_tokens,
            record=_record(wanted, answered),
        )
        if not await self._storage.keep_segment(wanted.ticket, segment):
            raise LeaseLostError
        return segment

    def _fitted(self, answered: Answered, language: str, cap: int) -> tuple[str, int]:
        """The text within its cap, and its tokens."""
        text = render(fitted(answered.sections, language, cap, self._counter), language)
        return text, self._counter.count(text)

    async def _nodes(self, session: _Session, leaves: Sequence[StoredSegment]) -> list[StoredSegment]:
        """The segments that stand in the summary, those merged that have to be."""
        made = _merged_of(leaves, session.stored, self.prompt_version)
        chosen = await asyncio.to_thread(
            choose_nodes,
            [one.tokens + JOINT_TOKENS for one in leaves],
            {place: one.tokens + JOINT_TOKENS for place, one in made.items()},
            session.wanted.cap_tokens,
        )
        session.wanted.tally.reused += sum(node.level > 0 and not node.parts for node in chosen)
        return await _together([self._node(session.wanted, node, leaves, made) for node in chosen])

    async def _node(
        self,
        wanted: SummaryInput,
        node: Node,
        leaves: Sequence[StoredSegment],
        made: Mapping[Place, StoredSegment],
    ) -> StoredSegment:
        if not node.parts:
            return made[node.place] if node.level else leaves[node.start]
        parts = await _together([self._node(wanted, part, leaves, made) for part in node.parts])
        cap = max(1, node.tokens - JOINT_TOKENS)
        asked = max(1, int(cap / _OVERSHOOT))
        texts = [(part.first_seq, part.last_seq, part.text) for part in parts]
        source_tokens = sum(part.source_tokens for part in parts)
        source = GateSource((), wanted.language, asked, source_tokens, [part.text for part in parts])

        def prompt(refused: str) -> Any:
            return merge_prompt(texts, wanted.language, asked, new_nonce(), refused=refused)

        try:
            answered = await self._asker.answer(wanted, Question("merge", prompt, source))
        except (AnswerRefusedError, GateRefusedError) as error:
            if self._plain is None:
                raise
            told = [parse_written(part.text, wanted.language).sections for part in parts]
            answered = Answered(sections_together(told), 0, because=error.code)  # its lines, as many as fit
        wanted.tally.merged += 1
        span = (parts[0].first_seq, parts[-1].last_seq)
        return await self._keep(wanted, node.level, span, _hash_of(leaves, node), answered, cap, source_tokens)

    def _summary(
        self, wanted: SummaryInput, leaves: Sequence[StoredSegment], nodes: Sequence[StoredSegment]
    ) -> Summary:
        parts = [(one.first_seq, one.last_seq, parse_written(one.text, wanted.language).sections) for one in nodes]
        text = joined(parts, wanted.language)
        sections = sections_together([sections for _, _, sections in parts])
        covered = (leaves[0].first_seq, leaves[-1].last_seq)
        return Summary(sections, text, self._counter.count(text), covered)


def _record(wanted: SummaryInput, answered: Answered) -> str:
    known = {"language": wanted.language, "models": answered.models, "request_ids": answered.request_ids}
    plain = {"because": answered.because} if answered.because else {}
    return orjson.dumps({**known, "dropped_lines": answered.dropped, **plain}).decode()


def _because(segment: StoredSegment) -> str:
    """Why it is no model's; empty: it is."""
    because: str = orjson.loads(segment.record).get("because", "")
    return because


def _merged_of(
    leaves: Sequence[StoredSegment], stored: Sequence[StoredSegment], prompt_version: str
) -> dict[Place, StoredSegment]:
    """Stored merged segments that stand for a row of ``leaves`` as they are now."""
    starts = {leaf.first_seq: index for index, leaf in enumerate(leaves)}
    ends = {leaf.last_seq: index + 1 for index, leaf in enumerate(leaves)}
    found: dict[Place, StoredSegment] = {}
    for one in stored:
        start, end = starts.get(one.first_seq), ends.get(one.last_seq)
        if not one.level or one.prompt_version != prompt_version or start is None or end is None or end <= start:
            continue
        if one.source_hash == merged_hash(leaf.source_hash for leaf in leaves[start:end]):
            found[one.level, start, end] = one
    return found


def _hash_of(leaves: Sequence[StoredSegment], node: Node) -> str:
    return merged_hash(leaf.source_hash for leaf in leaves[node.start : node.end])


async def _together(works: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """What they return. All of them end first, so that what can be made is; then the gravest failure is raised.

    A refusal before a failure that may pass: waiting would not help. Anything that is neither before both.
    """
    ended = await asyncio.gather(*works, return_exceptions=True)
    failures = [one for one in ended if isinstance(one, BaseException)]
    if failures:
        raise min(failures, key=_gravity)
    return [one for one in ended if not isinstance(one, BaseException)]


def _gravity(error: BaseException) -> int:
    if isinstance(error, TransientError):
        return 3
    return 2 if isinstance(error, InputTooLongError) else 1 if isinstance(error, RefusedError) else 0
