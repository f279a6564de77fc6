"""Embeds turns of many sessions, batch by batch, and never claims more than what is stored."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from prefold.embedding import Embedder
from prefold.errors import ConfigurationError, RefusedError, UnavailableError
from prefold.recall import TurnPoint
from prefold.storage.embed_types import EmbedDebt, EmbedSpan
from prefold.storage.types import SessionRef
from prefold.worker.embed_items import KeepsAll, Selection
from prefold.worker.embed_page import Page, Work, names, next_page, point_of
from prefold.worker.outdated import outdated_by, outdated_points, standing
from prefold.worker.ports import TurnLog, TurnStore
from prefold.worker.turn_vectors import TurnVectors

log = structlog.get_logger(__name__)

_LOOKS = 3
"""So often a page is looked at again before its session is begun anew: somebody changes it all the time."""


@dataclass(frozen=True, slots=True)
class EmbedOptions:
    """How much is done at once."""

    call_turns: int = 16
    """Turns in one call of the embedder: a stop waits for one call."""
    job_turns: int = 512
    """Turns in one pass. What is left is still due."""
    lanes: int = 2
    """Calls under way: while the embedder is busy with one, another's turns are read or stored."""


@dataclass(slots=True)
class EmbedReport:
    """What a pass did."""

    embedded: int = 0
    without_text: int = 0
    not_kept: dict[str, int] = field(default_factory=dict)
    """Turns that are not worth finding again, by reason."""
    refused: int = 0
    sessions_gone: int = 0
    left: int = 0
    """Sessions that still have turns, because the pass was full or the process stops."""


class EmbedPass:
    """One job's work. Safe to repeat, and to run beside another pass over the same sessions.

    A span only says that there is work. What is done is what the session's own state says is undone, in order, so that
    the mark never passes a turn that is not stored, whatever order jobs run in.

    Turns may change at any moment. So the session is looked at before its turns are read, right before they are stored
    and, by the mark, after that; a point that is outdated by then is deleted again. Whoever is killed before he could
    do so leaves a purge in the session's state, which a later pass does.
    """

    def __init__(
        self,
        turns: TurnLog,
        store: TurnStore,
        embedder: Embedder,
        is_stopped: Callable[[], bool],
        options: EmbedOptions | None = None,
        keeps_all: KeepsAll = lambda _tenant: False,
    ) -> None:
        self._turns = turns
        self._store = store
        self._vectors = TurnVectors(embedder)
        self._selection = Selection(keeps_all)
        self._is_stopped = is_stopped
        self._options = options or EmbedOptions()
        self._todo: deque[Work] = deque()
        self._room = self._options.job_turns
        self._reading, self._embedding = asyncio.Lock(), asyncio.Lock()
        self.report = EmbedReport()

    async def run(self, spans: Iterable[EmbedSpan]) -> EmbedReport:
        """Embeds what the spans name and is not embedded yet. Raises ``TransientError`` when a part is away."""
        self._todo.extend(_works(spans))
        await together([self._lane() for _ in range(self._options.lanes)])
        self.report.left = len(self._todo)
        self.report.refused += self._vectors.refused
        self.report.without_text = self._selection.without_text
        self.report.not_kept = dict(self._selection.not_kept)
        return self.report

    async def _lane(self) -> None:
        """Pages one after the other. No two lanes have turns of one session at a time."""
        while self._todo and self._room > 0 and not self._is_stopped():
            async with self._reading:
                pages = await self._next_pages(min(self._options.call_turns, self._room))
                taken = sum(page.room for page in pages)
                self._room -= taken
            async with self._embedding:
                await self._embed(pages)
            await self._save(pages)
            left = [page.work for page in pages if not page.work.is_finished]
            self._todo.extendleft(reversed(left))
            self._room -= 0 if taken else len(left)

    async def _next_pages(self, room: int) -> list[Page]:
        """The next turns, at most ``room``; their sessions leave the list."""
        pages: list[Page] = []
        while self._todo and room > 0:
            work = self._todo.popleft()
            if not await self._open(work):
                continue
            page = await next_page(self._turns, work, room)
            room -= page.room
            pages.append(page)
        return pages

    async def _open(self, work: Work) -> bool:
        """Looks at the session if need be, and takes out what changes have made void. False: its life is over."""
        if work.debt is None:
            debt = await self._debt(work)
            if debt is None:
                return False
            work.begin(debt)
        if work.to_purge:
            await self._store.delete_turns(work.ref, await outdated_by(self._turns, work.ref, work.to_purge))
            work.has_purged()
        return True

    async def _embed(self, pages: Sequence[Page]) -> None:
        """Gives each page its points. A turn that the embedder refuses for good gets none."""
        items = [item for page in pages for item in self._selection.items_of(page)]
        for item, vector in zip(items, await self._vectors.of(items), strict=True):
            if vector is not None:
                item.page.points.append(point_of(item, vector))

    async def _save(self, pages: Sequence[Page]) -> None:
        """Stores and marks the pages. A point that the store refuses for good is passed over."""
        pages = [page for page in pages if await self._is_current(page)]
        is_refused = False
        try:
            await self._upsert([point for page in pages for point in page.points])
        except RefusedError:
            is_refused = True
        for page in pages:
            if is_refused:
                page.points = await self._accepted(page.points)
            await self._store.delete_turns(page.work.ref, page.settled)
            await self._mark(page)

    async def _is_current(self, page: Page) -> bool:
        """Looks again after the embedder took its time; what changed is not stored at all."""
        if not page.points:
            return True
        debt = await self._debt(page.work)
        return debt is not None and (debt.changes == _seen(page).changes or await self._look(page, debt))

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
                log.error("turn_refused_by_store", **names(point.ref), seq=point.seq, error=error.detail)
            return []
        return points

    async def _upsert(self, points: Sequence[TurnPoint]) -> None:
        try:
            await self._store.upsert(points)
        except ConfigurationError as error:
            raise UnavailableError(error.detail) from error

    async def _mark(self, page: Page) -> None:
        """Notes the page, looking again as often as turns change meanwhile."""
        work, collection = page.work, self._store.collection
        for _ in range(_LOOKS):
            seen = _seen(page)
            # No further than what this pass knows to be in, in case another collection's pass took the rest off the list.
            upto = min([page.upto, *(seq - 1 for seq in work.redo)])
            outcome = await self._turns.mark_embedded(
                work.ref, upto, collection, changes=seen.changes, redone=page.redone(seen), purged=work.purged
            )
            if outcome == "marked":
                self.report.embedded += len(page.points)
                work.purged = []
                return
            debt = await self._debt(work)
            if debt is None or not await self._look(page, debt):
                return
        work.begin(_seen(page))

    async def _look(self, page: Page, debt: EmbedDebt) -> bool:
        """Takes back what changed. True: what is left of the page is as it must be; False: its session begins anew."""
        work, before = page.work, _seen(page)
        now = await standing(self._turns, work.ref, [turn.seq for turn in page.turns])
        await self._store.delete_turns(work.ref, outdated_points(page.points, now))
        if debt.user != before.user:
            work.begin(debt, again=now)
            return False
        is_edited = any(turn.seq in now and now[turn.seq].revision != turn.revision for turn in page.turns)
        if is_edited or debt.embedded_to < page.after:
            work.begin(debt)
            return False
        page.points = [point for point in page.points if point.seq in now]
        work.debt, work.to_purge = debt, debt.purges
        work.redo_also(seq for seq in debt.redo if seq <= page.after and seq not in page.redo)
        return True

    async def _debt(self, work: Work) -> EmbedDebt | None:
        """A look at the session; when its life is over, what was stored for it goes."""
        debt = await self._turns.embed_debt(work.ref, self._store.collection)
        if debt is None:
            work.is_over = True
            await self._forget(work.ref)
        return debt

    async def _forget(self, ref: SessionRef) -> None:
        """Removes what was stored for a life that is over, and then its due entry."""
        await self._store.delete(ref.tenant, session=ref.session, incarnation=ref.incarnation)
        await self._turns.mark_embedded(ref, 0, self._store.collection)
        self.report.sessions_gone += 1


async def together(works: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Runs all of them at once; the first that fails ends the others, and is raised when they have ended."""
    if len(works) == 1:
        return await works[0]
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _works(spans: Iterable[EmbedSpan]) -> list[Work]:
    """One a session; its spans are taken as one."""
    last: dict[SessionRef, int] = {}
    for span in spans:
        ref = SessionRef(span.tenant, span.session, span.incarnation)
        last[ref] = max(last.get(ref, 0), span.last_seq)
    return [Work(ref, last_seq) for ref, last_seq in last.items()]


def _seen(page: Page) -> EmbedDebt:
    assert page.work.debt is not None
    return page.work.debt
