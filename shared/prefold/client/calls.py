"""The calls of the HTTP API as data: what to send and how to read the answer. No I/O, so both clients share them."""

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from prefold.client.answers import (
    parse_appended,
    parse_changed,
    parse_context,
    parse_found,
    parse_rewound,
    parse_turns,
)
from prefold.client.results import Appended, Changed, Context, Format, Found, JsonObject, Rewound, Session, Ttl
from prefold.client.session_answer import parse_session
from prefold.errors import InvalidInputError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request. ``parse`` reads the body of a successful answer."""

    method: str
    path: str
    parse: Callable[[JsonObject], T]
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


def create_session(session: str, options: Mapping[str, Any]) -> Call[Session]:
    """``PUT /v1/sessions/{session}``; options that are None are not sent, and ``adaptive`` as a soft ratio is null."""
    body = _given(options)
    if body.get("soft_ratio") == "adaptive":
        body["soft_ratio"] = None
    return Call("PUT", _path(session), parse_session, body=_json(body))


def session_state(session: str) -> Call[Session]:
    """``GET /v1/sessions/{session}``."""
    return Call("GET", _path(session), parse_session)


def append(session: str, turns: Iterable[Mapping[str, Any]]) -> Call[Appended]:
    """``POST …/turns``. A turn without an id gets one here, so that a retry cannot store it twice."""
    named = [{"id": uuid.uuid4().hex, **_given(turn)} for turn in turns]
    if not named:
        raise InvalidInputError("there is no turn to publish", field="turns")
    return Call("POST", _path(session, "turns"), parse_appended, body=_json({"turns": named}))


def context(
    session: str, form: Format, query: str | None, budget_tokens: int | None, cache: Ttl | None = None
) -> Call[Context]:
    """``GET …/context``."""
    asked = _given({"format": form, "query": query, "budget_tokens": budget_tokens, "cache": cache})
    parse = partial(parse_context, form=form)
    return Call("GET", _path(session, "context"), parse, query={name: str(value) for name, value in asked.items()})


def turns(session: str, after_seq: int, limit: int) -> Call[tuple[JsonObject, ...]]:
    """``GET …/turns``."""
    page = {"after_seq": str(after_seq), "limit": str(limit)}
    return Call("GET", _path(session, "turns"), parse_turns, query=page)


def search(query: str, filters: Mapping[str, Any]) -> Call[tuple[Found, ...]]:
    """``POST /v1/search``."""
    return Call("POST", "/v1/search", parse_found, body=_json({"query": query, **_given(filters)}))


def rewind(session: str, to_seq: int) -> Call[Rewound]:
    """``POST …/rewind``."""
    return Call("POST", _path(session, "rewind"), parse_rewound, body=_json({"to_seq": to_seq}))


def fork(session: str, new_session: str, at_seq: int | None) -> Call[Session]:
    """``POST …/fork``."""
    body = _given({"session": new_session, "at_seq": at_seq})
    return Call("POST", _path(session, "fork"), parse_session, body=_json(body))


def edit_turn(session: str, turn_id: str, turn: Mapping[str, Any]) -> Call[Changed]:
    """``PUT …/turns/{turn}``."""
    return Call("PUT", _turn_path(session, turn_id), parse_changed, body=_json(_given(turn)))


def remove_turn(session: str, turn_id: str) -> Call[Changed]:
    """``DELETE …/turns/{turn}``."""
    return Call("DELETE", _turn_path(session, turn_id), parse_changed)


def _path(session: str, *rest: str) -> str:
    return "/".join(["/v1/sessions", _segment(session, "session"), *rest])


def _turn_path(session: str, turn_id: str) -> str:
    return _path(session, "turns", _segment(turn_id, "turn_id"))


def _segment(name: str, field: str) -> str:
    try:
        segment = quote(name, safe="")
    except UnicodeEncodeError as error:
        raise InvalidInputError("is not valid Unicode", field=field) from error
    if not segment.strip("."):
        segment = segment.replace(".", "%2E")  # or HTTP libraries would take it for a step in the path
    if not segment:
        raise InvalidInputError("must not be empty", field=field)
    return segment


def _given(members: Mapping[str, Any]) -> JsonObject:
    # An assistant's null content is a value of OpenAI's format, not an omission.
    return {name: value for name, value in members.items() if value is not None or name == "content"}


def _json(value: object) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:  # also a lone surrogate, which UTF-8 cannot carry
        raise InvalidInputError(f"not to be sent as JSON: {error}") from error
