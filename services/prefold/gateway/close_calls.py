"""``POST …/close``: the explicit end of a session."""

from starlette.responses import Response

from prefold.conversation.ids import check_name
from prefold.gateway.bodies import json_response
from prefold.gateway.close_answers import CloseAnswer
from prefold.gateway.exchange import Exchange
from prefold.gateway.summary_views import iso_time
from prefold.storage import Sessions


class CloseCalls:
    """Asks for the end. The work itself is the memory workers'."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def close(self, exchange: Exchange) -> Response:
        """Ask, and say what is still open: 202 as long as anything is. Safe to repeat.

        A session in which nothing was said has nothing to end.
        """
        session = check_name(exchange.path["session"], "session")
        exchange.query()
        view = await self._sessions.ask_close(exchange.tenant, session)
        answer = CloseAnswer(
            session=session,
            closed=view.closed_at_ms > 0 or view.head_seq == 0,
            closed_at=iso_time(view.closed_at_ms) if view.closed_at_ms else None,
            head_seq=view.head_seq,
            remembered_to=view.remembered_to,
            turns_open=max(0, view.head_seq - view.remembered_to),
        )
        return json_response(answer, 200 if answer.closed else 202)
