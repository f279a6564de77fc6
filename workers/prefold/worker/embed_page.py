"""The next turns of a session that are to be embedded: those that changed, then those that follow the mark."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import structlog

from prefold.embedding import Vector
from prefold.recall import IndexedTurn, TurnPoint, TurnRange
from prefold.storage.embed_types import EmbedDebt, Purge
from prefold.storage.limits import ERASE_GRACE, milliseconds
from prefold.storage.types import SessionRef, StoredTurn
from prefold.worker.outdated import standing, turns_beside
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
    judge_again: set[int] = field(default_factory=set)
    """Those of ``redo`` that have not changed themselves: they are stored already, unless they were passed over."""
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
        self.judge_again = set()
        self.redo_also((*again, *debt.redo))
        self.to_purge = debt.purges
        self.purged = []

    def redo_also(self, seqs: Iterable[int]) -> None:
        """Embeds these turns again, unless they are still to come."""
        wanted = {seq for seq in seqs if seq <= self.done_to}
        self.redo = sorted({*self.redo, *wanted})
        self.judge_again -= wanted

    def has_purged(self) -> None:
        """The outdated points that the look named are gone. A young purge may only be called done by a later pass.

        Whoever read the turns before they changed may still be about to write, and die before he looks again.
        What stands beside a changed turn is judged again: it may have been passed over because of that turn.
        """
        assert self.debt is not None
        beside = {seq for purge in self.to_purge for seq in (purge.first_seq - 1, purge.last_seq + 1)}
        beside -= {0, *self.redo}
        self.redo_also(beside)
        self.judge_again |= {seq for seq in beside if seq <= self.debt.embedded_to}
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
    judged_again: frozenset[int] = frozenset()
    """Turns of the page that have not changed themselves, but what stands beside them has."""
    points: list[TurnPoint] = field(default_factory=list)
    beside: dict[int, StoredTurn] = field(default_factory=dict)
    """By seq: the turns of the page and those before and after them, as far as they stand."""
    settled: list[TurnRange] = field(default_factory=list)
    """Points of turns before the page that are not worth keeping now that it is known what followed."""

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
    found_by: IndexedTurn

    @property
    def text(self) -> str:
        """What is embedded."""
        return self.found_by.text


async def next_page(log: TurnLog, work: Work, room: int) -> Page:
    """The next turns, at most ``room`` (1..); none, if only the mark has to move."""
    assert work.debt is not None
    redo, work.redo = work.redo[:room], work.redo[room:]
    again = await standing(log, work.ref, redo)
    after = work.done_to
    tail = await _tail(log, work, room - len(redo))
    unchanged = work.judge_again.intersection(redo)
    page = Page(work, after, work.done_to, frozenset(redo) - unchanged, [*again.values(), *tail])
    page.judged_again = frozenset(unchanged)
    work.judge_again -= unchanged
    page.beside = await turns_beside(log, work.ref, page.turns)
    return page


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


def point_of(item: Item, vector: Vector) -> TurnPoint:
    """The turn as it is stored."""
    assert item.page.work.debt is not None
    return TurnPoint(
        ref=item.page.work.ref,
        user=item.page.work.debt.user,
        seq=item.turn.seq,
        revision=item.turn.revision,
        role=item.turn.role,
        ts_ms=item.found_by.ts_ms,
        vector=vector,
        words=item.found_by.words(),
        voice=item.found_by.voice,
        speaker=item.found_by.speaker_words(),
    )


def names(ref: SessionRef) -> dict[str, str]:
    """What a log entry says about whose turn it is."""
    return {"tenant": ref.tenant, "session": ref.session}
