"""The calls of the HTTP API as data: what to send and how to read the answer. No I/O, so both clients share them."""

import json
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
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

if TYPE_CHECKING:
    from prefold.client.memory_results import State

A = TypeVar("A")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request. ``parse`` reads the body of a successful answer."""

    method: str
    path: str
    parse: Callable[[JsonObject], T]
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    lost: "Lost[Any, T] | None" = None
    direct: "Callable[[Direct], Coroutine[Any, Any, T]] | None" = None
    """The same on Redis itself; None: it needs a gateway."""


class Direct(Protocol):
    """What can be done on Redis itself: ``prefold.client.direct.calls``."""

    async def append(self, session: str, turns: Sequence[Mapping[str, Any]]) -> Appended: ...
    async def create_session(self, session: str, options: Mapping[str, Any]) -> Session: ...
    async def session(self, session: str) -> Session: ...
    async def turns(self, session: str, after_seq: int, limit: int) -> tuple[JsonObject, ...]: ...
    async def context(self, session: str, form: Format, budget_tokens: int | None, cache: Ttl | None) -> Context: ...
    async def state(self, session: str) -> "State": ...
    async def put_state(self, session: str, document: Mapping[str, Any], if_version: int | None) -> "State": ...
    async def patch_state(self, session: str, patch: Mapping[str, Any], if_version: int | None) -> "State": ...


@dataclass(frozen=True, slots=True)
class Lost(Generic[A, T]):
    """How a repeat, refused with ``code``, finds out that its own first attempt was answered and the answer lost."""

    code: str
    ask: Call[A]
    result: Callable[[A], T | None]
    """Of what ``ask`` gave; None: it was somebody else."""


def create_session(session: str, options: Mapping[str, Any]) -> Call[Session]:
    """``PUT /v1/sessions/{session}``; options that are None are not sent, and ``adaptive`` as a soft ratio is null."""
    body = given(options)
    if body.get("soft_ratio") == "adaptive":
        body["soft_ratio"] = None
    path = session_path(session)
    return Call(
        "PUT", path, parse_session, body=json_body(body), direct=lambda direct: direct.create_session(session, body)
    )


def session_state(session: str) -> Call[Session]:
    """``GET /v1/sessions/{session}``."""
    return Call("GET", session_path(session), parse_session, direct=lambda direct: direct.session(session))


def append(session: str, turns: Iterable[Mapping[str, Any]]) -> Call[Appended]:
    """``POST …/turns``. A turn without an id gets one here, so that a retry cannot store it twice."""
    body = json_body({"turns": all_named(turns)})
    return Call("POST", session_path(session, "turns"), parse_appended, body=body)


def all_named(turns: Iterable[Mapping[str, Any]]) -> list[JsonObject]:
    """The turns of one append, each with an id. InvalidInputError when there is none."""
    found = [named(turn) for turn in turns]
    if not found:
        raise InvalidInputError("there is no turn to publish", field="turns")
    return found


def named(turn: Mapping[str, Any]) -> JsonObject:
    """A turn without what was not given, and with an id."""
    told = given(turn)
    return told if "id" in told else {"id": uuid.uuid4().hex, **told}


def context(
    session: str, form: Format, query: str | None, budget_tokens: int | None, cache: Ttl | None = None
) -> Call[Context]:
    """``GET …/context``."""
    asked = given({"format": form, "query": query, "budget_tokens": budget_tokens, "cache": cache})
    return Call(
        "GET",
        session_path(session, "context"),
        partial(parse_context, form=form),
        query={name: whole_text(str(value)) for name, value in asked.items()},
        direct=None if query is not None else lambda direct: direct.context(session, form, budget_tokens, cache),
    )


def turns(session: str, after_seq: int, limit: int) -> Call[tuple[JsonObject, ...]]:
    """``GET …/turns``."""
    page = {"after_seq": str(after_seq), "limit": str(limit)}
    path = session_path(session, "turns")
    return Call("GET", path, parse_turns, query=page, direct=lambda direct: direct.turns(session, after_seq, limit))


def events(session: str) -> Call[JsonObject]:
    """``GET …/events``; only a refusal is read by ``parse``."""
    return Call("GET", session_path(session, "events"), dict, headers={"Accept": "text/event-stream"})


def search(query: str, filters: Mapping[str, Any]) -> Call[tuple[Found, ...]]:
    """``POST /v1/search``."""
    return Call("POST", "/v1/search", parse_found, body=json_body({"query": query, **given(filters)}))


def rewind(session: str, to_seq: int) -> Call[Rewound]:
    """``POST …/rewind``."""
    return Call("POST", session_path(session, "rewind"), parse_rewound, body=json_body({"to_seq": to_seq}))


def fork(session: str, new_session: str, at_seq: int | None) -> Call[Session]:
    """``POST …/fork``."""
    body = given({"session": new_session, "at_seq": at_seq})
    return Call("POST", session_path(session, "fork"), parse_session, body=json_body(body))


def edit_turn(session: str, turn_id: str, turn: Mapping[str, Any]) -> Call[Changed]:
    """``PUT …/turns/{turn}``."""
    return Call("PUT", _turnsession_path(session, turn_id), parse_changed, body=json_body(given(turn)))


def remove_turn(session: str, turn_id: str) -> Call[Changed]:
    """``DELETE …/turns/{turn}``."""
    return Call("DELETE", _turnsession_path(session, turn_id), parse_changed)


def session_path(session: str, *rest: str) -> str:
    """The path of a session, or of what is below it; ``rest`` is encoded already."""
    return "/".join(["/v1/sessions", segment(session, "session"), *rest])


def _turnsession_path(session: str, turn_id: str) -> str:
    return session_path(session, "turns", segment(turn_id, "turn_id"))


def segment(name: str, field: str) -> str:
    """A name as one segment of a path."""
    try:
        segment = quote(name, safe="")
    except UnicodeEncodeError as error:
        raise InvalidInputError("is not valid Unicode", field=field) from error
    if not segment.strip("."):
        segment = segment.replace(".", "%2E")  # or HTTP libraries would take it for a step in the path
    if not segment:
        raise InvalidInputError("must not be empty", field=field)
    return segment


def given(members: Mapping[str, Any]) -> JsonObject:
    """Without what was not given."""
    # An assistant's null content is a value of OpenAI's format, not an omission.
    return {name: value for name, value in members.items() if value is not None or name == "content"}


def json_body(value: object) -> bytes:
    """JSON in UTF-8, lone surrogates as U+FFFD as the gateway has them. ``InvalidInputError`` for what JSON cannot say."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"not to be sent as JSON: {error}") from error
    try:
        return text.encode()
    except UnicodeEncodeError:
        return whole_text(text).encode()


def whole_text(text: str) -> str:
    """Pairs of surrogates joined, lone ones as U+FFFD: what UTF-8 can carry."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
