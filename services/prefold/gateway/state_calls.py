"""``GET``, ``PUT`` and ``PATCH …/state``, and the backend's word on what workers propose for it."""

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import asdict
from starlette.responses import Response

from prefold.conversation.accepting import read_object
from prefold.conversation.ids import check_name
from prefold.errors import InvalidInputError
from prefold.gateway.background import InBackground
from prefold.gateway.bodies import convert, json_response
from prefold.gateway.exchange import MERGE_PATCH, Exchange
from prefold.gateway.problems import HttpRefusalError
from prefold.gateway.settings import GatewaySettings
from prefold.gateway.state_answers import ProposalId, ProposalTurn, StateAnswer, StatePatch, StateProposal, StateWritten
from prefold.pinned import (
    MOST_BODY_BYTES,
    Pinned,
    PinnedState,
    Proposal,
    StateTooLongError,
    accepted,
    change_state,
    decode,
    merged,
    rejected,
    with_state,
)
from prefold.pinned.state import EntityName, PinnedText
from prefold.storage import Sessions
from prefold.storage.memory_types import StoredState
from prefold.tokens import TokenCounter

T = TypeVar("T")
Change = Callable[[Pinned, StoredState, TokenCounter], Pinned]


class StateCalls:
    """Reads and writes pinned states. Writes are whole or refused, and what a backend writes always wins."""

    def __init__(self, sessions: Sessions, counter: InBackground[TokenCounter], settings: GatewaySettings) -> None:
        self._sessions = sessions
        self._counter = counter
        self._body_seconds = settings.body_timeout_ms / 1000

    async def get(self, exchange: Exchange) -> Response:
        """The state with what is proposed for it."""
        session = check_name(exchange.path["session"], "session")
        exchange.query()
        stored = await self._sessions.read_state(exchange.tenant, session)
        return _answer(_shown(stored, decode(stored.body)))

    async def put(self, exchange: Exchange) -> Response:
        """Replace the state."""
        state = _checked(await self._document(exchange), PinnedState)
        return await self._change(exchange, lambda pinned, stored, counter: _written(pinned, state, stored, counter))

    async def patch(self, exchange: Exchange) -> Response:
        """Change what the patch names."""
        patch = await self._document(exchange, MERGE_PATCH)
        _checked(patch, StatePatch)

        def change(pinned: Pinned, stored: StoredState, counter: TokenCounter) -> Pinned:
            return _written(pinned, _checked(merged(pinned.state, patch), PinnedState), stored, counter)

        return await self._change(exchange, change)

    async def accept(self, exchange: Exchange) -> Response:
        """A proposal becomes the backend's own entry."""
        name = _proposal_id(exchange)
        exchange.query()
        return await self._change(exchange, lambda pinned, stored, counter: _accepted(pinned, name, stored, counter))

    async def reject(self, exchange: Exchange) -> Response:
        """A proposal goes, and does not come again. Repeating is safe."""
        name = _proposal_id(exchange)
        exchange.query()
        return await self._change(
            exchange, lambda pinned, stored, counter: _rejected(pinned, name, stored, counter), forgets=True
        )

    async def _document(self, exchange: Exchange, *media: bytes) -> dict[str, object]:
        exchange.query()
        raw = await exchange.body(most_bytes=MOST_BODY_BYTES, within_seconds=self._body_seconds, also=media)
        return read_object(raw, MOST_BODY_BYTES)

    async def _change(self, exchange: Exchange, change: Change, *, forgets: bool = False) -> Response:
        session = check_name(exchange.path["session"], "session")
        wanted = exchange.header(b"if-match")
        counter = await self._counter.get()

        def changed(pinned: Pinned, stored: StoredState) -> Pinned:
            _check_version(wanted, stored.version)
            return change(pinned, stored, counter)

        try:
            kept = await change_state(self._sessions, exchange.tenant, session, changed, forgets=forgets)
        except StateTooLongError as error:
            if exchange.may_read:
                raise
            raise _without_entries(error) from error
        pinned = decode(kept.body)
        return _answer(_shown(kept, pinned) if exchange.may_read else _numbers(kept, pinned))


def _checked(document: dict[str, object], kind: type[T]) -> T:
    """The document as ``kind``. A refusal names the entity too, which the decoder does not."""
    try:
        return convert(document, kind)
    except InvalidInputError as error:
        entities = document.get("entities")
        if error.field in ("entities", "entities[...]") and isinstance(entities, dict):
            wrong = [name for name, value in entities.items() if not _is_entity(name, value)]
            error.field = f"entities.{wrong[0][:60]}" if wrong else "entities"
        raise


def _is_entity(name: str, value: object) -> bool:
    try:
        convert({name: value}, dict[EntityName, PinnedText | None])
    except InvalidInputError:
        return False
    return True


def _written(pinned: Pinned, state: PinnedState, stored: StoredState, counter: TokenCounter) -> Pinned:
    apply = stored.proposals == "apply"
    return with_state(pinned, state, apply=apply, counter=counter, cap_tokens=stored.cap_tokens)


def _accepted(pinned: Pinned, name: str, stored: StoredState, counter: TokenCounter) -> Pinned:
    apply = stored.proposals == "apply"
    return accepted(pinned, name, apply=apply, counter=counter, cap_tokens=stored.cap_tokens)


def _rejected(pinned: Pinned, name: str, stored: StoredState, counter: TokenCounter) -> Pinned:
    apply = stored.proposals == "apply"
    return rejected(pinned, name, apply=apply, counter=counter, cap_tokens=stored.cap_tokens)


def _proposal_id(exchange: Exchange) -> str:
    check_name(exchange.path["session"], "session")
    try:
        return convert(exchange.path["proposal"], ProposalId)
    except InvalidInputError as error:
        raise InvalidInputError("is no id of a proposal", code="invalid_id", field="proposal") from error


def _check_version(wanted: bytes | None, version: int) -> None:
    if wanted is None:
        return
    named = {one.strip() for one in wanted.decode("latin-1").split(",")}
    # A weak tag never matches here (RFC 9110), and `*` wants something to be there.
    if f'"{version}"' not in named and not ("*" in named and version):
        raise HttpRefusalError(412, "version_conflict", f"the state has version {version} now", field="if-match")


def _without_entries(error: StateTooLongError) -> InvalidInputError:
    """The refusal without the names of what is stored already."""
    told = f"the state takes {error.tokens} tokens and may take {error.cap_tokens}"
    refusal = InvalidInputError(told, code=error.code, field="body")
    refusal.members = {"tokens": error.tokens, "cap_tokens": error.cap_tokens}
    return refusal


def _answer(answer: StateWritten) -> Response:
    response = json_response(answer)
    response.headers["ETag"] = f'"{answer.version}"'
    response.headers["Cache-Control"] = "private, no-cache"
    return response


def _numbers(stored: StoredState, pinned: Pinned) -> StateWritten:
    return StateWritten(version=stored.version, tokens=pinned.tokens, cap_tokens=stored.cap_tokens)


def _shown(stored: StoredState, pinned: Pinned) -> StateAnswer:
    proposals = [_proposal(one) for one in pinned.proposals]
    return StateAnswer(**asdict(_numbers(stored, pinned)), state=pinned.state, proposals=proposals)


def _proposal(one: Proposal) -> StateProposal:
    sources = [ProposalTurn(turn_id=source.turn_id, seq=source.seq) for source in one.sources]
    return StateProposal(id=one.id, field=one.field, value=one.value, sources=sources, status=one.status)
