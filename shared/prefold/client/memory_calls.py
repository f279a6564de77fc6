"""Calls about a session's state, its end and its records, and about users: as data, as in ``calls``."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from prefold.client import memory_answers as answers
from prefold.client.calls import Call, Lost, given, json_body, segment, session_path, whole_text
from prefold.client.memory_results import (
    Closed,
    ContextRecord,
    DayUsage,
    Fact,
    FactPage,
    Graph,
    State,
)
from prefold.client.receipts import DeletedFact, ErasedSession, ErasedUser
from prefold.client.results import JsonObject


def state(session: str) -> Call[State]:
    """``GET …/state``."""
    path = session_path(session, "state")
    return Call("GET", path, answers.parse_state, direct=lambda direct: direct.state(session))


def put_state(session: str, document: Mapping[str, Any], if_version: int | None) -> Call[State]:
    """``PUT …/state``."""
    call = _written("PUT", session, document, if_version, lambda now: _without_empty(now) == _without_empty(document))
    return replace(call, direct=lambda direct: direct.put_state(session, document, if_version))


def patch_state(session: str, patch: Mapping[str, Any], if_version: int | None) -> Call[State]:
    """``PATCH …/state``, a JSON merge patch."""
    call = _written(
        "PATCH", session, patch, if_version, lambda now: _without_empty(merged(now, patch)) == _without_empty(now)
    )
    return replace(call, direct=lambda direct: direct.patch_state(session, patch, if_version))


def _written(
    method: str, session: str, body: Mapping[str, Any], if_version: int | None, stands: Callable[[JsonObject], bool]
) -> Call[State]:
    lost = None
    if if_version is not None:  # a repeat meets the version that its own first attempt has made
        written = if_version + 1
        lost = Lost("version_conflict", state(session), lambda now: now if _is_ours(now, written, stands) else None)
    headers = {} if if_version is None else {"If-Match": f'"{if_version}"'}
    path = session_path(session, "state")
    return Call(method, path, answers.parse_state, body=json_body(body), headers=headers, lost=lost)


def _is_ours(now: State, written: int, stands: Callable[[JsonObject], bool]) -> bool:
    return now.version == written and stands(now.state)


def merged(target: Any, patch: Any) -> Any:
    """``target`` under a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def _without_empty(document: Any) -> JsonObject:
    """As a state is answered: without what it does not have."""
    found = {name: value for name, value in document.items() if value}
    if "plan" in found:
        found["plan"] = [{name: value for name, value in step.items() if value} for step in found["plan"]]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def accept_proposal(session: str, proposal: str) -> Call[State]:
    """``PUT …/state/proposals/{proposal}``."""
    lost = Lost("proposal_not_found", state(session), lambda now: now)
    return Call("PUT", _proposal_path(session, proposal), answers.parse_state, lost=lost)


def reject_proposal(session: str, proposal: str) -> Call[State]:
    """``DELETE …/state/proposals/{proposal}``."""
    return Call("DELETE", _proposal_path(session, proposal), answers.parse_state)


def _proposal_path(session: str, proposal: str) -> str:
    return session_path(session, "state", "proposals", segment(proposal, "proposal"))


def close(session: str) -> Call[Closed]:
    """``POST …/close``."""
    return Call("POST", session_path(session, "close"), answers.parse_closed)


def contexts(session: str, limit: int | None) -> Call[tuple[ContextRecord, ...]]:
    """``GET …/contexts``."""
    return Call("GET", session_path(session, "contexts"), answers.parse_contexts, query=_query(limit=limit))


def erase_session(session: str) -> Call[ErasedSession]:
    """``DELETE /v1/sessions/{session}``."""
    return Call("DELETE", session_path(session), answers.parse_erased_session)


def facts(user: str, *, history: bool, category: str | None, limit: int | None, after: str | None) -> Call[FactPage]:
    """``GET …/facts``."""
    query = _query(history="true" if history else None, category=category, limit=limit, after=after)
    return Call("GET", _user_path(user, "facts"), answers.parse_facts, query=query)


def add_fact(user: str, row: Mapping[str, Any]) -> Call[Fact]:
    """``POST …/facts``; the same again confirms it."""
    return Call("POST", _user_path(user, "facts"), answers.parse_fact, body=json_body(given(row)))


def correct_fact(user: str, fact: str, changes: Mapping[str, Any]) -> Call[Fact]:
    """``PUT …/facts/{fact}``."""
    path = _user_path(user, "facts", segment(fact, "fact"))
    return Call("PUT", path, answers.parse_fact, body=json_body(given(changes)))


def delete_fact(user: str, fact: str) -> Call[DeletedFact]:
    """``DELETE …/facts/{fact}``."""
    asked = facts(user, history=False, category=None, limit=1, after=None)
    lost = Lost("fact_not_found", asked, lambda _: DeletedFact(fact, facts_left=0, vectors_left=None, remains=()))
    path = _user_path(user, "facts", segment(fact, "fact"))
    return Call("DELETE", path, answers.parse_deleted_fact, lost=lost)


def graph(user: str, entity: str | None, hops: int | None) -> Call[Graph]:
    """``GET …/graph``."""
    return Call("GET", _user_path(user, "graph"), answers.parse_graph, query=_query(entity=entity, hops=hops))


def erase_user(user: str) -> Call[ErasedUser]:
    """``DELETE /v1/users/{user}``."""
    return Call("DELETE", _user_path(user), answers.parse_erased_user)


def usage(days: int | None) -> Call[tuple[DayUsage, ...]]:
    """``GET /v1/usage``."""
    return Call("GET", "/v1/usage", answers.parse_usage, query=_query(days=days))


def _query(**asked: str | int | None) -> dict[str, str]:
    return {name: whole_text(str(value)) for name, value in asked.items() if value is not None}


def _user_path(user: str, *rest: str) -> str:
    return "/".join(["/v1/users", segment(user, "user"), *rest])
