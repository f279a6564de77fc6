"""Statements as an extractor makes them, and a user's book on a real server."""

from collections.abc import Iterable
from typing import Any

from prefold.facts import Fact, FactBook, Learnt, Source, Stated

TENANT, USER = "acme", "ada"
START_MS = 1_770_000_000_000
DAY_MS = 86_400_000
NOW_MS = START_MS + DAY_MS


def source(seq: int, session: str = "s1", incarnation: str = "life1", revision: int = 0) -> Source:
    return Source(session, incarnation, f"turn-{seq}", seq, revision)


def said(relation: str, obj: str, seq: int, **members: Any) -> Stated:
    """What turn ``seq`` said of the user, ``seq`` milliseconds after the start unless it says when."""
    turn = source(seq, *(members.pop(name) for name in ("session",) if name in members))
    given: dict[str, Any] = {
        "subject": "user",
        "category": "other",
        "confidence": 0.9,
        "said": f"I said that {obj}.",
        "source": turn,
        "said_at_ms": START_MS + seq,
    }
    return Stated(relation=relation, object=obj, **{**given, **members})


def content(facts: Iterable[Fact]) -> set[tuple[Any, ...]]:
    """What facts say, without their ids: by what they were replaced is told by its words."""
    known = {fact.id: fact for fact in facts}
    return {
        (
            fact.subject,
            fact.relation,
            fact.object,
            fact.category,
            fact.confidence,
            fact.sources,
            fact.origin,
            fact.said,
            fact.is_entity,
            fact.first_seen_ms,
            fact.last_confirmed_ms,
            fact.expires_at_ms,
            _words(known, fact.superseded_by),
            fact.superseded_at_ms,
        )
        for fact in known.values()
    }


def _words(known: dict[str, Fact], name: str | None) -> tuple[str, str] | None:
    return (known[name].relation, known[name].object) if name is not None else None


def objects(facts: Iterable[Fact], relation: str) -> list[str]:
    """Objects of the facts of that relation, sorted."""
    return sorted(fact.object for fact in facts if fact.relation == relation)


async def live(book: FactBook, now_ms: int = NOW_MS) -> list[Fact]:
    """What holds of the user."""
    return await book.list(TENANT, USER, now_ms=now_ms)


async def everything(book: FactBook) -> list[Fact]:
    """History too."""
    return await book.list(TENANT, USER, history=True, now_ms=NOW_MS)


async def learn(book: FactBook, *stated: Any, now_ms: int = NOW_MS) -> Learnt:
    return await book.learn(TENANT, USER, stated, now_ms=now_ms)
