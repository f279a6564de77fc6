"""All calls of the API: one table for routing and documentation."""

from collections.abc import Mapping
from dataclasses import dataclass

from prefold.assembly import LEAST_BUDGET_TOKENS
from prefold.gateway import answers, change_answers, recall_answers
from prefold.gateway.change_calls import ChangeCalls
from prefold.gateway.context_calls import MOST_BUDGET_TOKENS, MOST_QUERY_CHARS, ContextCalls
from prefold.gateway.context_records import ContextRecordCalls
from prefold.gateway.erasure_calls import ErasureCalls
from prefold.gateway.event_calls import EVENT_STREAM, EventCalls
from prefold.gateway.health_calls import HealthCalls
from prefold.gateway.memory_api import MemoryCalls, memory_operations
from prefold.gateway.operations import Operation, QueryParameter
from prefold.gateway.search_calls import SearchCalls
from prefold.gateway.session_calls import SessionCalls
from prefold.gateway.since import BEFORE
from prefold.gateway.turn_calls import TurnCalls
from prefold.gateway.usage_calls import DEFAULT_DAYS, MOST_DAYS, UsageAnswer, UsageCalls
from prefold.storage.limits import CONTEXTS_KEPT

_SESSION = "/v1/sessions/{session}"
_TURN = f"{_SESSION}/turns/{{turn}}"
_BODY_REFUSALS = (400, 408, 413, 415, 422)


@dataclass(frozen=True, slots=True)
class Calls:
    """The handlers of the API."""

    turns: TurnCalls
    contexts: ContextCalls
    records: ContextRecordCalls
    sessions: SessionCalls
    changes: ChangeCalls
    search: SearchCalls
    erasure: ErasureCalls
    usage: UsageCalls
    memory: MemoryCalls
    events: EventCalls
    health: HealthCalls


def operations_of(calls: Calls) -> list[Operation]:
    """The whole table."""
    return [
        *_conversation_operations(calls),
        *_change_operations(calls.changes),
        *memory_operations(calls.memory),
        *_tenant_operations(calls),
        *_health_operations(calls.health),
    ]


def _conversation_operations(calls: Calls) -> list[Operation]:
    return [
        Operation(
            "POST",
            f"{_SESSION}/turns",
            "Append one turn or several, all or none; the first one creates the session",
            calls.turns.append,
            {201: answers.AppendAnswer},
            body=answers.TurnBody | answers.TurnsBody,
            refusals=(*_BODY_REFUSALS, 409, 410),
            grows=True,
            scope="append",
        ),
        Operation(
            "GET",
            f"{_SESSION}/context",
            "The context to send to the model now",
            calls.contexts.read,
            {200: recall_answers.ContextAnswer, 304: None},
            query=_context_query(),
            refusals=(400, 404, 410, 422),
        ),
        Operation(
            "GET",
            f"{_SESSION}/contexts",
            "What the last contexts held, in numbers and ids, newest first",
            calls.records.read,
            {200: recall_answers.ContextsAnswer},
            query=(QueryParameter("limit", _integer(1, CONTEXTS_KEPT, CONTEXTS_KEPT), "At most so many records."),),
            refusals=(400, 404, 410, 422),
        ),
        Operation(
            "GET",
            f"{_SESSION}/events",
            "Server-sent events of the session: standby_ready, swapped, degraded, erased",
            calls.events.listen,
            {200: str},
            text=EVENT_STREAM,
            refusals=(400, 404, 410, 422),
        ),
        Operation(
            "GET",
            f"{_SESSION}/turns",
            "The verbatim log, ascending",
            calls.turns.read,
            {200: answers.TurnsAnswer},
            query=(
                QueryParameter("after_seq", _integer(0, 2**53, 0), "Turns with a greater seq."),
                QueryParameter("limit", _integer(1, 500, 100), "At most so many turns."),
            ),
            refusals=(400, 404, 410, 422),
        ),
        Operation(
            "PUT",
            _SESSION,
            "Create the session, or change what the body names",
            calls.sessions.put,
            {200: answers.SessionAnswer | answers.SessionWritten},
            body=answers.SessionBody,
            refusals=(*_BODY_REFUSALS, 409),
            grows=True,
            scope="append",
        ),
        Operation(
            "GET",
            _SESSION,
            "The session as it stands",
            calls.sessions.get,
            {200: answers.SessionAnswer},
            refusals=(400, 404, 410, 422),
        ),
        Operation(
            "DELETE",
            _SESSION,
            "Erase the session and everything derived from it; repeating is safe",
            calls.erasure.session,
            {200: answers.ErasureAnswer},
            query=(BEFORE,),
            refusals=(400, 404, 409, 422),
            scope="erase",
        ),
    ]


def _change_operations(changes: ChangeCalls) -> list[Operation]:
    return [
        Operation(
            "POST",
            f"{_SESSION}/rewind",
            "Take back every turn after one; repeating is safe",
            changes.rewind,
            {200: change_answers.RewindAnswer},
            body=change_answers.RewindBody,
            refusals=(*_BODY_REFUSALS, 404, 410),
            scope="erase",
        ),
        Operation(
            "POST",
            f"{_SESSION}/fork",
            "Begin a new session with the turns up to one; repeating is safe",
            changes.fork,
            {201: answers.SessionAnswer | answers.SessionWritten},
            body=change_answers.ForkBody,
            refusals=(*_BODY_REFUSALS, 404, 409, 410),
            grows=True,
            scope="append",
        ),
        Operation(
            "PUT",
            _TURN,
            "Correct a turn; role, place and tool calls stay",
            changes.edit,
            {200: change_answers.ChangeAnswer},
            body=answers.TurnBody,
            refusals=(*_BODY_REFUSALS, 404, 409, 410),
            grows=True,
            scope="erase",
        ),
        Operation(
            "DELETE",
            _TURN,
            "Remove what a turn says; a marker stands in its place. Repeating is safe",
            changes.remove,
            {200: change_answers.ChangeAnswer},
            query=(BEFORE,),
            refusals=(400, 404, 409, 410, 422),
            scope="erase",
        ),
    ]


def _tenant_operations(calls: Calls) -> list[Operation]:
    return [
        Operation(
            "POST",
            "/v1/search",
            "What matters for a query, best first, over all that the tenant has stored",
            calls.search.search,
            {200: recall_answers.SearchAnswer},
            body=recall_answers.SearchBody,
            refusals=_BODY_REFUSALS,
        ),
        Operation(
            "GET",
            "/v1/usage",
            "What the tenant's summaries took by day, newest first",
            calls.usage.read,
            {200: UsageAnswer},
            query=(QueryParameter("days", _integer(1, MOST_DAYS, DEFAULT_DAYS), "So many days up to today, in UTC."),),
            refusals=(400, 422),
            scope="admin",
        ),
    ]


def _health_operations(health: HealthCalls) -> list[Operation]:
    probe: Mapping[int, object] = {200: answers.Health, 503: answers.Health}
    return [
        Operation("GET", "/livez", "The process serves requests", health.livez, {200: answers.Health}, public=True),
        Operation("GET", "/readyz", "Sessions can be served", health.readyz, probe, public=True),
        Operation(
            "GET",
            "/metrics",
            "Counts in Prometheus' text format; the probe's port tells them without a key",
            health.metrics,
            {200: str},
            scope="admin",
        ),
        Operation("GET", "/openapi.json", "This description", health.openapi, {200: dict}, public=True),
    ]


def _context_query() -> tuple[QueryParameter, ...]:
    form = {"type": "string", "enum": ["anthropic", "openai"], "default": "anthropic"}
    text = {"type": "string", "minLength": 1, "maxLength": MOST_QUERY_CHARS}
    return (
        QueryParameter("format", form, "Whose message format. With openai, `system` also leads the messages."),
        QueryParameter("query", text, "What to recall earlier turns for; usually the newest user turn."),
        QueryParameter(
            "budget_tokens",
            _integer(LEAST_BUDGET_TOKENS, MOST_BUDGET_TOKENS),
            "Serve at most so many tokens, if that is less than the session's limit.",
        ),
        QueryParameter(
            "cache",
            {"type": "string", "enum": ["5m", "1h"]},
            "With anthropic: put `cache_control` where the next request will find its prefix again, kept for so long. "
            "`system` is a list of blocks then, empty without a system prompt.",
        ),
    )


def _integer(least: int, most: int, default: int | None = None) -> dict[str, object]:
    schema: dict[str, object] = {"type": "integer", "minimum": least, "maximum": most}
    return schema if default is None else {**schema, "default": default}
