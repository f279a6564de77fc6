"""Stored turns for a query: vectors say which, the log gives the words, and every hit is checked against it."""

import asyncio
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import structlog

from prefold.assembly import RecalledItem, RecallInput
from prefold.conversation import parse_lines
from prefold.conversation.encoding import encode
from prefold.embedding import Embedder, Vector
from prefold.errors import GoneError, NotFoundError, RefusedError, TransientError, UnavailableError
from prefold.gateway.background import InBackground
from prefold.storage import Sessions
from prefold.storage.types import SessionView, StoredContext, StoredTurn

log = structlog.get_logger(__name__)

_RECALLED_TURNS = 12
_SAME_WORDS = 0.85
"""Share of common words from which two hits say the same."""
_MOST_SKIPPED = 100
"""Hits that are asked for in addition, because a window's turns are often the best ones."""
_READS_AT_ONCE = 8
"""Of the log, by all searches of the process: the connections are there for others too."""
_WORD = re.compile(r"\w+")
_SPARE = 3
"""How many times more hits are asked for than wanted: near-duplicates and dead ones fall away."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A turn that the index believes in."""

    session: str
    incarnation: str
    seq: int
    revision: int
    score: float


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


class Finder:
    """Searches the turns of a tenant."""

    def __init__(
        self, sessions: Sessions, index: TurnIndex, embedder: InBackground[Embedder], executor: ThreadPoolExecutor
    ) -> None:
        self._sessions = sessions
        self._index = index
        self._embedder = embedder
        self._executor = executor
        self._places = asyncio.Semaphore(_READS_AT_ONCE)

    @property
    def is_ready(self) -> bool:
        """True when the embedder is loaded."""
        return self._embedder.is_ready

    async def find(
        self,
        tenant: str,
        query: str,
        *,
        limit: int,
        session: str | None = None,
        user: str | None = None,
        skip: frozenset[int] = frozenset(),
    ) -> list[FoundTurn]:
        """At most ``limit`` turns, best first, no two that say the same, none whose number is in ``skip``.

        Raises ``UnavailableError`` when embedder or vector store do not answer. Waits for the embedder to load.
        """
        most = limit * _SPARE + min(len(skip), _MOST_SKIPPED)
        found = await self._hits(tenant, query, session, user, most)
        hits = sorted((hit for hit in found if hit.seq not in skip), key=lambda hit: -hit.score)
        lives = _Lives(self._sessions, self._places, tenant, user)
        kept: list[FoundTurn] = []
        # By batches, because a second one is only needed when much of the first fell away.
        for start in range(0, len(hits), limit):
            read = await asyncio.gather(*(self._read(lives, hit) for hit in hits[start : start + limit]))
            kept = without_near_duplicates([*kept, *(turn for turn in read if turn is not None)])
            if len(kept) >= limit:
                break
        return kept[:limit]

    async def _hits(self, tenant: str, query: str, session: str | None, user: str | None, limit: int) -> Sequence[Hit]:
        try:
            embedder = await self._embedder.get()
            embed = asyncio.get_running_loop().run_in_executor(self._executor, embedder.embed_query, query)
            return await self._index.search(tenant, await embed, query, session=session, user=user, limit=limit)
        except RefusedError as error:
            # The caller's input was checked: what is refused here is our setting or our request.
            log.error("recall_refused", reason=error.detail, code=error.code)
            raise UnavailableError("search is not set up rightly", code="recall_unavailable") from error

    async def _read(self, lives: "_Lives", hit: Hit) -> FoundTurn | None:
        """The hit as the log has it; ``None`` where the log does not confirm it."""
        view = await lives.view(hit.session)
        if view is None or view.ref.incarnation != hit.incarnation or not 0 < hit.seq <= view.head_seq:
            return None
        # Of this very life: the session may have been erased and made anew since the look, for another user.
        async with self._places:
            turn = await self._sessions.turn_of_life(view.ref, hit.seq)
        if turn is None or turn.removed or turn.revision != hit.revision:
            return None
        return found_turn(hit.session, turn, hit.score)


class _Lives:
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


class ContextRecall:
    """Recall for a context read: as much as comes in time, never an error."""

    def __init__(self, finder: Finder, *, within_seconds: float) -> None:
        self._finder = finder
        self._within = within_seconds

    async def recall(self, stored: StoredContext, query: str, *, is_whole: bool) -> RecallInput:
        """Turns of the same session. A failure is named in the input and reported in the answer.

        ``is_whole``: the window will be served as it is stored, so its turns need not be found.
        """
        if not self._finder.is_ready:
            return RecallInput(failure="embedder_loading")
        try:
            async with asyncio.timeout(self._within):
                found = await self._finder.find(
                    stored.ref.tenant,
                    query,
                    session=stored.ref.session,
                    limit=_RECALLED_TURNS,
                    skip=_turns_in(stored) if is_whole else frozenset(),
                )
        except TimeoutError:
            log.warning("recall_too_slow", tenant=stored.ref.tenant, session=stored.ref.session)
            return RecallInput(failure="too_slow")
        except TransientError as error:
            log.warning("recall_unavailable", tenant=stored.ref.tenant, reason=error.detail)
            return RecallInput(failure="unavailable")
        except Exception as error:  # noqa: BLE001  # whatever is wrong with recall, the context is served
            log.error("recall_failed", tenant=stored.ref.tenant, error=type(error).__qualname__)
            return RecallInput(failure="failed")
        return RecallInput([RecalledItem(one.seq, one.role, one.ts, one.text, one.score) for one in found])


def _turns_in(stored: StoredContext) -> frozenset[int]:
    _, fragments = parse_lines(stored.body)
    return frozenset(fragment.seq for fragment in fragments if fragment.part not in ("gap", "closer"))


def without_near_duplicates(turns: Sequence[FoundTurn]) -> list[FoundTurn]:
    """The turns without those that say what a better one says."""
    kept: list[tuple[frozenset[str], FoundTurn]] = []
    for turn in turns:
        words = frozenset(_WORD.findall(turn.text.lower()))
        if not any(_say_the_same(words, others) for others, _ in kept):
            kept.append((words, turn))
    return [turn for _, turn in kept]


def found_turn(session: str, turn: StoredTurn, score: float) -> FoundTurn:
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


def _say_the_same(words: frozenset[str], others: frozenset[str]) -> bool:
    common = len(words & others)
    return common > 0 and common >= _SAME_WORDS * len(words | others)
