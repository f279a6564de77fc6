"""``POST /v1/search``: recall over all sessions of a tenant."""

from starlette.responses import Response

from prefold.conversation.ids import check_name
from prefold.errors import InvalidInputError
from prefold.gateway.answers import SearchAnswer, SearchBody, SearchResult
from prefold.gateway.bodies import convert, json_response, read_object
from prefold.gateway.exchange import Exchange
from prefold.gateway.finding import Finder, FoundTurn
from prefold.gateway.settings import GatewaySettings

_MOST_BYTES = 65_536


class SearchCalls:
    """Searches turns. Segments, summaries and facts are not stored yet: asking for these alone finds nothing."""

    def __init__(self, finder: Finder, settings: GatewaySettings) -> None:
        self._finder = finder
        self._body_seconds = settings.body_timeout_ms / 1000

    async def search(self, exchange: Exchange) -> Response:
        """The best turns for the query."""
        exchange.query()
        raw = await exchange.body(most_bytes=_MOST_BYTES, within_seconds=self._body_seconds)
        body = convert(read_object(raw, _MOST_BYTES), SearchBody)
        if not body.query.strip():
            raise InvalidInputError("must not be blank", field="query")
        user = None if body.user is None else check_name(body.user, "user")
        session = None if body.session is None else check_name(body.session, "session")
        found: list[FoundTurn] = []
        if body.kinds is None or "turn" in body.kinds:
            found = await self._finder.find(exchange.tenant, body.query, session=session, user=user, limit=body.limit)
        return json_response(SearchAnswer(results=[_result(turn) for turn in found]))


def _result(turn: FoundTurn) -> SearchResult:
    return SearchResult(
        kind="turn",
        session=turn.session,
        turn_id=turn.turn_id,
        seq=turn.seq,
        role=turn.role,
        text=turn.text,
        score=turn.score,
    )
