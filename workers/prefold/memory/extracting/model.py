"""Facts out of turns by a model. What it says is a suggestion: every row is held against what the user said.

Calls are bounded by tokens; one that fails, or whose answer is none, costs nothing but its rows: the rules' rows of
the same turns are there in any case.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import structlog

from prefold.compaction.reading.source import read_source
from prefold.compaction.segments.asking import AsksModels
from prefold.compaction.segments.prompt import new_nonce
from prefold.compaction.segments.transcript import render_transcript
from prefold.conversation.turns import TurnKind
from prefold.errors import PrefoldError, TransientError
from prefold.facts.relations import known
from prefold.facts.rows import Stated
from prefold.memory.extracting.answer import Answered, AnswerRow, read_answer
from prefold.memory.extracting.grounding import grounded
from prefold.memory.extracting.offline import MOST_SAID, extract_offline, source_of
from prefold.memory.extracting.prompt import facts_prompt
from prefold.memory.extracting.relations import category_of, relation_of
from prefold.memory.extracting.said import OwnSentence, own_sentences, said_at_ms
from prefold.messages.asking import Ask
from prefold.messages.errors import AnswerRefusedError
from prefold.storage.types import SessionRef, StoredTurn
from prefold.tokens import TokenCounter, load_counter

__all__ = ["Extraction", "ModelExtractor"]

log = structlog.get_logger(__name__)

CHUNK_TOKENS = 6_000
"""Of transcript in one call."""
MOST_OUTPUT_TOKENS = 4_000
_MOST_OTHER_CHARACTERS = 400
"""Of what somebody else says: context only."""
_MOST_OWN_CHARACTERS = 8_000
_LEAST_CONFIDENCE = 0.5
_SELF = frozenset({"", "user", "the user", "i", "me", "self", "myself", "speaker", "我", "用户", "human", "person"})


@dataclass(slots=True)
class Extraction:
    """What one pass found."""

    rows: list[Stated] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    """Rows of the model that were not taken, by reason."""
    calls: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    """Calls without a usable answer, by code."""
    is_away: bool = False
    """The model did not answer, and may later: what was not asked yet was left to the rules."""


class ModelExtractor:
    """Asks ``messages`` for facts, chunk by chunk. Any number of passes at once."""

    def __init__(
        self, messages: AsksModels, counter: TokenCounter | None = None, *, chunk_tokens: int = CHUNK_TOKENS
    ) -> None:
        self._messages = messages
        self._counter = counter or load_counter()
        self._chunk_tokens = chunk_tokens

    async def run(
        self,
        ref: SessionRef,
        turns: Sequence[StoredTurn],
        *,
        stored_at_ms: int = 0,
        before: Sequence[StoredTurn] = (),
    ) -> Extraction:
        """What the users of ``turns`` state about themselves, what was refused and what failed. A model makes it raise nothing.

        ``before``: turns right before these; they are read for what is being played, and are sent nowhere.
        """
        found = Extraction()
        said = await asyncio.to_thread(_by_turn, [*before, *turns])
        for chunk in await asyncio.to_thread(lambda: list(self._chunks(turns, said))):
            answered = await self._answer(ref, chunk, found)
            if answered is not None:
                rows = await asyncio.to_thread(_checked, answered, chunk, said, ref, stored_at_ms, found.refused)
                found.rows.extend(rows)
            if found.is_away:
                break
        seqs = {turn.seq for turn in turns}
        ruled = await asyncio.to_thread(extract_offline, [*before, *turns], ref, stored_at_ms=stored_at_ms)
        found.rows = together(found.rows, [row for row in ruled if row.source.seq in seqs])
        log.info(
            "facts_extracted",
            session=ref.session,
            rows=len(found.rows),
            calls=found.calls,
            refused=dict(found.refused),
            failed=dict(found.failed),
        )
        return found

    def _chunks(self, turns: Sequence[StoredTurn], said: dict[int, list[OwnSentence]]) -> Iterator["_Chunk"]:
        """Runs of turns within the bound, those left out in which no user says anything."""
        shown: list[tuple[StoredTurn, str]] = []
        size = 0
        for turn in turns:
            text = _shown(turn)
            tokens = self._counter.count(text)
            if shown and size + tokens > self._chunk_tokens:
                yield from _chunk(shown, said)
                shown, size = [], 0
            shown.append((turn, text))
            size += tokens
        yield from _chunk(shown, said)

    async def _answer(self, ref: SessionRef, chunk: "_Chunk", found: Extraction) -> Answered | None:
        for model in dict.fromkeys((None, self._messages.fallback_model)):
            found.calls += 1
            try:
                text = await self._asked(ref, chunk, model)
            except AnswerRefusedError as error:
                found.failed[error.code] += 1
                text = error.reply.text if error.reply and error.code == "answer_cut" else ""
            except PrefoldError as error:
                found.failed[error.code] += 1
                found.is_away = isinstance(error, TransientError)
                return None
            answered = await asyncio.to_thread(read_answer, text)
            if answered.is_json:
                return answered
            found.failed["answer_no_json"] += 1
        return None

    async def _asked(self, ref: SessionRef, chunk: "_Chunk", model: str | None) -> str:
        prompt = facts_prompt(chunk.text, new_nonce())
        tokens = await asyncio.to_thread(lambda: self._counter.count(prompt.system) + self._counter.count(prompt.user))
        reply = await self._messages.ask(
            Ask(
                tenant=ref.tenant,
                session=ref.session,
                incarnation=ref.incarnation,
                purpose="facts",
                system=prompt.system,
                messages=[{"role": "user", "content": prompt.user}],
                max_tokens=MOST_OUTPUT_TOKENS,
                input_tokens=tokens,
                model=model,
            )
        )
        return reply.text


@dataclass(frozen=True, slots=True)
class _Chunk:
    turns: dict[int, StoredTurn]
    text: str


def together(rows: Sequence[Stated], others: Sequence[Stated]) -> list[Stated]:
    """``rows``, and of ``others`` those that they do not have already, in the order of the turns."""
    known = {(row.source.turn_id, row.object.casefold(), row.retracts) for row in rows}
    more = [row for row in others if (row.source.turn_id, row.object.casefold(), row.retracts) not in known]
    return sorted([*rows, *more], key=lambda row: row.source.seq)


def _by_turn(turns: Sequence[StoredTurn]) -> dict[int, list[OwnSentence]]:
    said: dict[int, list[OwnSentence]] = {}
    for sentence in own_sentences(turns):
        said.setdefault(sentence.turn.seq, []).append(sentence)
    return said


def _shown(turn: StoredTurn) -> str:
    is_own = turn.role == "user" and turn.kind == TurnKind.PLAIN
    most = _MOST_OWN_CHARACTERS if is_own else _MOST_OTHER_CHARACTERS
    return render_transcript([turn], most_result_characters=_MOST_OTHER_CHARACTERS, most_text_characters=most).text


def _chunk(shown: Sequence[tuple[StoredTurn, str]], said: dict[int, list[OwnSentence]]) -> Iterator[_Chunk]:
    if any(turn.seq in said for turn, _ in shown):
        yield _Chunk({turn.seq: turn for turn, _ in shown}, "\n".join(text for _, text in shown))


def _checked(
    answered: Answered,
    chunk: _Chunk,
    said: dict[int, list[OwnSentence]],
    ref: SessionRef,
    stored_at_ms: int,
    refused: Counter[str],
) -> list[Stated]:
    """Rows that hold, each once; the others are counted."""
    refused.update(answered.refused)
    rows: dict[tuple[str, str, str, bool], Stated] = {}
    for row in answered.rows:
        stated = _stated(row, chunk, said, ref, stored_at_ms)
        if isinstance(stated, str):
            refused[stated] += 1
        elif (key := (stated.source.turn_id, stated.relation, stated.object.casefold(), stated.retracts)) in rows:
            refused["duplicate"] += 1
        else:
            rows[key] = stated
    return list(rows.values())


def _stated(
    row: AnswerRow, chunk: _Chunk, said: dict[int, list[OwnSentence]], ref: SessionRef, stored_at_ms: int
) -> Stated | str:
    """The fact, or the reason why it is none."""
    turn = chunk.turns.get(row.turn)
    relation = relation_of(row.relation)
    if turn is None or row.turn not in said:
        return "turn_unknown"
    if row.subject.casefold() not in {*_SELF, read_source(turn).speaker.casefold()}:
        return "other_subject"
    if not relation:
        return "relation_bad"
    if row.confidence < _LEAST_CONFIDENCE:
        return "unsure"
    category = category_of(row.category, relation)
    place = grounded(row, category, said[row.turn])
    if place.sentence is None:
        return place.reason
    info = known(relation)
    return Stated(
        subject="user",
        relation=relation,
        object=row.object,
        category=category,
        confidence=row.confidence,
        said=" ".join(place.sentence.text.split())[:MOST_SAID],
        source=source_of(turn, ref),
        said_at_ms=said_at_ms(turn, stored_at_ms),
        is_entity=info.is_entity if info else row.is_entity,
        is_single=info.is_single if info else row.is_single,
        retracts=row.retracts,
        origin="model",
    )
