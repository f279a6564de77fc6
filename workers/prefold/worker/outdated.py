"""Which vectors of changed turns have to go.

Everything that is named here stays outdated for ever: revisions only rise, a turn that was taken back or removed never
returns, and a number is never given twice. So a deletion may come late or twice and takes nothing that is right.
"""

from collections.abc import AsyncIterator, Iterator, Sequence

from prefold.recall import TurnPoint, TurnRange
from prefold.storage.embed_types import Purge
from prefold.storage.types import SessionRef, StoredTurn
from prefold.worker.ports import ReadsTurns

_TURNS_A_READ = 64

Span = tuple[int, int]


async def standing(log: ReadsTurns, ref: SessionRef, seqs: Sequence[int]) -> dict[int, StoredTurn]:
    """Those of the turns that stand and were not removed, as they are now."""
    return {
        turn.seq: turn
        for span in _joined((seq, seq) for seq in seqs)
        async for turn in _turns_in(log, ref, span)
        if not turn.removed
    }


async def turns_beside(log: ReadsTurns, ref: SessionRef, turns: Sequence[StoredTurn]) -> dict[int, StoredTurn]:
    """By seq: the turns themselves, and the ones before and after them, as far as they stand."""
    known = {turn.seq: turn for turn in turns}
    missing = {seq + step for seq in known for step in (-1, 1)} - set(known) - {0}
    return known | await standing(log, ref, sorted(missing))


def outdated_points(points: Sequence[TurnPoint], now: dict[int, StoredTurn]) -> list[TurnRange]:
    """Points whose turn is gone or has another revision."""
    return [
        TurnRange(point.seq, point.seq, now[point.seq].revision if point.seq in now else None)
        for point in points
        if point.seq not in now or now[point.seq].revision != point.revision
    ]


async def outdated_by(log: ReadsTurns, ref: SessionRef, purges: Sequence[Purge]) -> list[TurnRange]:
    """What the purges name: all but the present revision of each turn that stands."""
    spans = _joined((purge.first_seq, purge.last_seq) for purge in purges)
    return [one for span in spans for one in await _outdated_in(log, ref, span)]


async def _outdated_in(log: ReadsTurns, ref: SessionRef, span: Span) -> list[TurnRange]:
    ranges, (following, last) = [], span
    async for turn in _turns_in(log, ref, span):
        if turn.removed:
            continue
        if following < turn.seq:
            ranges.append(TurnRange(following, turn.seq - 1))
        if turn.revision:
            ranges.append(TurnRange(turn.seq, turn.seq, turn.revision))
        following = turn.seq + 1
    if following <= last:
        ranges.append(TurnRange(following, last))
    return ranges


async def _turns_in(log: ReadsTurns, ref: SessionRef, span: Span) -> AsyncIterator[StoredTurn]:
    after, last = span[0] - 1, span[1]
    while after < last:
        limit = min(last - after, _TURNS_A_READ)
        page = await log.read_turns(ref.tenant, ref.session, after, limit)
        for turn in page:
            if turn.seq <= last:
                yield turn
        if len(page) < limit:
            return
        after = page[-1].seq


def _joined(spans: Iterator[Span]) -> list[Span]:
    """The spans in order; neighbours and overlaps are one."""
    joined: list[Span] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return joined
