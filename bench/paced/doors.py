"""The two ways in: the append script by our storage, and the gateway by our client."""

from dataclasses import dataclass
from typing import Any, Protocol

from prefold.client import AsyncPrefold
from prefold.conversation import prepare_turn
from prefold.conversation.project import parse_lines
from prefold.conversation.turns import PreparedTurn
from prefold.replay.recount import Recount
from prefold.storage import Sessions
from prefold.tokens import load_counter

_JSON_TOKENS = 12
"""What stands around a text in its line takes fewer."""


@dataclass(frozen=True, slots=True)
class Appended:
    """What an append answered."""

    seq: int
    tokens: int
    swaps: int


@dataclass(frozen=True, slots=True)
class Read:
    """What a reader sees of a context."""

    tokens: int
    """Counted anew; where the server says more, what it says."""
    has_hole: bool = False
    """A turn is neither in the window nor covered nor behind a marker."""


class Door(Protocol):
    """One session's."""

    def prepare(self, turn: dict[str, Any]) -> tuple[Any, int]:
        """What ``append`` takes, and the turn's raw tokens; done before the time is taken."""
        ...

    async def append(self, prepared: Any) -> Appended: ...

    async def read(self) -> Read:
        """The context as it is served now."""
        ...


class DirectDoor:
    """As the gateway does it, without HTTP."""

    def __init__(self, sessions: Sessions, tenant: str, session: str) -> None:
        self._sessions = sessions
        self._name = (tenant, session)
        self._counter = load_counter()

    def prepare(self, turn: dict[str, Any]) -> tuple[PreparedTurn, int]:
        prepared = prepare_turn(turn, 0, self._counter, lambda: "")
        return prepared, prepared.tokens

    async def append(self, prepared: PreparedTurn) -> Appended:
        result = await self._sessions.append(*self._name, [prepared])
        return Appended(result.turns[0].seq, result.tokens, result.swaps)

    async def read(self) -> Read:
        context = await self._sessions.read_context(*self._name)
        _, lines = parse_lines(context.body)
        window = [line.seq for line in lines if line.seq and not line.part]
        whole = window == list(range(context.covers_to + 1, context.head_seq + 1))
        text = sum(self._counter.count(line.content.decode()) - _JSON_TOKENS for line in lines)
        return Read(max(text, sum(line.tokens for line in lines)), has_hole=not whole and not context.degraded)


class HttpDoor:
    """As a backend does it."""

    def __init__(self, client: AsyncPrefold, session: str, recount: Recount) -> None:
        self._client = client
        self._session = session
        self._recount = recount
        self._counter = load_counter()

    def prepare(self, turn: dict[str, Any]) -> tuple[dict[str, Any], int]:
        return turn, self._counter.count(turn["content"]) + 7

    async def append(self, prepared: dict[str, Any]) -> Appended:
        answer = await self._client.append_many(self._session, [prepared])
        return Appended(answer.turns[0].seq, answer.context.tokens, answer.context.swaps)

    async def read(self) -> Read:
        context = await self._client.context(self._session)
        return Read(max(context.tokens, self._recount.of(context)))
