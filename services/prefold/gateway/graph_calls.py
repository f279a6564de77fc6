"""``GET /v1/users/{user}/graph``."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final, Literal

from starlette.responses import Response

from prefold.conversation.ids import check_name
from prefold.errors import InvalidInputError
from prefold.facts import Fact, FactBook, Graph, graph_of, neighbours
from prefold.gateway.bodies import json_response
from prefold.gateway.exchange import Exchange, whole_number
from prefold.gateway.fact_answers import GraphAnswer
from prefold.gateway.fact_views import graph_answer

MOST_ENTITY_CHARS: Final = 200


class GraphCalls:
    """Shows what is known of a user as nodes and edges."""

    def __init__(self, book: FactBook) -> None:
        self._book = book

    async def read(self, exchange: Exchange) -> Response:
        """All of it, or what lies near one entity; empty where nothing is known."""
        user = check_name(exchange.path["user"], "user")
        query = exchange.query("entity", "hops")
        hops = whole_number(query.get("hops", "1"), "hops", least=1, most=2)
        entity = query.get("entity")
        if entity is not None and not (entity.strip() and len(entity) <= MOST_ENTITY_CHARS):
            raise InvalidInputError(f"must be 1 to {MOST_ENTITY_CHARS} characters, not all blank", field="entity")
        now_ms = time.time_ns() // 1_000_000
        facts = await self._book.list(exchange.tenant, user, now_ms=now_ms)
        # 500 facts are made a graph in some 100 ms.
        return json_response(await asyncio.to_thread(_answer, facts, entity, hops, now_ms))


def _answer(facts: Sequence[Fact], entity: str | None, hops: int, now_ms: int) -> GraphAnswer:
    graph = graph_of(facts)
    return graph_answer(graph if entity is None else _near(graph, entity, hops), now_ms)


def _near(graph: Graph, entity: str, hops: int) -> Graph:
    within: Literal[1, 2] = 1 if hops == 1 else 2
    return graph_of(neighbours(graph, [entity], within))
