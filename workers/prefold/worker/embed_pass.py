"""Embeds turns of many sessions, batch by batch, and never claims more than what is stored."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from prefold.embedding import Embedder, Vector
from prefold.errors import ConfigurationError, GoneError, NotFoundError, RefusedError, TransientError, UnavailableError
from prefold.recall import TurnPoint, document_words, index_turn
from prefold.storage.types import EmbedSpan, SessionRef, SessionView, StoredTurn

log = structlog.get_logger(__name__)

_PROBE = "This is a sentence that every embedder can read."


class TurnLog(Protocol):
    """The sessions. Every call may raise ``TransientError``."""

    async def view(self, tenant: str, session: str) -> SessionView:
        """The session as it is now; ``NotFoundError`` or ``GoneError`` when there is none."""

    async def read_turns(self, tenant: str, session: str, after_seq: int, limit: int) -> list[StoredTurn]:
        """Turns after ``after_seq``, ascending."""

    async def embedded_to(self, ref: SessionRef, collection: str) -> int:
        """Seq up to which the session is in ``collection``."""

    async def mark_embedded(self, ref: SessionRef, upto_seq: int, collection: str) -> bool:
        """Notes progress; False when this life of the session is over. Idempotent."""


class TurnStore(Protocol):
    """The vectors. Writes are idempotent; every call may raise ``TransientError``."""

    @property
    def collection(self) -> str:
        """Where the points go."""

    async def upsert(self, points: Sequence[TurnPoint]) -> None:
        """Returns once the points are stored. ``RefusedError``: one of them is not acceptable, none need be in."""

    async def delete(self, tenant: str, *, session: str, incarnation: str) -> None:
        """Removes all points of one life of a session."""


@dataclass(frozen=True, slots=True)
class EmbedOptions:
    """How much is done at once."""

    call_turns: int = 16
    """Turns in one call of the embedder: a stop waits for one call."""
    job_turns: int = 512
    """Turns in one pass. What is left is still due."""


@dataclass(slots=True)
class EmbedReport:
    """What a pass did."""

    embedded: int = 0
    without_text: int = 0
    refused: int = 0
    sessions_gone: int = 0
    left: int = 0
    """Sessions that still have turns, because the pass was full or the process stops."""


@dataclass(slots=True)
class _Work:
    ref: SessionRef
    user: str
    done_to: int
    """Read up to here; marked up to here once its page is saved."""
    last_seq: int
    is_given_up: bool = False
    """This life of the session is over."""


@dataclass(slots=True)
class _Page:
    """Turns of one session, the next ones in order."""

    work: _Work
    turns: list[StoredTurn]
    points: list[TurnPoint] = field(default_factory=list)


@dataclass(slots=True)
class _Item:
    page: _Page
    turn: StoredTurn
    text: str
    ts_ms: int | None


class EmbedPass:
    """One job's work. Safe to repeat, and to run beside another pass over the same sessions.

    A span only says that there is work. What is done is what follows the session's own mark, in order, so that
    the mark never passes a turn that is not stored, whatever order jobs run in.
    """

    def __init__(
        self,
        turns: TurnLog,
        store: TurnStore,
        embedder: Embedder,
        is_stopped: Callable[[], bool],
        options: EmbedOptions | None = None,
    ) -> None:
        self._turns = turns
        self._store = store
        self._embedder = embedder
        self._is_stopped = is_stopped
        self._options = options or EmbedOptions()
        self.report = EmbedReport()

    async def run(self, spans: Iterable[EmbedSpan]) -> EmbedReport:
        """Embeds what the spans name and is not embedded yet. Raises ``TransientError`` when a part is away."""
        todo = deque(await self._open(spans))
        budget = self._options.job_turns
        while todo and budget > 0 and not self._is_stopped():
            pages = await self._next_pages(todo, min(self._options.call_turns, budget))
            budget -= sum(len(page.turns) for page in pages)
            if pages:
                await self._embed(pages)
                await self._save(pages)
        self.report.left = sum(not work.is_given_up for work in todo)
        return self.report

    async def _open(self, spans: Iterable[EmbedSpan]) -> list[_Work]:
        last: dict[SessionRef, int] = {}
        for span in spans:
            ref = SessionRef(span.tenant, span.session, span.incarnation)
            last[ref] = max(last.get(ref, 0), span.last_seq)
        found = [await self._open_session(ref, last_seq) for ref, last_seq in last.items()]
        return [work for work in found if work is not None]

    async def _open_session(self, ref: SessionRef, last_seq: int) -> _Work | None:
        try:
            view = await self._turns.view(ref.tenant, ref.session)
        except (NotFoundError, GoneError):
            view = None
        if view is None or view.ref != ref:
            await self._forget(ref)
            return None
        done_to = await self._turns.embedded_to(ref, self._store.collection)
        last_seq = min(last_seq, view.head_seq)
        if done_to < last_seq:
            return _Work(ref, view.user, done_to, last_seq)
        await self._turns.mark_embedded(ref, done_to, self._store.collection)  # ends a due entry that outlived its work
        return None

    async def _next_pages(self, todo: deque[_Work], room: int) -> list[_Page]:
        """The next turns, at most ``room``; sessions that have no more leave ``todo``."""
        pages: list[_Page] = []
        while todo and room > 0:
            work = todo.popleft()
            if work.is_given_up:
                continue
            limit = min(room, work.last_seq - work.done_to)
            turns = await self._turns.read_turns(work.ref.tenant, work.ref.session, work.done_to, limit)
            if not turns:
                continue
            pages.append(_Page(work, turns))
            room -= len(turns)
            work.done_to = turns[-1].seq
            if work.done_to < work.last_seq:
                todo.appendleft(work)
        return pages

    async def _embed(self, pages: Sequence[_Page]) -> None:
        """Gives each page its points. A turn that the embedder refuses for good gets none."""
        items = [item for page in pages for item in _items(page)]
        self.report.without_text += sum(len(page.turns) for page in pages) - len(items)
        for item, vector in zip(items, await self._vectors(items), strict=True):
            if vector is not None:
                item.page.points.append(_point(item, vector))

    async def _vectors(self, items: Sequence[_Item]) -> list[Vector | None]:
        """A vector for each item, None for a refused one: a bad turn is looked for by halves."""
        if not items:
            return []
        try:
            return list(await asyncio.to_thread(self._embedder.embed_documents, [item.text for item in items]))
        except TransientError:
            raise
        except ConfigurationError as error:
            raise UnavailableError(error.detail) from error
        except Exception as error:  # noqa: BLE001 (an embedder may fail in any way on one turn; the others must go on)
            if len(items) == 1:
                await self._refuse(items[0], error)
                return [None]
        half = len(items) // 2
        return await self._vectors(items[:half]) + await self._vectors(items[half:])

    async def _refuse(self, item: _Item, error: Exception) -> None:
        """Records a turn that cannot be embedded, unless it is the embedder that is broken."""
        try:
            await asyncio.to_thread(self._embedder.embed_documents, [_PROBE])
        except Exception as broken:  # noqa: BLE001 (as above)
            raise UnavailableError(f"the embedder refuses every text: {broken}") from error
        self.report.refused += 1
        log.error("turn_refused_by_embedder", **_names(item.page.work.ref), seq=item.turn.seq, error=str(error))

    async def _save(self, pages: Sequence[_Page]) -> None:
        """Stores and marks the pages. A point that the store refuses for good is passed over."""
        is_refused = False
        try:
            await self._upsert([point for page in pages for point in page.points])
        except RefusedError:
            is_refused = True
        for page in pages:
            if is_refused:
                page.points = await self._accepted(page.points)
            await self._mark(page)

    async def _accepted(self, points: list[TurnPoint]) -> list[TurnPoint]:
        """Those that are stored now: a refused one is looked for by halves."""
        try:
            await self._upsert(points)
        except RefusedError as error:
            half = len(points) // 2
            if half:
                return await self._accepted(points[:half]) + await self._accepted(points[half:])
            self.report.refused += len(points)
            for point in points:
                log.error("turn_refused_by_store", **_names(point.ref), seq=point.seq, error=error.detail)
            return []
        return points

    async def _upsert(self, points: Sequence[TurnPoint]) -> None:
        try:
            await self._store.upsert(points)
        except ConfigurationError as error:
            raise UnavailableError(error.detail) from error

    async def _mark(self, page: _Page) -> None:
        if await self._turns.mark_embedded(page.work.ref, page.turns[-1].seq, self._store.collection):
            self.report.embedded += len(page.points)
        else:
            page.work.is_given_up = True
            await self._forget(page.work.ref)

    async def _forget(self, ref: SessionRef) -> None:
        """Removes what was stored for a life that is over, and then its due entry."""
        await self._store.delete(ref.tenant, session=ref.session, incarnation=ref.incarnation)
        await self._turns.mark_embedded(ref, 0, self._store.collection)
        self.report.sessions_gone += 1


def _items(page: _Page) -> list[_Item]:
    items = []
    for turn in page.turns:
        try:
            found = index_turn(turn.verbatim_json)
        except Exception as error:  # noqa: BLE001 (one turn that cannot be read must not hold up all others)
            log.error("turn_unreadable", **_names(page.work.ref), seq=turn.seq, error=type(error).__qualname__)
            continue
        if found.text:
            items.append(_Item(page, turn, found.text, found.ts_ms))
    return items


def _point(item: _Item, vector: Vector) -> TurnPoint:
    return TurnPoint(
        ref=item.page.work.ref,
        user=item.page.work.user,
        seq=item.turn.seq,
        revision=item.turn.revision,
        role=item.turn.role,
        ts_ms=item.ts_ms,
        vector=vector,
        words=document_words(item.text),
    )


def _names(ref: SessionRef) -> dict[str, str]:
    return {"tenant": ref.tenant, "session": ref.session}
