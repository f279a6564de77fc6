"""From the gateway's JSON to results, and from its refusals to errors. Members that we do not know are ignored."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx

from prefold.client.results import (
    Appended,
    AppendedTurn,
    Changed,
    ChangedTurn,
    Context,
    ContextState,
    Format,
    Found,
    JsonObject,
    Remains,
    Rewound,
)
from prefold.errors import (
    ConflictError,
    GoneError,
    InvalidInputError,
    NotFoundError,
    OverloadedError,
    PrefoldError,
    RefusedError,
    TooLargeError,
    TransientError,
    UnauthenticatedError,
    UnavailableError,
)

T = TypeVar("T")

_REFUSALS: Mapping[int, type[RefusedError]] = {
    400: InvalidInputError,
    401: UnauthenticatedError,
    403: UnauthenticatedError,
    404: NotFoundError,
    409: ConflictError,
    412: ConflictError,
    410: GoneError,
    413: TooLargeError,
    422: InvalidInputError,
}
_OUTAGES: Mapping[int, type[TransientError]] = {
    408: UnavailableError,
    429: OverloadedError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}


def read(response: httpx.Response, parse: Callable[[JsonObject], T]) -> T:
    """The parsed answer. Raises the error that the response stands for (``prefold.errors``)."""
    if response.is_success:
        try:
            return parse(response.json())
        except (ValueError, KeyError, TypeError) as error:
            raise PrefoldError(
                f"{response.url} does not answer as a Prefold gateway does", code="unexpected_answer"
            ) from error
    raise _error_of(response)


_PROBLEM = {"type", "title", "status", "detail", "code", "field"}
"""Members of every problem document; others belong to its code."""


def _error_of(response: httpx.Response) -> PrefoldError:
    problem = _problem(response)
    error = _told(response, problem)
    error.members = {name: value for name, value in problem.items() if name not in _PROBLEM}
    return error


def _told(response: httpx.Response, problem: JsonObject) -> PrefoldError:
    status = response.status_code
    detail = str(problem.get("detail") or f"{response.url} answered {status} {response.reason_phrase}".rstrip())
    code, field = problem.get("code"), problem.get("field")
    outage = _OUTAGES.get(status)
    if outage is not None:
        return outage(detail, code=code, field=field, retry_after=retry_after(response.headers))
    if status >= 500:
        return PrefoldError(detail, code=code or "internal", field=field)
    return _REFUSALS.get(status, RefusedError)(detail, code=code, field=field)


def _problem(response: httpx.Response) -> JsonObject:
    try:
        problem = json.loads(response.content)
    except ValueError:  # a proxy's error page
        return {}
    return problem if isinstance(problem, dict) else {}


def retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """The pause that ``Retry-After`` asks for, in seconds or until a date; None without a readable one."""
    value = headers.get("retry-after", "").strip()
    try:
        if value.isascii() and value.isdecimal():
            return timedelta(seconds=int(value))
        until = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    at = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(timedelta(0), at - datetime.now(UTC))


def parse_appended(answer: JsonObject) -> Appended:
    """Of ``POST …/turns``."""
    return Appended(
        turns=tuple(
            AppendedTurn(turn["id"], turn["seq"], turn["tokens"], turn["duplicate"]) for turn in answer["turns"]
        ),
        context=_context_state(answer["context"]),
        durability=answer["durability"],
    )


def _context_state(state: Mapping[str, Any]) -> ContextState:
    return ContextState(
        version=state["version"],
        swaps=state["swaps"],
        tokens=state["tokens"],
        window_tokens=state["window_tokens"],
        hard_limit_tokens=state["hard_limit_tokens"],
        status=state["status"],
    )


def parse_context(answer: JsonObject, form: Format) -> Context:
    """Of ``GET …/context``."""
    system = answer["system"]
    blocks = () if isinstance(system, str) else tuple(system)
    return Context(
        version=answer["version"],
        covers_to=answer["covers_to"],
        status=answer["status"],
        format=form,
        system=system if isinstance(system, str) else "".join(block["text"] for block in blocks),
        system_blocks=blocks,
        messages=tuple(answer["messages"]),
        tokens=answer["tokens"]["total"],
        sections=dict(answer["tokens"]["sections"]),
        recalled=tuple(answer["recalled"]),
        left_out=tuple(answer["left_out"]),
        open_calls=tuple(answer.get("open_calls", ())),
    )


def parse_turns(answer: JsonObject) -> tuple[JsonObject, ...]:
    """Of ``GET …/turns``."""
    return tuple(answer["turns"])


def parse_found(answer: JsonObject) -> tuple[Found, ...]:
    """Of ``POST /v1/search``."""
    return tuple(_found(hit) for hit in answer["results"])


def _found(hit: Mapping[str, Any]) -> Found:
    return Found(
        kind=hit["kind"],
        text=hit["text"],
        score=hit["score"],
        session=hit.get("session", ""),
        turn_id=hit.get("turn_id", ""),
        seq=hit.get("seq", 0),
        role=hit.get("role", ""),
        copies=hit.get("copies", 0),
        fact_id=hit.get("fact_id", ""),
        sources=tuple(hit.get("sources", ())),
        first_seq=hit.get("first_seq", 0),
        last_seq=hit.get("last_seq", 0),
    )


def parse_rewound(answer: JsonObject) -> Rewound:
    """Of ``POST …/rewind``."""
    return Rewound(
        session=answer["session"],
        to_seq=answer["to_seq"],
        turns=answer["turns"],
        head_seq=answer["head_seq"],
        context=_context_state(answer["context"]),
        vectors_left=answer["vectors_left"],
        remains=_remains(answer),
        durability=answer["durability"],
    )


def parse_changed(answer: JsonObject) -> Changed:
    """Of ``PUT`` and ``DELETE …/turns/{turn}``."""
    turn = answer["turn"]
    return Changed(
        turn=ChangedTurn(turn["id"], turn["seq"], turn["tokens"], turn["revision"]),
        changed=answer["changed"],
        removed=answer["removed"],
        context=_context_state(answer["context"]),
        vectors_left=answer["vectors_left"],
        remains=_remains(answer),
        durability=answer["durability"],
    )


def _remains(answer: JsonObject) -> tuple[Remains, ...]:
    return tuple(Remains(one["where"], one["until"]) for one in answer["remains"])
