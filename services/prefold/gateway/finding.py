"""Stored turns for a query: vectors say which, the log gives the words, and every hit is checked against it."""

import asyncio
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import orjson
import structlog

from prefold.assembly import RecalledItem, RecallInput
from prefold.embedding import Embedder, Vector
from prefold.errors import NotFoundError, RefusedError, TransientError, UnavailableError
from prefold.gateway.background import InBackground
from prefold.storage import Sessions
from prefold.storage.types import StoredContext, StoredTurn

log = structlog.get_logger(__name__)

_RECALLED_TURNS = 12
_SAME_WORDS = 0.85
"""Share of common words from which two hits say the same."""
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

    @property
    def is_ready(self) -> bool:
        """True when the embedder is loaded."""
        return self._embedder.is_ready

    async def find(
        self, tenant: str, query: str, *, session: str | None = None, user: str | None = None, limit: int
    ) -> list[FoundTurn]:
        """At most ``limit`` turns, best first, no two that say the same.

        Raises ``UnavailableError`` when embedder or vector store do not answer. Waits for the embedder to load.
        """
        hits = await self._hits(tenant, query, session, user, limit * _SPARE)
        by_session: dict[str, list[Hit]] = {}
        for hit in hits:
            by_session.setdefault(hit.session, []).append(hit)
        found = await asyncio.gather(*(self._read(tenant, name, user, them) for name, them in by_session.items()))
        ranked = sorted((turn for turns in found for turn in turns), key=lambda turn: (-turn.score, turn.seq))
        return without_near_duplicates(ranked)[:limit]

    async def _hits(self, tenant: str, query: str, session: str | None, user: str | None, limit: int) -> Sequence[Hit]:
        try:
            embedder = await self._embedder.get()
            embed = asyncio.get_running_loop().run_in_executor(self._executor, embedder.embed_query, query)
            return await self._index.search(tenant, await embed, query, session=session, user=user, limit=limit)
        except RefusedError as error:
            # The caller's input was checked: what is refused here is our setting or our request.
            log.error("recall_refused", reason=error.detail, code=error.code)
            raise UnavailableError("search is not set up rightly", code="recall_unavailable") from error

    async def _read(self, tenant: str, session: str, user: str | None, hits: Sequence[Hit]) -> list[FoundTurn]:
        """The hits that the log confirms: same life of the session, same user, a turn of that number."""
        try:
            view = await self._sessions.view(tenant, session)
        except NotFoundError:
            return []
        if user is not None and view.user != user:
            return []
        alive = [hit for hit in hits if hit.incarnation == view.ref.incarnation and 0 < hit.seq <= view.head_seq]
        pages = await asyncio.gather(
            *(self._sessions.read_turns(tenant, session, hit.seq - 1, 1) for hit in alive),
        )
        return [
            found_turn(session, page[0], hit.score)
            for hit, page in zip(alive, pages, strict=True)
            if page and (page[0].seq, page[0].revision) == (hit.seq, hit.revision)
        ]


class ContextRecall:
    """Recall for a context read: as much as comes in time, never an error."""

    def __init__(self, finder: Finder, *, within_seconds: float) -> None:
        self._finder = finder
        self._within = within_seconds

    async def recall(self, stored: StoredContext, query: str) -> RecallInput:
        """Turns of the same session. A failure is named in the input and reported in the answer."""
        if not self._finder.is_ready:
            return RecallInput(failure="embedder_loading")
        try:
            async with asyncio.timeout(self._within):
                found = await self._finder.find(
                    stored.ref.tenant, query, session=stored.ref.session, limit=_RECALLED_TURNS
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
    published: dict[str, Any] = orjson.loads(turn.verbatim_json)
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
    blocks: list[dict[str, Any]] = orjson.loads(b"[" + turn.content + b"]")
    return "\n".join(text for block in blocks if (text := _text_of_block(block)))


def _text_of_block(block: dict[str, Any]) -> str:
    kind = block["type"]
    if kind == "text":
        return str(block["text"])
    if kind == "tool_use":
        return f"{block['name']}({orjson.dumps(block['input']).decode()})"
    if kind == "tool_result":
        content = block["content"]
        return content if isinstance(content, str) else "\n".join(map(_text_of_block, content))
    return ""


def _say_the_same(words: frozenset[str], others: frozenset[str]) -> bool:
    common = len(words & others)
    return common > 0 and common >= _SAME_WORDS * len(words | others)
