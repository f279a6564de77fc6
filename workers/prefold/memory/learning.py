"""From turns to what their user states: by the extractor that is set, or by the offline one where it cannot."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from prefold.compaction.engines import PATIENCE
from prefold.compaction.pauses import failures_with
from prefold.errors import TransientError, place_of
from prefold.facts.rows import Stated
from prefold.memory.extracting import Extraction, extract_offline, propose
from prefold.memory.failures import Failures
from prefold.memory.page import Page
from prefold.memory.ports import Extractor, ModelExtracts
from prefold.messages.errors import ModelAwayError
from prefold.pinned import Proposed
from prefold.storage.memory_types import MemoryTicket
from prefold.storage.types import SessionRef, StoredTurn

__all__ = ["Learning", "Learnt", "OfflineExtractor"]

log = structlog.get_logger(__name__)

_MOST_KEPT = 64
AWAY = frozenset({"model_unavailable", "model_overloaded", "model_timeout", "model_breaker_open", "model_rate_limited"})
"""Codes of a model that comes back."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a page says."""

    stated: Sequence[Stated]
    proposed: Sequence[Proposed]
    epoch: int
    """The user's, as it was before the page was read."""
    away: TransientError | None = None
    """A model did not answer for all of it: what it would have found is still to come."""


class OfflineExtractor:
    """Rules, in a thread."""

    async def extract(self, ticket: MemoryTicket, turns: Sequence[StoredTurn], *, stored_at_ms: int) -> list[Stated]:
        """See ``Extractor``."""
        return await asyncio.to_thread(extract_offline, turns, ticket.ref, stored_at_ms=stored_at_ms)


class Learning:
    """Extracts a page once: a round that is repeated because another part is away asks no model again."""

    def __init__(self, offline: Extractor, model: ModelExtracts | None, failures: Failures) -> None:
        self._offline = offline
        self._model = model
        self._failures = failures
        self._kept: OrderedDict[tuple[SessionRef, int, int, int], Learnt] = OrderedDict()

    async def learnt(self, ticket: MemoryTicket, page: Page) -> Learnt:
        """What the new turns say. Never raises but on cancellation."""
        key = (ticket.ref, ticket.changes, page.first_seq, page.upto)
        if key in self._kept:
            return self._kept[key]
        stated, away = await self._extract(ticket, page) if ticket.user else ([], None)
        proposed = await asyncio.to_thread(_proposed, page)
        found = Learnt(_new(stated, page), proposed, page.epoch, away)
        if away is None:
            self._kept[key] = found
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return found

    def forget(self, ref: SessionRef) -> None:
        """The session's rounds are over: nothing of what it said is kept here."""
        for key in [key for key in self._kept if key[0] == ref]:
            del self._kept[key]

    async def _extract(self, ticket: MemoryTicket, page: Page) -> tuple[Sequence[Stated], TransientError | None]:
        turns = [*page.before, *page.turns]
        if self._model is None:
            return await self._whole_or_halves(ticket, turns, page.stored_at_ms), None
        try:
            found = await self._model.run(ticket.ref, page.turns, stored_at_ms=page.stored_at_ms, before=page.before)
        except Exception as error:  # noqa: BLE001 (whatever a model's answer does, the session gets its facts)
            log.error("model_extractor_failed", error=place_of(error))
            return await self._whole_or_halves(ticket, turns, page.stored_at_ms), None
        return found.rows, self._away(ticket.ref, found)

    def _away(self, ref: SessionRef, found: Extraction) -> TransientError | None:
        """The model may come back, and is waited for: not for ever."""
        for code in AWAY & set(found.failed):
            if failures_with(code, self._failures.last(ref)) < PATIENCE:
                return ModelAwayError("the model did not answer for all turns", code=code)
        return None

    async def _whole_or_halves(
        self, ticket: MemoryTicket, turns: Sequence[StoredTurn], stored_at_ms: int
    ) -> Sequence[Stated]:
        """A turn that cannot be read is looked for by halves, and passed over."""
        try:
            return await self._offline.extract(ticket, turns, stored_at_ms=stored_at_ms)
        except TransientError:
            raise
        except Exception as error:  # noqa: BLE001 (one turn that cannot be read must not hold up all others)
            if len(turns) == 1:
                log.error("turn_not_extracted", seq=turns[0].seq, error=place_of(error))
                return []
        half = len(turns) // 2
        return [
            *await self._whole_or_halves(ticket, turns[:half], stored_at_ms),
            *await self._whole_or_halves(ticket, turns[half:], stored_at_ms),
        ]


def _proposed(page: Page) -> list[Proposed]:
    """Entries for the pinned state; a goal only from the beginning of a session."""
    seqs = {turn.seq for turn in page.turns}
    return [
        Proposed(one.field, one.value, one.seq, one.turn_id)
        for one in propose([*page.before, *page.turns])
        if one.seq in seqs and (one.field != "goal" or page.first_seq == 1)
    ]


def _new(found: Sequence[Stated], page: Page) -> list[Stated]:
    """Without what earlier turns stated, which is known; an extractor can name no turn that it was not given."""
    seqs = {turn.seq for turn in page.turns}
    return [one for one in found if one.source.seq in seqs]
