"""Recall for a context read: as much as comes in time, never an error."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import structlog

from prefold.assembly import RecalledItem, RecallInput, standing_turns
from prefold.embedding import Vector
from prefold.errors import TransientError
from prefold.gateway.finding import Finder, FoundTurn
from prefold.gateway.memory_finding import FoundMemory, MemoryFinder, Remembered
from prefold.storage.types import StoredContext

__all__ = ["ContextRecall"]

log = structlog.get_logger(__name__)

_RECALLED_TURNS = 12
_RECALLED_FACTS = 12
_RECALLED_SUMMARIES = 4

Found = Sequence[RecalledItem]


class ContextRecall:
    """Turns of the session itself; facts of its user, and what the user's earlier sessions came to."""

    def __init__(self, finder: Finder, memory: MemoryFinder | None, *, within_seconds: float) -> None:
        self._finder = finder
        self._memory = memory
        self._within = within_seconds

    async def recall(self, stored: StoredContext, query: str, budget_tokens: int | None) -> RecallInput:
        """What was found in time. Each failure is named in the input and reported in the answer."""
        if not self._finder.is_ready:
            return RecallInput(failure="embedder_loading")
        until = asyncio.get_running_loop().time() + self._within
        vector, failure = await self._vector(stored, query, until)
        if vector is None:
            return RecallInput(failure=failure)
        kinds = ["turn", *(("fact", "summary") if self._memory and stored.user else ())]
        looks = [self._look(stored, query, vector, kind, budget_tokens) for kind in kinds]
        found = await asyncio.gather(
            *(self._in_time(stored, kind, look, until) for kind, look in zip(kinds, looks, strict=True))
        )
        items = [item for one in found if not isinstance(one, str) for item in one]
        failures = {kind: one for kind, one in zip(kinds, found, strict=True) if isinstance(one, str)}
        if len(failures) == len(kinds) and len(set(failures.values())) == 1:
            return RecallInput(failure=next(iter(failures.values())))
        return RecallInput(items, failures=tuple(failures.items()))

    async def _vector(self, stored: StoredContext, query: str, until: float) -> tuple[Vector | None, str]:
        found = await self._in_time(stored, "query", self._finder.vector_of(query), until)
        return (None, found) if isinstance(found, str) else (found, "")

    async def _in_time(self, stored: StoredContext, kind: str, look: Coroutine[Any, Any, Any], until: float) -> Any:
        """What the look comes to, or the reason why to nothing."""
        ids = {"tenant": stored.ref.tenant, "session": stored.ref.session, "kind": kind}
        try:
            async with asyncio.timeout_at(until):
                return await look
        except TimeoutError:
            log.warning("recall_too_slow", **ids)
            return "too_slow"
        except TransientError as error:
            log.warning("recall_unavailable", **ids, reason=error.detail)
            return "unavailable"
        except Exception as error:  # noqa: BLE001  # whatever is wrong with recall, the context is served
            log.error("recall_failed", **ids, error=type(error).__qualname__)
            return "failed"

    async def _look(
        self, stored: StoredContext, query: str, vector: Vector, kind: str, budget_tokens: int | None
    ) -> Found:
        ref = stored.ref
        if kind == "turn":
            skip = standing_turns(stored, budget_tokens)
            turns = await self._finder.find(
                ref.tenant, query, vector=vector, session=ref.session, limit=_RECALLED_TURNS, skip=skip
            )
            return [_turn(one, query) for one in turns]
        assert self._memory is not None
        if kind == "fact":
            facts = await self._memory.facts(Remembered(ref.tenant, query, vector, stored.user, limit=_RECALLED_FACTS))
            return [_memory(one) for one in facts]
        wanted = Remembered(
            ref.tenant, query, vector, stored.user, exclude_session=ref.session, limit=_RECALLED_SUMMARIES
        )
        return [_memory(one) for one in await self._memory.summaries(wanted)]


def _turn(found: FoundTurn, query: str) -> RecalledItem:
    return RecalledItem(
        found.seq, found.role, found.ts, found.text, found.score, id=found.turn_id, copies=found.copies, asked=query
    )


def _memory(found: FoundMemory) -> RecalledItem:
    return RecalledItem(
        0,
        "",
        found.ts,
        found.text,
        found.score,
        kind=found.kind,
        id=found.id,
        session=found.session,
        copies=found.copies,
        sources=found.sources,
    )
