"""Turns as backends publish them, over HTTP or on an ingest stream: read within limits, then prepared. One way for both."""

import secrets
from collections.abc import Sequence
from typing import Any, Protocol

from prefold.conversation.encoding import encode
from prefold.conversation.prepare import prepare_turn
from prefold.conversation.strict_json import parse_json
from prefold.conversation.turns import PreparedTurn
from prefold.errors import InvalidInputError, TooLargeError
from prefold.tokens import TokenCounter

__all__ = ["BodyLimits", "TurnLimits", "new_id", "prepare_body", "prepare_one", "prepare_published", "read_object"]


class TurnLimits(Protocol):
    """What one published turn may be."""

    @property
    def turn_max_bytes(self) -> int: ...


class BodyLimits(TurnLimits, Protocol):
    """What one call that publishes turns may bring."""

    @property
    def request_max_bytes(self) -> int: ...
    @property
    def turns_per_request(self) -> int: ...
    @property
    def calls_per_request(self) -> int: ...


def read_object(raw: bytes, most_bytes: int) -> dict[str, Any]:
    """The JSON object of a body. Refuses (400) what is not strict JSON or no object."""
    value = parse_json(raw, max_bytes=most_bytes)
    if not isinstance(value, dict):
        raise InvalidInputError("the body must be a JSON object", code="malformed_body", field="body")
    return value


def prepare_body(raw: bytes, counter: TokenCounter, limits: BodyLimits) -> list[PreparedTurn]:
    """All turns of a body, ready to be stored. Refuses the whole body for one bad turn, naming its place."""
    document = read_object(raw, limits.request_max_bytes)
    if "turns" not in document:
        _check_size(len(raw), limits.turn_max_bytes, "body")
        return [prepare_one(document, counter)]
    turns = _listed(document, limits.turns_per_request)
    if len(raw) > limits.turn_max_bytes:
        for number, turn in enumerate(turns):
            _check_size(len(encode(turn)), limits.turn_max_bytes, f"turns[{number}]")
    prepared: list[PreparedTurn] = []
    calls = 0
    for number, turn in enumerate(turns):
        prepared.append(prepare_turn(turn, number, counter, new_id))
        calls += len(prepared[-1].call_ids) + len(prepared[-1].results)
        if calls > limits.calls_per_request:
            raise TooLargeError(f"at most {limits.calls_per_request} tool calls and results in one call", field="turns")
    return prepared


def prepare_published(raw: bytes, counter: TokenCounter, limits: TurnLimits) -> PreparedTurn:
    """One turn that stands by itself and brings its own id, without which nobody could tell a repeat from news."""
    _check_size(len(raw), limits.turn_max_bytes, "turn")
    document = read_object(raw, limits.turn_max_bytes)
    if document.get("id") is None:
        raise InvalidInputError("a published turn needs an id of its own", code="id_missing", field="id")
    return prepare_one(document, counter)


def prepare_one(document: dict[str, Any], counter: TokenCounter) -> PreparedTurn:
    """A turn that is the whole body, so that paths begin at its members."""
    try:
        return prepare_turn(document, 0, counter, new_id)
    except InvalidInputError as error:
        error.field = error.field.removeprefix("turns[0]").removeprefix(".") if error.field else None
        raise


def new_id() -> str:
    """An id for a turn that brought none."""
    return secrets.token_hex(12)


def _listed(document: dict[str, Any], most: int) -> Sequence[Any]:
    for name in document:
        if name != "turns":
            raise InvalidInputError("beside `turns` there is no other member", field=name)
    turns = document["turns"]
    if not isinstance(turns, list) or not turns:
        raise InvalidInputError("must be a list of one turn or more", field="turns")
    if len(turns) > most:
        raise TooLargeError(f"at most {most} turns in one call", field="turns")
    return turns


def _check_size(size: int, most: int, field: str) -> None:
    if size > most:
        raise TooLargeError(f"the turn is larger than {most} bytes", field=field)
