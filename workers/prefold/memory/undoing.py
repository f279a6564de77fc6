"""Takes back what is known from turns that are no longer what they were."""

from collections.abc import Sequence
from itertools import groupby

from prefold.memory.ports import FactRows, MemoryStorage
from prefold.recall.scope import TurnRange
from prefold.storage.embed_types import Purge
from prefold.storage.memory_types import MemoryTicket, TurnSpan
from prefold.storage.types import SessionRef
from prefold.worker.outdated import outdated_by

__all__ = ["withdraw_life", "withdraw_outdated"]


async def withdraw_outdated(
    storage: MemoryStorage, facts: FactRows, ticket: MemoryTicket, spans: Sequence[TurnSpan]
) -> None:
    """Takes away what is known from all but the present revision of each turn in ``spans``.

    What is named so stays outdated for ever: it may be taken away late, twice, or beside another worker.
    """
    if not ticket.user or not spans:
        return
    purges = [Purge(span.first_seq, span.last_seq, 0) for span in spans]
    outdated = await outdated_by(storage, ticket.ref, purges)
    for below, ranges in groupby(sorted(outdated, key=_revision), key=_revision):
        await facts.withdraw(
            ticket.ref.tenant,
            ticket.user,
            session=ticket.ref.session,
            incarnation=ticket.ref.incarnation,
            spans=[TurnSpan(one.first_seq, one.last_seq) for one in ranges],
            below_revision=below or None,
        )


async def withdraw_life(facts: FactRows, ref: SessionRef, user: str) -> None:
    """Takes away what is known from this life of the session alone."""
    if user:
        await facts.withdraw(ref.tenant, user, session=ref.session, incarnation=ref.incarnation, spans=None)


def _revision(one: TurnRange) -> int:
    return one.below_revision or 0
