"""The next turns of a session that are to be embedded: those that changed, then those that follow the mark."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import structlog

from prefold.embedding import Vector
from prefold.recall import TurnPoint, document_words, index_turn
from prefold.storage.limits import ERASE_GRACE, milliseconds
from prefold.storage.types import EmbedDebt, Purge, SessionRef, StoredTurn
from prefold.worker.outdated import standing
from prefold.worker.ports import TurnLog

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Work:
    """What one pass does for one life of a session."""

    ref: SessionRef
    wanted_to: int
    """Seq that the jobs named; turns after it may be left to others."""
    debt: EmbedDebt | None = None
    """The last look. What is read from the log is newer, so it holds good if ``changes`` has not moved on."""
    done_to: int = 0
    """Read up to here; marked up to here once its page is saved."""
    redo: list[int] = field(default_factory=list)
    to_purge: Sequence[Purge] = ()
    purged: list[Purge] = field(default_factory=list)
    """Those of the purges that may be called done."""
    is_over: bool = False

    @property
    def is_finished(self) -> bool:
        """Nothing is left of what was seen to be undone."""
        seen = self.debt is not None and self.done_to >= min(self.wanted_to, self.debt.head_seq)
        return self.is_over or (seen and not self.redo and not self.to_purge)

    def begin(self, debt: EmbedDebt, again: Iterable[int] = ()) -> None:
        """Starts from this look. ``again``: turns to be embedded once more in any case."""
        self.debt = debt
        self.done_to = debt.embedded_to
        self.redo = []
        self.redo_also((*again, *debt.redo))
        self.to_purge = debt.purges
        self.purged = []

    def redo_also(self, seqs: Iterable[int]) -> None:
        """Embeds these turns again, unless they are still to come."""
        self.redo = sorted({*self.redo, *(seq for seq in seqs if seq <= self.done_to)})

    def has_purged(self) -> None:
        """The outdated points that the look named are gone. A young purge may only be called done by a later pass.

        Whoever read the turns before they changed may still be about to write, and die before he looks again.
        """
        assert self.debt is not None
        ripe_ms = self.debt.read_at_ms - milliseconds(ERASE_GRACE)
        self.purged = [purge for purge in self.to_purge if purge.asked_at_ms <= ripe_ms]
        self.to_purge = ()


@dataclass(slots=True)
class Page:
    """Turns of one session; once their points are stored, the mark may move to ``upto``."""

    work: Work
    after: int
    upto: int
    redo: frozenset[int]
    turns: list[StoredTurn]
    points: list[TurnPoint] = field(default_factory=list)

    @property
    def room(self) -> int:
        """What it takes of a call."""
        return max(len(self.redo), len(self.turns))

    def redone(self, debt: EmbedDebt) -> list[int]:
        """Entries of ``redo`` that the page settles."""
        return [seq for seq in debt.redo if seq in self.redo or self.after < seq <= self.upto]


@dataclass(slots=True)
class Item:
    """A turn with something to find it by."""

    page: Page
    turn: StoredTurn
    text: str
    ts_ms: int | None


async def next_page(log: TurnLog, work: Work, room: int) -> Page:
    """The next turns, at most ``room`` (1..); none, if only the mark has to move."""
    assert work.debt is not None
    redo, work.redo = work.redo[:room], work.redo[room:]
    again = await standing(log, work.ref, redo)
    after = work.done_to
    tail = await _tail(log, work, room - len(redo))
    return Page(work, after, work.done_to, frozenset(redo), [*again.values(), *tail])


async def _tail(log: TurnLog, work: Work, room: int) -> list[StoredTurn]:
    """Turns that follow the mark; moves ``done_to`` over them, and over numbers that no turn has any more."""
    assert work.debt is not None
    limit = min(room, min(work.wanted_to, work.debt.head_seq) - work.done_to)
    if limit <= 0:
        return []
    turns = await log.read_turns(work.ref.tenant, work.ref.session, work.done_to, limit)
    ends = [turn.seq for turn in turns[-1:]]
    if len(turns) < limit:
        ends.append(work.debt.head_seq)  # read before the log, so that no turn of now lies below it
    work.done_to = max(ends)
    return turns


def items_of(page: Page) -> list[Item]:
    """The page's turns that have a text."""
    items = []
    for turn in page.turns:
        if turn.removed:
            continue
        try:
            found = index_turn(turn.verbatim_json)
        except Exception as error:  # noqa: BLE001 (one turn that cannot be read must not hold up all others)
            log.error("turn_unreadable", **names(page.work.ref), seq=turn.seq, error=type(error).__qualname__)
            continue
        if found.text:
            items.append(Item(page, turn, found.text, found.ts_ms))
    return items


def point_of(item: Item, vector: Vector) -> TurnPoint:
    """The turn as it is stored."""
    assert item.page.work.debt is not None
    return TurnPoint(
        ref=item.page.work.ref,
        user=item.page.work.debt.user,
        seq=item.turn.seq,
        revision=item.turn.revision,
        role=item.turn.role,
        ts_ms=item.ts_ms,
        vector=vector,
        words=document_words(item.text),
    )


def names(ref: SessionRef) -> dict[str, str]:
    """What a log entry says about whose turn it is."""
    return {"tenant": ref.tenant, "session": ref.session}
