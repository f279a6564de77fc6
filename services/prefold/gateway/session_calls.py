"""``PUT`` and ``GET /v1/sessions/{session}``."""

from functools import partial

from msgspec.structs import asdict
from starlette.responses import Response

from prefold.conversation.accepting import read_object
from prefold.conversation.ids import check_name
from prefold.errors import RefusedError
from prefold.gateway import answers
from prefold.gateway.answers import SessionAnswer, SessionBody, SessionWritten
from prefold.gateway.background import InBackground
from prefold.gateway.bodies import convert, json_response, stored_json
from prefold.gateway.exchange import Exchange
from prefold.gateway.settings import GatewaySettings
from prefold.gateway.summary_views import (
    active_of,
    iso_time,
    shared_prefix_of,
    standby_of,
    threshold_of,
    usage_of,
)
from prefold.pinned import Pinned, change_state, with_proposals
from prefold.quotas import Quotas
from prefold.storage import Sessions
from prefold.storage.memory_types import StoredState
from prefold.storage.session_options import options_of
from prefold.storage.stored import is_stored
from prefold.storage.types import SessionView
from prefold.tokens import TokenCounter


class SessionCalls:
    """A session's own settings and numbers."""

    def __init__(
        self, sessions: Sessions, counter: InBackground[TokenCounter], settings: GatewaySettings, quotas: Quotas
    ) -> None:
        self._sessions = sessions
        self._quotas = quotas
        self._counter = counter
        self._most_bytes = settings.turn_max_bytes
        self._body_seconds = settings.body_timeout_ms / 1000

    async def put(self, exchange: Exchange) -> Response:
        """Create the session or change what the body names."""
        session = check_name(exchange.path["session"], "session")
        exchange.query()
        raw = await exchange.body(most_bytes=self._most_bytes, within_seconds=self._body_seconds)
        body = convert(read_object(raw, self._most_bytes), SessionBody)
        options = options_of(body, await self._counter.get())
        stored = partial(is_stored, self._sessions, exchange.tenant, session)
        if (lease := self._quotas.of(exchange.tenant)) is not None:
            await lease.admit(session, stored, is_new=True)
        try:
            view = await self._sessions.open(exchange.tenant, session, options)
        except RefusedError:
            if lease is not None:
                await lease.recount(session, stored)
            raise
        if options.proposals is not None or options.state_cap_tokens is not None:
            view = await self._settled(exchange.tenant, session)
        return json_response(written_answer(view, may_read=exchange.may_read))

    async def _settled(self, tenant: str, session: str) -> SessionView:
        """Once what is proposed stands in contexts or not, as the session's options have it now."""
        counter = await self._counter.get()

        def settled(pinned: Pinned, stored: StoredState) -> Pinned:
            apply = stored.proposals == "apply"
            return with_proposals(pinned, (), apply=apply, counter=counter, cap_tokens=stored.cap_tokens)

        await change_state(self._sessions, tenant, session, settled)
        return await self._sessions.view(tenant, session)

    async def get(self, exchange: Exchange) -> Response:
        """The session as it stands."""
        session = check_name(exchange.path["session"], "session")
        exchange.query()
        return json_response(session_answer(await self._sessions.view(exchange.tenant, session)))


def written_answer(view: SessionView, *, may_read: bool) -> SessionWritten:
    """What a write tells of a session: all of it, or its numbers."""
    return session_answer(view) if may_read else _numbers(view)


def session_answer(view: SessionView) -> SessionAnswer:
    """The documented shape of a session."""
    return SessionAnswer(
        **asdict(_numbers(view)),
        user=view.user or None,
        model=view.model or None,
        shared_prefix=shared_prefix_of(view),
        system=view.system or None,
        tools=stored_json(view.tools),
        metadata=stored_json(view.metadata),
        forked_from=_origin(view),
    )


def _numbers(view: SessionView) -> SessionWritten:
    return SessionWritten(
        session=view.ref.session,
        limits=answers.Limits(
            hard_limit_tokens=view.hard_limit_tokens,
            soft_threshold_tokens=view.soft_threshold_tokens,
            keep_recent_turns=view.keep_recent_turns,
            soft_ratio=view.soft_ratio,
        ),
        head_seq=view.head_seq,
        version=view.version,
        swaps=view.swaps,
        status=view.status,
        degraded=view.degraded,
        tokens=answers.TokenNumbers(
            total=view.tokens,
            window=view.window_tokens,
            fixed=view.fixed_tokens,
            undegraded=view.undegraded_tokens,
            log=view.log_tokens,
        ),
        calibration=view.calibration,
        active=active_of(view),
        standby=standby_of(view),
        build=_build(view),
        last_build_error=view.last_build_error or None,
        resting_until_tokens=view.resting_until_tokens or None,
        soft_threshold=threshold_of(view),
        usage=usage_of(view.usage),
        limit_crossings=view.limit_crossings,
        ready_crossings=view.ready_crossings,
        embedded_to=view.embedded_to,
        close_after_seconds=view.close_after_seconds,
        closed_at=iso_time(view.closed_at_ms) if view.closed_at_ms else None,
        remembered_to=view.remembered_to,
        state_cap_tokens=view.state_cap_tokens,
        proposals=view.proposals,
        created_at=iso_time(view.created_at_ms),
        updated_at=iso_time(view.updated_at_ms),
    )


def _origin(view: SessionView) -> answers.ForkOrigin | None:
    origin = view.forked_from
    return None if origin is None else answers.ForkOrigin(session=origin.session, at_seq=origin.at_seq)


def _build(view: SessionView) -> answers.Build | None:
    build = view.build
    if build is None:
        return None
    return answers.Build(covers_to=build.covers_to, epoch=build.epoch, lease_until=iso_time(build.lease_until_ms))
