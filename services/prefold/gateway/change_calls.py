"""Branching and correcting: ``POST …/rewind``, ``POST …/fork``, ``PUT`` and ``DELETE …/turns/{turn}``.

All four are safe to repeat: what is so already is answered alike, and what a failure had left is finished.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Protocol

import structlog
from starlette.responses import Response

from prefold.assembly.budget import served_tokens, thousandths
from prefold.audit import AuditLog
from prefold.conversation import check_name, check_turn_id, redacted_turn
from prefold.conversation.accepting import prepare_one, read_object
from prefold.conversation.turns import PreparedTurn
from prefold.errors import InvalidInputError, RefusedError, TransientError
from prefold.gateway.answers import Remains
from prefold.gateway.auditing import note_removal
from prefold.gateway.background import InBackground
from prefold.gateway.bodies import convert, json_response
from prefold.gateway.change_answers import (
    ChangeAnswer,
    ChangedTurn,
    ForkBody,
    RewindAnswer,
    RewindBody,
)
from prefold.gateway.exchange import Exchange
from prefold.gateway.remains import remaining
from prefold.gateway.rewriting import LogRewrites
from prefold.gateway.session_calls import written_answer
from prefold.gateway.settings import GatewaySettings
from prefold.gateway.since import before_of, life_before
from prefold.gateway.turn_calls import THREAD_FROM_BYTES, context_numbers
from prefold.gateway.withdrawing import Withdrawing
from prefold.pinned import copied_without
from prefold.quotas import Quotas
from prefold.storage import Sessions
from prefold.storage.keys import SessionKeys, UserKeys
from prefold.storage.memory_types import TurnSpan
from prefold.storage.stored import is_stored
from prefold.storage.types import ChangeResult, SessionRef, SessionView
from prefold.storage.watching import Store
from prefold.tokens import TokenCounter

log = structlog.get_logger(__name__)

_MOST_BYTES = 4_096
"""Of a body that names a place."""
_FORGET_WITHIN_SECONDS = 2.0
_CHANGE_WITHIN_SECONDS = 60.0
"""A change copies the session's log: about a second for 10,000 turns."""


class TurnForgettingIndex(Protocol):
    """The vectors, as a change of turns needs them."""

    async def forget_turns(
        self,
        tenant: str,
        session: str,
        incarnation: str,
        first_seq: int,
        last_seq: int,
        *,
        below_revision: int | None = None,
    ) -> int:
        """Deletes the vectors of these turns, all or those of earlier revisions; how many are left.

        Raises ``UnavailableError``.
        """
        ...


class ChangeCalls:
    """Takes back, copies, corrects and removes. What was derived from old words is void when a call is answered."""

    def __init__(
        self,
        sessions: Sessions,
        index: TurnForgettingIndex,
        rewrites: LogRewrites,
        counter: InBackground[TokenCounter],
        settings: GatewaySettings,
        store: Store,
        withdrawing: Withdrawing,
        quotas: Quotas,
        audit: AuditLog,
    ) -> None:
        self._sessions = sessions
        self._quotas = quotas
        self._audit = audit
        self._withdrawing = withdrawing
        self._index = index
        self._rewrites = rewrites
        self._counter = counter
        self._most_bytes = settings.turn_max_bytes
        self._body_seconds = settings.body_timeout_ms / 1000
        self._store = store

    async def rewind(self, exchange: Exchange) -> Response:
        """Take back every turn after one."""
        session = check_name(exchange.path["session"], "session")
        body = convert(await self._place(exchange), RewindBody)
        exchange.take_time(_CHANGE_WITHIN_SECONDS)
        derived = await self._withdrawing.derived_of(exchange.tenant, session)
        result = await self._sessions.rewind(exchange.tenant, session, body.to_seq)
        # Repeated or not: nothing after the place stands, so whatever is found of it has to go.
        vectors_left = await self._forget(result.ref, body.to_seq + 1, result.head_seq)
        view = await self._sessions.view(exchange.tenant, session)
        gone = TurnSpan(body.to_seq + 1, result.head_seq)
        facts_withdrawn = await self._withdrawing.of_turns(result.ref, view.user, gone, derived)
        answer = RewindAnswer(
            session=session,
            to_seq=body.to_seq,
            turns=result.turns,
            head_seq=result.head_seq,
            vectors_left=vectors_left,
            facts_withdrawn=facts_withdrawn,
            context=context_numbers(result),
            remains=await self._remains(view, vectors_left),
            durability=await self._store.held(),
        )
        return json_response(answer)

    async def fork(self, exchange: Exchange) -> Response:
        """Begin a new session with the turns up to one."""
        session = check_name(exchange.path["session"], "session")
        body = convert(await self._place(exchange), ForkBody)
        fork = check_name(body.session, "session")
        exchange.take_time(_CHANGE_WITHIN_SECONDS)
        counter = await self._counter.get()

        def cut_state(stored: bytes, spans: Sequence[TurnSpan]) -> bytes:
            return copied_without(stored, spans, counter)

        stored = partial(is_stored, self._sessions, exchange.tenant, fork)
        if (lease := self._quotas.of(exchange.tenant)) is not None:
            await lease.admit(fork, stored, is_new=True)
        try:
            made = await self._sessions.fork(exchange.tenant, session, fork, body.at_seq, cut_state=cut_state)
        except RefusedError:
            if lease is not None:
                await lease.recount(fork, stored)
            raise
        return json_response(written_answer(made, may_read=exchange.may_read), 201)

    async def edit(self, exchange: Exchange) -> Response:
        """Replace what a turn says."""
        session, turn_id = _names(exchange)
        prepared = await self._prepared(exchange, turn_id)
        exchange.take_time(_CHANGE_WITHIN_SECONDS)
        derived = await self._withdrawing.derived_of(exchange.tenant, session)
        result = await self._sessions.edit_turn(exchange.tenant, session, turn_id, prepared)
        return await self._answer(result, turn_id, derived)

    async def remove(self, exchange: Exchange) -> Response:
        """Put a marker in a turn's place."""
        session, turn_id = _names(exchange)
        before_ms = before_of(exchange)
        exchange.take_time(_CHANGE_WITHIN_SECONDS)
        await life_before(self._sessions, exchange.tenant, session, before_ms)
        stored = await self._sessions.find_turn(exchange.tenant, session, turn_id)
        redacted = redacted_turn(stored, await self._counter.get())
        derived = await self._withdrawing.derived_of(exchange.tenant, session)
        result = await self._sessions.remove_turn(exchange.tenant, session, turn_id, redacted)
        caller, subject = exchange.caller, {"session": session, "incarnation": result.ref.incarnation, "turn": turn_id}
        await note_removal(self._audit, "turn_removed", caller, subject)
        return await self._answer(result, turn_id, derived)

    async def _answer(self, result: ChangeResult, turn_id: str, derived: frozenset[str]) -> Response:
        ref = result.ref
        turn = await self._sessions.find_turn(ref.tenant, ref.session, turn_id)
        view = await self._sessions.view(ref.tenant, ref.session)
        vectors_left = await self._forget(ref, turn.seq, turn.seq, turn.revision)
        facts_withdrawn = await self._withdrawing.of_turns(
            ref, view.user, TurnSpan(turn.seq, turn.seq), derived, below_revision=turn.revision
        )
        answer = ChangeAnswer(
            turn=ChangedTurn(
                id=turn.id,
                seq=turn.seq,
                tokens=served_tokens(turn.tokens, thousandths(view.calibration)),
                revision=turn.revision,
            ),
            changed=result.changed,
            removed=turn.removed,
            vectors_left=vectors_left,
            facts_withdrawn=facts_withdrawn,
            context=context_numbers(result),
            # A turn that never said anything else has left nothing behind.
            remains=await self._remains(view, vectors_left) if turn.revision else [],
            durability=await self._store.held(),
        )
        return json_response(answer)

    async def _remains(self, view: SessionView, vectors_left: int | None) -> list[Remains]:
        keys = [SessionKeys.of(view.ref.tenant, view.ref.session).turns]
        if view.user:  # what was known from the turns lay where the user is, perhaps on another server
            keys.append(UserKeys.of(view.ref.tenant, view.user).meta)
        forks = await self._sessions.living_forks(view.ref.tenant, view.forks)
        return await remaining(self._rewrites, *keys, has_vectors=vectors_left is None, forks=forks)

    async def _forget(
        self, ref: SessionRef, first_seq: int, last_seq: int, below_revision: int | None = None
    ) -> int | None:
        """Vectors that are left; ``None``: not known. The session's state makes workers delete them in any case."""
        if first_seq > last_seq:
            return 0
        try:
            async with asyncio.timeout(_FORGET_WITHIN_SECONDS):
                return await self._index.forget_turns(
                    ref.tenant, ref.session, ref.incarnation, first_seq, last_seq, below_revision=below_revision
                )
        except (TransientError, TimeoutError) as error:
            log.warning("vectors_not_forgotten", tenant=ref.tenant, session=ref.session, error=type(error).__qualname__)
            return None

    async def _place(self, exchange: Exchange) -> dict[str, object]:
        exchange.query()
        raw = await exchange.body(most_bytes=_MOST_BYTES, within_seconds=self._body_seconds)
        return read_object(raw, _MOST_BYTES)

    async def _prepared(self, exchange: Exchange, turn_id: str) -> PreparedTurn:
        exchange.query()
        raw = await exchange.body(most_bytes=self._most_bytes, within_seconds=self._body_seconds)
        counter = await self._counter.get()
        if len(raw) > THREAD_FROM_BYTES:
            return await asyncio.to_thread(_corrected, raw, turn_id, self._most_bytes, counter)
        return _corrected(raw, turn_id, self._most_bytes, counter)


def _names(exchange: Exchange) -> tuple[str, str]:
    return check_name(exchange.path["session"], "session"), check_turn_id(exchange.path["turn"], "turn")


def _corrected(raw: bytes, turn_id: str, most_bytes: int, counter: TokenCounter) -> PreparedTurn:
    document = read_object(raw, most_bytes)
    if document.get("id") not in (None, turn_id):
        raise InvalidInputError("is another than in the path", code="id_mismatch", field="id")
    document.pop("usage", None)  # it spoke of the context that the old words met
    named = {**document, "id": turn_id} if "id" in document else {"id": turn_id, **document}
    return prepare_one(named, counter)
