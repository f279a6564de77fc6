"""The turns that one round of a pass takes out of the log."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from prefold.memory.ports import MemoryStorage
from prefold.storage.memory_types import MemoryTicket
from prefold.storage.types import StoredTurn

__all__ = ["CONTEXT_TURNS", "PAGE_TURNS", "Page", "all_turns", "next_page"]

PAGE_TURNS = 500
CONTEXT_TURNS = 20
"""Turns before the new ones that are read as well: a role that is played, or a question, goes on over the border."""


@dataclass(frozen=True, slots=True)
class Page:
    """What follows the mark."""

    turns: Sequence[StoredTurn]
    """New ones, in order; none that was removed."""
    before: Sequence[StoredTurn]
    """Some that stand before them and are done."""
    first_seq: int
    upto: int
    """Everything up to here is read."""
    is_last: bool
    """The ticket asks for no more."""
    stored_at_ms: int
    """When the newest of them came, at the latest."""
    epoch: int
    """The user's, before the turns were read: an erasure since then keeps out what they say."""


async def next_page(storage: MemoryStorage, ticket: MemoryTicket, *, epoch: int) -> Page:
    """The next turns of the ticket, at most ``PAGE_TURNS``.

    What a fork copied makes pages of its own: said again today, it would outdo what was said since.
    """
    is_copied = ticket.remembered_to < ticket.copied_to
    end = min(ticket.upto, ticket.copied_to) if is_copied else ticket.upto
    tenant, session = ticket.ref.tenant, ticket.ref.session
    after = max(0, ticket.remembered_to - CONTEXT_TURNS)
    wanted = PAGE_TURNS - CONTEXT_TURNS + ticket.remembered_to - after
    read = await storage.read_turns(tenant, session, after, wanted) if ticket.upto > ticket.remembered_to else []
    is_whole = len(read) < wanted or read[-1].seq >= end
    standing = [turn for turn in read if turn.seq <= end and not turn.removed]
    return Page(
        turns=[turn for turn in standing if turn.seq > ticket.remembered_to],
        before=[turn for turn in standing if turn.seq <= ticket.remembered_to],
        first_seq=ticket.remembered_to + 1,
        upto=end if is_whole else read[-1].seq,
        is_last=is_whole and end == ticket.upto,
        stored_at_ms=ticket.copied_at_ms if is_copied else ticket.spoken_at_ms,
        epoch=epoch,
    )


async def all_turns(storage: MemoryStorage, ticket: MemoryTicket) -> list[StoredTurn]:
    """Turns 1 to ``ticket.upto`` that say something."""
    return [turn async for turn in _turns(storage, ticket) if turn.seq <= ticket.upto and not turn.removed]


async def _turns(storage: MemoryStorage, ticket: MemoryTicket) -> AsyncIterator[StoredTurn]:
    after = 0
    while after < ticket.upto:
        page = await storage.read_turns(ticket.ref.tenant, ticket.ref.session, after, PAGE_TURNS)
        for turn in page:
            yield turn
        if len(page) < PAGE_TURNS:
            return
        after = page[-1].seq
