"""Puts work on the queues: cut into jobs, tenants in turn, as much as there is room for."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from prefold.dispatcher.fairness import Shares, in_turn, tenant_of
from prefold.dispatcher.ports import Jobs
from prefold.jobs import QUEUE_OF, QUEUES, Ask
from prefold.jobs.names import WorkKind
from prefold.storage.types import SessionRef
from prefold.telemetry.tracing import Turn, is_on, span

__all__ = ["Asked", "Asking", "Cut", "Piece", "cut_into"]

_DEEP = 8
"""Jobs that wait: from here on it matters who goes first."""
_MOST_LINKED = 16
"""Turns of one piece that its trace is linked with."""
_JOBS_AT_ONCE = 256
"""In one round trip; between two of them the loop goes on."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What is to be done for one session."""

    ref: SessionRef
    weight: int = 1
    """Of a job, and of its tenant's share: turns, or sessions."""
    first_seq: int = 1
    last_seq: int = 0
    """Of turns to be embedded."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How pieces become jobs."""

    most_weight: int
    ask: Callable[[Sequence[Piece]], Ask]


@dataclass(frozen=True, slots=True)
class Asked:
    """What was put on the queue."""

    pieces: Sequence[Piece]
    jobs: int
    """Those that did not wait there already."""


def cut_into(pieces: Sequence[Piece], most_weight: int) -> list[list[Piece]]:
    """Jobs of at most ``most_weight``, in order. A piece is never cut: two jobs would do the same work twice."""
    jobs: list[list[Piece]] = []
    room = 0
    for piece in pieces:
        if piece.weight > room:
            jobs.append([])
            room = most_weight
        jobs[-1].append(piece)
        room -= piece.weight
    return jobs


class Asking:
    """Knows how much waits and whose it is. One for a dispatcher.

    Where a queue is deep, work of tenants that asked for little lately goes before all that waits, and it is still
    taken when the queue is full for the others, up to twice as many jobs.
    """

    def __init__(self, jobs: Jobs, most_waiting: int, now_ms: Callable[[], int]) -> None:
        self._jobs = jobs
        self._most = most_waiting
        self._now_ms = now_ms
        self._shares = {queue: Shares() for queue in QUEUES}

    async def ask(self, kind: WorkKind, pieces: Sequence[Piece], cut: Cut) -> Asked:
        """Asks for the pieces; what there is no room for is left out. Raises ``UnavailableError``."""
        if not pieces:
            return Asked((), 0)
        told = {"kind": kind, "sessions": len(pieces)}
        with span("dispatch", told, kind="producer", turns=_turns_of(kind, pieces) if is_on() else ()):
            return await self._ask(kind, pieces, cut)

    async def _ask(self, kind: WorkKind, pieces: Sequence[Piece], cut: Cut) -> Asked:
        queue, now_ms = QUEUE_OF[kind], self._now_ms()
        depth = await asyncio.to_thread(self._jobs.depth, queue)
        shares = self._shares[queue]
        shares.note(((piece.ref.tenant, piece.weight) for piece in pieces), now_ms)
        first: Sequence[Piece] = ()
        if depth >= _DEEP:
            modest = shares.modest({tenant_of(piece) for piece in pieces}, now_ms)
            if modest:
                first = [piece for piece in pieces if piece.ref.tenant in modest]
                pieces = [piece for piece in pieces if piece.ref.tenant not in modest]
        before = cut_into(in_turn(first), cut.most_weight)[: max(0, 2 * self._most - depth)]
        behind = cut_into(in_turn(pieces), cut.most_weight)[: max(0, self._most - depth - len(before))]
        put = await self._put([cut.ask(job) for job in behind], before, cut)
        return Asked([piece for job in (*before, *behind) for piece in job], put)

    async def _put(self, behind: list[Ask], before: list[list[Piece]], cut: Cut) -> int:
        # Each goes before those put at the front earlier, so the last one is put first.
        front = [replace(cut.ask(job), at_front=True) for job in reversed(before)]
        asks, put = [*front, *behind], 0
        for start in range(0, len(asks), _JOBS_AT_ONCE):
            put += sum(await asyncio.to_thread(self._jobs.put, asks[start : start + _JOBS_AT_ONCE]))
        return put


def _turns_of(kind: WorkKind, pieces: Sequence[Piece]) -> list[Turn]:
    """The appends that the pieces come from, as far as events told of them: the newest to be embedded, or who asked."""
    most = _MOST_LINKED if kind == "embed" else 1
    return [
        (piece.ref.tenant, piece.ref.session, piece.ref.incarnation, seq)
        for piece in pieces
        for seq in range(max(piece.first_seq, piece.last_seq - most + 1), piece.last_seq + 1)
        if piece.last_seq
    ]
