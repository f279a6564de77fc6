"""``POST /v1/search``: recall over all that a tenant has stored."""

import asyncio
from collections.abc import Coroutine, Sequence
from time import perf_counter
from typing import Any

from msgspec import UNSET
from starlette.responses import Response

from prefold.conversation.accepting import read_object
from prefold.conversation.ids import check_name
from prefold.errors import InvalidInputError
from prefold.gateway.bodies import convert, json_response
from prefold.gateway.exchange import Exchange
from prefold.gateway.finding import Finder, FoundTurn
from prefold.gateway.memory_finding import FoundMemory, MemoryFinder, Remembered
from prefold.gateway.recall_answers import FactSource, Kind, SearchAnswer, SearchBody, SearchResult
from prefold.gateway.settings import GatewaySettings
from prefold.recall import DerivedKind
from prefold.telemetry.metrics import SEARCH_SECONDS

_MOST_BYTES = 65_536
_ALL: tuple[Kind, ...] = ("turn", "segment", "summary", "fact")


class SearchCalls:
    """Searches turns, facts, summaries and segments."""

    def __init__(self, finder: Finder, memory: MemoryFinder | None, settings: GatewaySettings) -> None:
        self._finder = finder
        self._memory = memory
        self._body_seconds = settings.body_timeout_ms / 1000

    async def search(self, exchange: Exchange) -> Response:
        """The best of all kinds that were asked for."""
        exchange.query()
        raw = await exchange.body(most_bytes=_MOST_BYTES, within_seconds=self._body_seconds)
        body = convert(read_object(raw, _MOST_BYTES), SearchBody)
        if not body.query.strip():
            raise InvalidInputError("must not be blank", field="query")
        user = None if body.user is None else check_name(body.user, "user")
        session = None if body.session is None else check_name(body.session, "session")
        kinds = frozenset(_ALL if body.kinds is None else body.kinds)
        began = perf_counter()
        found = await self._found(exchange.tenant, body, kinds, user, session) if kinds else []
        SEARCH_SECONDS.observe((), perf_counter() - began)
        found.sort(key=lambda one: -one.score)
        return json_response(SearchAnswer(results=found[: body.limit]))

    async def _found(
        self, tenant: str, body: SearchBody, kinds: frozenset[Kind], user: str | None, session: str | None
    ) -> list[SearchResult]:
        vector = await self._finder.vector_of(body.query)
        looks: list[Coroutine[Any, Any, Sequence[FoundTurn | FoundMemory]]] = []
        if "turn" in kinds:
            looks.append(
                self._finder.find(tenant, body.query, vector=vector, session=session, user=user, limit=body.limit)
            )
        if self._memory is not None:
            wanted = Remembered(tenant, body.query, vector, user, session, limit=body.limit)
            if "fact" in kinds and session is None:
                looks.append(self._memory.facts(wanted))
            if summaries := _derived(kinds):
                looks.append(self._memory.summaries(wanted, summaries))
        return [_result(one) for found in await asyncio.gather(*looks) for one in found]


def _derived(kinds: frozenset[Kind]) -> tuple[DerivedKind, ...]:
    derived: tuple[DerivedKind, ...] = ("summary", "segment")
    return tuple(kind for kind in derived if kind in kinds)


def _result(found: FoundTurn | FoundMemory) -> SearchResult:
    if isinstance(found, FoundTurn):
        return SearchResult(
            kind="turn",
            text=found.text,
            score=found.score,
            copies=found.copies,
            session=found.session,
            turn_id=found.turn_id,
            seq=found.seq,
            role=found.role,
        )
    if found.kind == "fact":
        sources = [FactSource(session=session, turn_id=turn, seq=seq) for session, turn, seq in found.sources]
        return SearchResult(
            kind="fact", text=found.text, score=found.score, copies=found.copies, fact_id=found.id, sources=sources
        )
    return SearchResult(
        kind=found.kind,
        text=found.text,
        score=found.score,
        copies=found.copies,
        session=found.session or UNSET,
        first_seq=found.first_seq,
        last_seq=found.last_seq,
    )
