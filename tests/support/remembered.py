"""Facts, summaries and segments in the stores of a gateway under test, with the hits that an index would give."""

import time
from typing import Any

from prefold.facts import Fact, FactBook, NewFact, text_of
from prefold.recall import DerivedHit, text_digest
from prefold.storage import Sessions
from prefold.storage.memory_types import MemoryTicket, SessionDigest

__all__ = ["add_fact", "close_with_summary", "fact_hit", "summary_hit"]


async def add_fact(sessions: Sessions, user: str, *, tenant: str = "default", **given: Any) -> Fact:
    """A fact as a backend adds it."""
    return await FactBook(sessions.users).add(tenant, user, NewFact(**given), now_ms=int(time.time() * 1000))


def fact_hit(fact: Fact, user: str, score: float = 0.5, *, tenant: str = "default", text: str = "") -> DerivedHit:
    """What the index holds of a fact, or of what it said before (``text``)."""
    digest = text_digest(text or text_of(fact))
    return DerivedHit(tenant, user, "fact", "", "", fact.id, digest, fact.category, None, score, score, 0.0)


async def close_with_summary(sessions: Sessions, session: str, text: str, *, tenant: str = "default") -> DerivedHit:
    """Closes a session with that summary, as the memory worker does; its hit."""
    view = await sessions.ask_close(tenant, session)
    ticket = await sessions.begin_memory(view.ref, lease_ms=60_000)
    assert isinstance(ticket, MemoryTicket), ticket
    digest = SessionDigest(ticket.upto, text, len(text.split()), text_digest(text), int(time.time() * 1000))
    assert await sessions.keep_digest(ticket, digest)
    assert await sessions.end_memory(ticket, upto=ticket.upto, closed=True) == "ended"
    return summary_hit(view.ref.incarnation, session, view.user, text, tenant=tenant)


def summary_hit(
    incarnation: str, session: str, user: str, text: str, score: float = 0.4, *, tenant: str = "default"
) -> DerivedHit:
    """What the index holds of a session's summary."""
    return DerivedHit(
        tenant, user, "summary", session, incarnation, "digest", text_digest(text), "", None, score, score, 0.0
    )
