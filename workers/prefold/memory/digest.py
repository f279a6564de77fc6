"""The digest of a session that has ended: what other sessions of its user can recall of it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import orjson

from prefold.compaction.engine import SummaryInput
from prefold.compaction.engines import Engines
from prefold.compaction.ledger.collect import collect_ledger
from prefold.compaction.reading.turns import TurnCache, language_of
from prefold.conversation.turns import TurnKind
from prefold.memory.ports import MemoryStorage
from prefold.memory.verbatim import said_in
from prefold.recall.derived import text_digest
from prefold.storage.memory_types import MemoryTicket, SessionDigest
from prefold.storage.types import BuildTicket, SessionRef, StoredSegment, StoredTurn
from prefold.tokens import TokenCounter

__all__ = ["DigestWriter", "SegmentsAsTheyAre", "says_enough"]

_CAP_TOKENS = 320
"""What is asked for: models count badly, and the gate lets through a quarter more, so a digest has at most 400."""
_LEAST_TOKENS = 80
"""Below it a summary would be no shorter than what was said: the digest is that, word for word."""
_SHARE = 0.5
"""Of what was said, at most, but for talks so short that what matters is most of it."""
_LEAST_CAP = 120


class SegmentsAsTheyAre:
    """Segments for an engine that writes a digest: it may use what builds have kept, and keeps nothing itself."""

    def __init__(self, storage: MemoryStorage) -> None:
        self._storage = storage

    async def read_segments(self, ref: SessionRef) -> list[StoredSegment]:
        return await self._storage.read_segments(ref)

    async def keep_segment(self, ticket: BuildTicket, segment: StoredSegment) -> bool:  # noqa: ARG002 (a port)
        return True


class DigestWriter:
    """Writes digests by the engines that write summaries, with a short cap; of little, as it was said."""

    def __init__(self, engines: Engines, cache: TurnCache, counter: TokenCounter) -> None:
        self._engines = engines
        self._cache = cache
        self._counter = counter

    @property
    def engine_name(self) -> str:
        """Of the engine that is asked first."""
        return self._engines.primary.name

    async def write(
        self, ticket: MemoryTicket, turns: Sequence[StoredTurn], last_error: Callable[[], Awaitable[str]]
    ) -> SessionDigest | None:
        """The digest of these turns, all that stand; None: nothing was said. Raises what an engine does."""
        if not says_enough(turns):
            return await asyncio.to_thread(self._as_said, ticket, turns)
        began = time.monotonic()
        wanted = await asyncio.to_thread(self._wanted, ticket, tuple(turns))
        made = await self._engines.make(wanted, last_error)
        record = {
            "engine": made.engine.name,
            "seconds": round(time.monotonic() - began, 3),
            "turns": len(turns),
            **({"because": made.because} if made.because else {}),
            **wanted.tally.record(),
        }
        return _digest(ticket, made.summary.text, made.summary.tokens, record)

    def _as_said(self, ticket: MemoryTicket, turns: Sequence[StoredTurn]) -> SessionDigest | None:
        text = said_in(turns, self._counter, _CAP_TOKENS)
        record = {"engine": "verbatim", "turns": len(turns)}
        return _digest(ticket, text, self._counter.count(text), record) if text else None

    def _wanted(self, ticket: MemoryTicket, turns: tuple[StoredTurn, ...]) -> SummaryInput:
        readings = self._cache.read(ticket.ref, turns)
        said = sum(turn.tokens for turn in turns)
        return SummaryInput(
            ref=ticket.ref,
            turns=turns,
            cap_tokens=min(_CAP_TOKENS, said, max(_LEAST_CAP, int(said * _SHARE))),
            language=language_of(readings),
            ledger=collect_ledger(readings),
            ticket=_as_build(ticket),
        )


def says_enough(turns: Sequence[StoredTurn]) -> bool:
    """Whether there is something to sum up; one turn is summed up where it is too long to stand as it is."""
    own = [turn.tokens for turn in turns if turn.role == "user" and turn.kind == TurnKind.PLAIN]
    said = sum(turn.tokens for turn in turns)
    return said >= (_LEAST_TOKENS if len(turns) > 1 else _CAP_TOKENS) and sum(own) >= _LEAST_TOKENS // 4


def _digest(ticket: MemoryTicket, text: str, tokens: int, record: dict[str, object]) -> SessionDigest:
    return SessionDigest(
        upto=ticket.upto,
        text=text,
        tokens=tokens,
        digest=text_digest(text),
        made_at_ms=time.time_ns() // 1_000_000,
        record=orjson.dumps(record).decode(),
    )


def _as_build(ticket: MemoryTicket) -> BuildTicket:
    """What engines read of a ticket."""
    return BuildTicket(
        ref=ticket.ref,
        epoch=ticket.epoch,
        covers_to=ticket.upto,
        base_covers_to=0,
        lease_ms=ticket.lease_ms,
        hard_limit_tokens=ticket.hard_limit_tokens,
        fixed_tokens=0,
        calibration=ticket.calibration,
        carried_turn=0,
        first_user_seq=ticket.first_user_seq,
        head_seq=ticket.head_seq,
    )
