"""Stored turns for a query: vectors say which, the log gives the words, and every hit is checked against it."""

import asyncio
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec
import structlog

from prefold.conversation.encoding import encode
from prefold.embedding import Embedder, Vector
from prefold.errors import GoneError, NotFoundError, RefusedError, UnavailableError
from prefold.gateway.background import InBackground
from prefold.recall.same import texts_say_the_same
from prefold.storage import Sessions
from prefold.storage.types import SessionView, StoredTurn

log = structlog.get_logger(__name__)

_MOST_SKIPPED = 100
"""Hits that are asked for in addition, because a window's turns are often the best ones."""
_READS_AT_ONCE = 8
"""Of the log, by all searches of the process: the connections are there for others too."""
_WORD = re.compile(r"\w+")
_SPARE = 10
"""More hits are asked for than wanted: dead ones fall away."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A turn that the index believes in."""

    session: str
    incarnation: str
    seq: int
    revision: int
    score: float
    others: "tuple[Hit, ...]" = ()
    """Those that say the same, best first, and so take no place of their own."""


class TurnIndex(Protocol):
    """The vectors of one tenant's turns. May be behind the log, and may name turns that are gone."""

    async def search(
        self, tenant: str, vector: Vector, text: str, *, session: str | None, user: str | None, limit: int
    ) -> Sequence[Hit]:
        """Best first. Raises what ``VectorIndex.search`` raises: ``UnavailableError`` when it does not answer."""
        ...


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A hit with its words, as the log has them now."""

    session: str
    turn_id: str
    seq: int
    role: str
    ts: str
    text: str
    score: float
    copies: int = 0


class Finder:
    """Searches the turns of a tenant."""

    def __init__(
        self, sessions: Sessions, index: TurnIndex, embedder: InBackground[Embedder], executor: ThreadPoolExecutor
    ) -> None:
        self._sessions = sessions
        self._index = index
        self._embedder = embedder
        self._executor = executor
        self.places = asyncio.Semaphore(_READS_AT_ONCE)
        """For whoever checks hits against the stores."""

    @property
    def is_ready(self) -> bool:
        """True when the embedder is loaded."""
        return self._embedder.is_ready

    async def vector_of(self, query: str) -> Vector:
        """The query as a vector. Waits for the embedder to load; ``UnavailableError`` when it does not answer."""
        try:
            embedder = await self._embedder.get()
            return await asyncio.get_running_loop().run_in_executor(self._executor, embedder.embed_query, query)
        except RefusedError as error:
            raise not_set_up(error) from error

    async def find(
        self,
        tenant: str,
        query: str,
        *,
        limit: int,
        vector: Vector | None = None,
        session: str | None = None,
        user: str | None = None,
        skip: frozenset[int] = frozenset(),
    ) -> list[FoundTurn]:
        """At most ``limit`` turns, best first, no two that say the same, none whose number is in ``skip``.

        ``vector`` is the query's, where it is known. Raises ``UnavailableError`` when embedder or vector store do not
        answer.
        """
        known = await self.vector_of(query) if vector is None else vector
        most = limit + _SPARE + min(len(skip), _MOST_SKIPPED)
        found = await self._hits(tenant, query, known, session, user, most)
        hits = sorted((hit for hit in found if hit.seq not in skip), key=lambda hit: -hit.score)
        lives = Lives(self._sessions, self.places, tenant, user)
        kept: list[FoundTurn] = []
        # By batches, because a second one is only needed when much of the first fell away.
        for start in range(0, len(hits), limit):
            read = await asyncio.gather(*(self._read(lives, hit) for hit in hits[start : start + limit]))
            kept = without_near_duplicates([*kept, *(turn for turn in read if turn is not None)])
            if len(kept) >= limit:
                break
        return kept[:limit]

    async def _hits(
        self, tenant: str, query: str, vector: Vector, session: str | None, user: str | None, limit: int
    ) -> Sequence[Hit]:
        try:
            return await self._index.search(tenant, vector, query, session=session, user=user, limit=limit)
        except RefusedError as error:
            raise not_set_up(error) from error

    async def _read(self, lives: "Lives", hit: Hit) -> FoundTurn | None:
        """The hit as the log has it, or else the first that says the same; ``None`` where the log confirms none."""
        said = (hit, *hit.others)
        for number, one in enumerate(said, 1):
            turn = await self._standing(lives, one)
            if turn is not None:
                return found_turn(one.session, turn, hit.score, len(said) - number)
        return None

    async def _standing(self, lives: "Lives", hit: Hit) -> StoredTurn | None:
        view = await lives.view(hit.session)
        if view is None or view.ref.incarnation != hit.incarnation or not 0 < hit.seq <= view.head_seq:
            return None
        # Of this very life: the session may have been erased and made anew since the look, for another user.
        async with self.places:
            turn = await self._sessions.turn_of_life(view.ref, hit.seq)
        return None if turn is None or turn.removed or turn.revision != hit.revision else turn


class Lives:
    """The sessions of one search, each looked at once: those of the tenant and, if one is named, of the user."""

    def __init__(self, sessions: Sessions, places: asyncio.Semaphore, tenant: str, user: str | None) -> None:
        self.tenant = tenant
        self._sessions = sessions
        self._places = places
        self._user = user
        self._views: dict[str, asyncio.Task[SessionView | None]] = {}

    async def view(self, session: str) -> SessionView | None:
        """The session now; ``None``: gone, or another user's."""
        if session not in self._views:
            self._views[session] = asyncio.create_task(self._look(session))
        return await self._views[session]

    async def _look(self, session: str) -> SessionView | None:
        try:
            async with self._places:
                view = await self._sessions.view(self.tenant, session)
        except (NotFoundError, GoneError):
            return None
        return view if self._user in (None, view.user) else None


def not_set_up(error: RefusedError) -> UnavailableError:
    """For a search that was refused: the caller's input was checked, so it is our setting or our request."""
    log.error("recall_refused", reason=error.detail, code=error.code)
    return UnavailableError("search is not set up rightly", code="recall_unavailable")


def without_near_duplicates(turns: Sequence[FoundTurn]) -> list[FoundTurn]:
    """The turns without those that say what a better one says, which counts them."""
    kept: list[tuple[frozenset[str], FoundTurn]] = []
    for turn in turns:
        words = frozenset(_WORD.findall(turn.text.lower()))
        same = next((place for place, (others, _) in enumerate(kept) if texts_say_the_same(words, others)), None)
        if same is None:
            kept.append((words, turn))
        else:
            others, better = kept[same]
            kept[same] = (others, replace(better, copies=better.copies + 1 + turn.copies))
    return [turn for _, turn in kept]


def found_turn(session: str, turn: StoredTurn, score: float, copies: int = 0) -> FoundTurn:
    """A stored turn as a hit."""
    published: dict[str, Any] = msgspec.json.decode(turn.verbatim_json)
    ts = published.get("ts")
    return FoundTurn(
        session=session,
        turn_id=turn.id,
        seq=turn.seq,
        role=str(published.get("role", turn.role)),
        ts=ts if isinstance(ts, str) else "",
        text=text_of(turn),
        score=score,
        copies=copies,
    )


def text_of(turn: StoredTurn) -> str:
    """What a turn says: its texts, the results of its tools, and its calls by name and input."""
    blocks: list[dict[str, Any]] = msgspec.json.decode(b"[" + turn.content + b"]")
    return "\n".join(text for block in blocks if (text := _text_of_block(block)))


def _text_of_block(block: dict[str, Any]) -> str:
    kind = block["type"]
    if kind == "text":
        return str(block["text"])
    if kind == "tool_use":
        return f"{block['name']}({encode(block['input']).decode()})"
    if kind == "tool_result":
        content = block["content"]
        return content if isinstance(content, str) else "\n".join(map(_text_of_block, content))
    return ""
