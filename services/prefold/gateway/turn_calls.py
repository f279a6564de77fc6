"""``POST`` and ``GET /v1/sessions/{session}/turns``: the hot way in, and the verbatim log."""

import asyncio
from functools import partial

from starlette.responses import Response

from prefold.conversation.accepting import prepare_body
from prefold.conversation.encoding import encode
from prefold.conversation.ids import check_name
from prefold.errors import RefusedError
from prefold.gateway.answers import ContextNumbers, Durability
from prefold.gateway.background import InBackground
from prefold.gateway.bodies import raw_response
from prefold.gateway.exchange import Exchange, whole_number
from prefold.gateway.metrics import note_append
from prefold.gateway.settings import GatewaySettings
from prefold.quotas import Quotas
from prefold.storage import Sessions
from prefold.storage.stored import is_stored
from prefold.storage.types import AppendResult, ChangeResult
from prefold.storage.watching import Store
from prefold.tokens import TokenCounter

_DEFAULT_PAGE = 100
_MOST_PAGE = 500
THREAD_FROM_BYTES = 65_536
"""Larger bodies are read and counted in a thread, so that they do not hold up the others."""


class TurnCalls:
    """Appends turns and reads them back."""

    def __init__(
        self,
        sessions: Sessions,
        counter: InBackground[TokenCounter],
        settings: GatewaySettings,
        store: Store,
        quotas: Quotas,
    ) -> None:
        self._sessions = sessions
        self._quotas = quotas
        self._counter = counter
        self._settings = settings
        self._store = store

    async def append(self, exchange: Exchange) -> Response:
        """Store one turn, or several all or none."""
        session = check_name(exchange.path["session"], "session")
        exchange.query()
        settings = self._settings
        lease = self._quotas.of(exchange.tenant)
        if lease is not None:
            lease.check()
        raw = await exchange.body(most_bytes=settings.request_max_bytes, within_seconds=settings.body_timeout_ms / 1000)
        counter = await self._counter.get()
        if len(raw) > THREAD_FROM_BYTES:
            prepared = await asyncio.to_thread(prepare_body, raw, counter, settings)
        else:
            prepared = prepare_body(raw, counter, settings)
        stored = partial(is_stored, self._sessions, exchange.tenant, session)
        if lease is not None:
            await lease.take_for(session, len(prepared), sum(turn.tokens for turn in prepared), stored)
        try:
            result = await self._sessions.append(exchange.tenant, session, prepared)
        except RefusedError:
            if lease is not None:
                await lease.recount(session, stored)
            raise
        note_append(result)
        return raw_response(append_json(result, await self._store.promised()), 201)

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


_TURN = b'{"id":%b,"seq":%d,"tokens":%d,"duplicate":%b}'
_ANSWER = (
    b'{"turns":[%b],"context":{"version":%d,"swaps":%d,"tokens":%d,"window_tokens":%d,"hard_limit_tokens":%d,'
    b'"status":"%b"},"durability":"%b"}'
)
_SAYS = (b"false", b"true")


def append_json(result: AppendResult, durability: Durability) -> bytes:
    """``AppendAnswer`` as JSON, put together in a fraction of the time that making one takes."""
    turns = [_TURN % (encode(one.id), one.seq, one.tokens, _SAYS[one.duplicate]) for one in result.turns]
    return _ANSWER % (
        b",".join(turns),
        result.version,
        result.swaps,
        result.tokens,
        result.window_tokens,
        result.hard_limit_tokens,
        result.status.encode(),
        durability.encode(),
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
