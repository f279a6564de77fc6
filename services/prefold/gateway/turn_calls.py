"""``POST`` and ``GET /v1/sessions/{session}/turns``: the hot way in, and the verbatim log."""

import asyncio
import secrets
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from prefold.conversation import prepare_turn
from prefold.conversation.encoding import encode
from prefold.conversation.ids import check_name
from prefold.conversation.turns import PreparedTurn
from prefold.errors import InvalidInputError, TooLargeError
from prefold.gateway import answers
from prefold.gateway.answers import AppendAnswer, ContextNumbers, Durability
from prefold.gateway.background import InBackground
from prefold.gateway.bodies import json_response, raw_response, read_object
from prefold.gateway.durability import Store
from prefold.gateway.exchange import Exchange, whole_number
from prefold.gateway.settings import GatewaySettings
from prefold.storage import Sessions
from prefold.storage.types import AppendResult, ChangeResult
from prefold.tokens import TokenCounter

_DEFAULT_PAGE = 100
_MOST_PAGE = 500
THREAD_FROM_BYTES = 65_536
"""Larger bodies are read and counted in a thread, so that they do not hold up the others."""


class TurnCalls:
    """Appends turns and reads them back."""

    def __init__(
        self, sessions: Sessions, counter: InBackground[TokenCounter], settings: GatewaySettings, store: Store
    ) -> None:
        self._sessions = sessions
        self._counter = counter
        self._settings = settings
        self._store = store

    async def append(self, exchange: Exchange) -> Response:
        """Store one turn, or several all or none."""
        session = check_name(exchange.path["session"], "session")
        exchange.query()
        settings = self._settings
        raw = await exchange.body(most_bytes=settings.request_max_bytes, within_seconds=settings.body_timeout_ms / 1000)
        counter = await self._counter.get()
        if len(raw) > THREAD_FROM_BYTES:
            prepared = await asyncio.to_thread(prepare, raw, counter, settings)
        else:
            prepared = prepare(raw, counter, settings)
        result = await self._sessions.append(exchange.tenant, session, prepared)
        return json_response(append_answer(result, await self._store.promised()), 201)

    async def read(self, exchange: Exchange) -> Response:
        """A page of the log."""
        session = check_name(exchange.path["session"], "session")
        query = exchange.query("after_seq", "limit")
        after = whole_number(query.get("after_seq", "0"), "after_seq", least=0, most=2**53)
        limit = whole_number(query.get("limit", str(_DEFAULT_PAGE)), "limit", least=1, most=_MOST_PAGE)
        turns = await self._sessions.read_turns(exchange.tenant, session, after, limit)
        if not turns:
            await self._sessions.view(exchange.tenant, session)  # no such session is another answer than no more turns
        return raw_response(b'{"turns":[' + b",".join(turn.verbatim_json for turn in turns) + b"]}")


def prepare(raw: bytes, counter: TokenCounter, settings: GatewaySettings) -> list[PreparedTurn]:
    """All turns of a body, ready to be stored. Refuses the whole body for one bad turn, naming its place."""
    document = read_object(raw, settings.request_max_bytes)
    if "turns" not in document:
        _check_size(len(raw), settings.turn_max_bytes, "body")
        return [prepare_one(document, counter)]
    turns = _listed(document, settings.turns_per_request)
    if len(raw) > settings.turn_max_bytes:
        for number, turn in enumerate(turns):
            _check_size(len(encode(turn)), settings.turn_max_bytes, f"turns[{number}]")
    prepared: list[PreparedTurn] = []
    calls = 0
    for number, turn in enumerate(turns):
        prepared.append(prepare_turn(turn, number, counter, _new_id))
        calls += len(prepared[-1].call_ids) + len(prepared[-1].results)
        if calls > settings.calls_per_request:
            raise TooLargeError(
                f"at most {settings.calls_per_request} tool calls and results in one call", field="turns"
            )
    return prepared


def prepare_one(document: dict[str, Any], counter: TokenCounter) -> PreparedTurn:
    """A turn that is the whole body, so that paths begin at its members."""
    try:
        return prepare_turn(document, 0, counter, _new_id)
    except InvalidInputError as error:
        error.field = error.field.removeprefix("turns[0]").removeprefix(".") if error.field else None
        raise


def _new_id() -> str:
    return secrets.token_hex(12)


def append_answer(result: AppendResult, durability: Durability) -> AppendAnswer:
    """The documented shape of an append's result."""
    return AppendAnswer(
        turns=[
            answers.AcceptedTurn(id=turn.id, seq=turn.seq, tokens=turn.tokens, duplicate=turn.duplicate)
            for turn in result.turns
        ],
        context=context_numbers(result),
        durability=durability,
    )


def context_numbers(result: AppendResult | ChangeResult) -> ContextNumbers:
    """Where the context stands after a call."""
    return ContextNumbers(
        version=result.version,
        swaps=result.swaps,
        tokens=result.tokens,
        window_tokens=result.window_tokens,
        hard_limit_tokens=result.hard_limit_tokens,
        status=result.status,
    )


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
