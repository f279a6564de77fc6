"""From the gateway's JSON about states, facts and erasures to results. Members that we do not know are ignored."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import lru_cache, partial
from typing import Any, TypeVar, cast

from prefold.client.memory_results import (
    Closed,
    ContextRecord,
    DayUsage,
    Fact,
    FactPage,
    FactSource,
    Graph,
    GraphEdge,
    GraphNode,
    Proposal,
    State,
)
from prefold.client.receipts import DeletedFact, ErasedSession, ErasedUser
from prefold.client.results import JsonObject, Remains

T = TypeVar("T")


def taken(kind: type[T], answer: Mapping[str, Any], **read: object) -> T:
    """``kind`` made of the members of its names; ``read`` has those that are read otherwise. Lists become tuples."""
    names: tuple[str, ...] = _names(cast("Any", kind))
    given = {name: _plain(answer[name]) for name in names if name in answer and name not in read}
    return kind(**given, **read)


@lru_cache(maxsize=64)
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _each(kind: type[T], answers: Iterable[Mapping[str, Any]]) -> tuple[T, ...]:
    return tuple(taken(kind, one) for one in answers)


def parse_state(answer: JsonObject) -> State:
    """Of ``…/state`` and its proposals."""
    if "state" not in answer:
        return taken(State, answer, state={}, proposals=(), hidden=True)
    return taken(State, answer, proposals=_each(Proposal, answer["proposals"]))


def parse_closed(answer: JsonObject) -> Closed:
    """Of ``POST …/close``."""
    return taken(Closed, answer)


def parse_contexts(answer: JsonObject) -> tuple[ContextRecord, ...]:
    """Of ``GET …/contexts``."""
    return tuple(
        taken(ContextRecord, one, tokens=one["tokens"]["total"], sections=dict(one["tokens"]["sections"]))
        for one in answer["contexts"]
    )


def parse_fact(answer: Mapping[str, Any]) -> Fact:
    """Of one fact."""
    if answer.keys() == {"id"}:
        return Fact(**{**_UNTOLD, "id": answer["id"]}, hidden=True)
    return taken(Fact, answer, sources=_each(FactSource, answer["sources"]))


_UNTOLD: Mapping[str, Any] = {
    **dict.fromkeys(("subject", "relation", "object", "category", "said", "text", "origin"), ""),
    **dict.fromkeys(("first_seen", "last_confirmed"), ""),
    "confidence": 0.0,
    "sources": (),
    "is_entity": False,
    **dict.fromkeys(("expires_at", "superseded_by", "superseded_at")),
}


def parse_facts(answer: JsonObject) -> FactPage:
    """Of ``GET …/facts``."""
    return FactPage(tuple(map(parse_fact, answer["facts"])), answer["next_after"])


def parse_graph(answer: JsonObject) -> Graph:
    """Of ``GET …/graph``."""
    edges = (taken(GraphEdge, one, sources=_each(FactSource, one["sources"])) for one in answer["edges"])
    return Graph(_each(GraphNode, answer["nodes"]), tuple(edges))


def parse_usage(answer: JsonObject) -> tuple[DayUsage, ...]:
    """Of ``GET /v1/usage``."""
    return _each(DayUsage, answer["days"])


def _receipt(answer: JsonObject, kind: type[T]) -> T:
    return taken(kind, answer, remains=_each(Remains, answer["remains"]))


parse_deleted_fact: Callable[[JsonObject], DeletedFact] = partial(_receipt, kind=DeletedFact)
"""Of ``DELETE …/facts/{fact}``."""
parse_erased_session: Callable[[JsonObject], ErasedSession] = partial(_receipt, kind=ErasedSession)
"""Of ``DELETE /v1/sessions/{session}``."""
parse_erased_user: Callable[[JsonObject], ErasedUser] = partial(_receipt, kind=ErasedUser)
"""Of ``DELETE /v1/users/{user}``."""
