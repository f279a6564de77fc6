"""The part of the table of calls that is about memory: pinned state, a session's end, what is known of users."""

from dataclasses import dataclass

from prefold.gateway import close_answers, fact_answers, state_answers, user_answers
from prefold.gateway.close_calls import CloseCalls
from prefold.gateway.fact_calls import DEFAULT_PAGE, MOST_PAGE, FactCalls
from prefold.gateway.graph_calls import MOST_ENTITY_CHARS, GraphCalls
from prefold.gateway.operations import Operation, QueryParameter
from prefold.gateway.since import BEFORE
from prefold.gateway.state_calls import StateCalls
from prefold.gateway.user_calls import UserCalls
from prefold.pinned import PinnedState

_SESSION = "/v1/sessions/{session}"
_STATE = f"{_SESSION}/state"
_PROPOSAL = f"{_STATE}/proposals/{{proposal}}"
_USER = "/v1/users/{user}"
_FACTS = f"{_USER}/facts"
_FACT = f"{_FACTS}/{{fact}}"
_BODY_REFUSALS = (400, 408, 413, 415, 422)
_IF_MATCH = ("If-Match",)


@dataclass(frozen=True, slots=True)
class MemoryCalls:
    """The handlers of this part."""

    state: StateCalls
    close: CloseCalls
    facts: FactCalls
    graph: GraphCalls
    users: UserCalls


def memory_operations(calls: MemoryCalls) -> list[Operation]:
    """The operations of this part."""
    return [*_state_operations(calls), *_fact_operations(calls), *_user_operations(calls)]


def _state_operations(calls: MemoryCalls) -> list[Operation]:
    state = calls.state
    answered = {200: state_answers.StateAnswer}
    written = {200: state_answers.StateAnswer | state_answers.StateWritten}
    writing = (*_BODY_REFUSALS, 404, 409, 410, 412)
    return [
        Operation("GET", _STATE, "Read the pinned state", state.get, answered, refusals=(400, 404, 410, 422)),
        Operation(
            "PUT",
            _STATE,
            "Replace the pinned state; over its cap it is refused, never cut",
            state.put,
            written,
            body=PinnedState,
            headers=_IF_MATCH,
            refusals=writing,
            grows=True,
            scope="append",
        ),
        Operation(
            "PATCH",
            _STATE,
            "Change the pinned state by a JSON merge patch",
            state.patch,
            written,
            body=state_answers.StatePatch,
            media=("application/json", "application/merge-patch+json"),
            headers=_IF_MATCH,
            refusals=writing,
            grows=True,
            scope="append",
        ),
        Operation(
            "PUT",
            _PROPOSAL,
            "Accept a proposal: it becomes an entry of the state",
            state.accept,
            written,
            headers=_IF_MATCH,
            refusals=(400, 404, 409, 410, 412, 422),
            grows=True,
            scope="append",
        ),
        Operation(
            "DELETE",
            _PROPOSAL,
            "Reject a proposal: it does not come again. Repeating is safe",
            state.reject,
            written,
            headers=_IF_MATCH,
            refusals=(400, 404, 409, 410, 412, 422),
            scope="append",
        ),
        Operation(
            "POST",
            f"{_SESSION}/close",
            "End the session: what is left is remembered, and it gets its own summary. Repeating is safe",
            calls.close.close,
            {200: close_answers.CloseAnswer, 202: close_answers.CloseAnswer},
            refusals=(400, 404, 409, 410, 422),
            scope="append",
        ),
    ]


def _fact_operations(calls: MemoryCalls) -> list[Operation]:
    facts = calls.facts
    category = {"type": "string", "enum": list(fact_answers.CATEGORY_NAMES)}
    limit = {"type": "integer", "minimum": 1, "maximum": MOST_PAGE, "default": DEFAULT_PAGE}
    history = {"type": "string", "enum": ["true", "false"], "default": "false"}
    after = {"type": "string", "pattern": fact_answers.AFTER_PATTERN}
    return [
        Operation(
            "GET",
            _FACTS,
            "What is known of a user and why, the newest first",
            facts.read,
            {200: fact_answers.FactsAnswer},
            query=(
                QueryParameter("history", history, "Also what was superseded or has expired."),
                QueryParameter("category", category, "Facts of this category only."),
                QueryParameter("limit", limit, "At most so many facts."),
                QueryParameter("after", after, "`next_after` of the page before."),
            ),
            refusals=(400, 422),
        ),
        Operation(
            "POST",
            _FACTS,
            "Add a fact, in the backend's own words",
            facts.add,
            {201: fact_answers.FactAnswer | fact_answers.FactWritten},
            body=fact_answers.FactBody,
            refusals=(*_BODY_REFUSALS, 409, 410),
            grows=True,
            scope="append",
        ),
        Operation(
            "PUT",
            _FACT,
            "Correct a fact; what it was stays in its history",
            facts.correct,
            {200: fact_answers.FactAnswer | fact_answers.FactWritten},
            body=fact_answers.FactChange,
            refusals=(*_BODY_REFUSALS, 404, 409, 410),
            grows=True,
            scope="append",
        ),
        Operation(
            "DELETE",
            _FACT,
            "Delete a fact; it is not learnt again",
            facts.delete,
            {200: fact_answers.FactDeletedAnswer},
            refusals=(400, 404, 409, 410, 422),
            scope="erase",
        ),
    ]


def _user_operations(calls: MemoryCalls) -> list[Operation]:
    entity = {"type": "string", "minLength": 1, "maxLength": MOST_ENTITY_CHARS}
    hops = {"type": "integer", "minimum": 1, "maximum": 2, "default": 1}
    return [
        Operation(
            "GET",
            f"{_USER}/graph",
            "Facts as nodes and edges, each edge with its sources",
            calls.graph.read,
            {200: fact_answers.GraphAnswer},
            query=(
                QueryParameter("entity", entity, "Only what lies near this entity."),
                QueryParameter("hops", hops, "How near, with `entity`."),
            ),
            refusals=(400, 422),
        ),
        Operation(
            "DELETE",
            _USER,
            "Erase a user: facts, sessions and all that was derived; repeating is safe",
            calls.users.erase,
            {200: user_answers.UserErasureAnswer},
            query=(BEFORE,),
            refusals=(400, 409, 422),
            scope="erase",
        ),
    ]
