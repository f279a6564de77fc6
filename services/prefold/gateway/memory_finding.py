"""What is remembered beyond the turns, for a query: facts of a user, summaries and segments of sessions.

The index says which; the words are read from the stores, and only what stands there still, with the same text, in a
session of the same tenant and user, is shown.
"""

import asyncio
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Literal, Protocol

import structlog

from prefold.embedding import Vector
from prefold.errors import RefusedError
from prefold.facts import Fact, categories_of, entities_in, neighbours, text_of
from prefold.gateway.finding import Lives, not_set_up
from prefold.gateway.known_facts import KnownFacts, UserFacts
from prefold.recall import DerivedHit, DerivedKind, text_digest
from prefold.storage import Sessions

__all__ = ["FoundMemory", "MemoryFinder", "MemorySearch", "Remembered"]

log = structlog.get_logger(__name__)

_SPARE = 10
"""More hits are asked for than wanted: dead ones fall away."""
_MOST_BESIDE = 6
"""Facts that were not found by their words but belong to the question: of its categories, or neighbours in the graph."""
_HOPS: Final = 2
_SUMMARIES: tuple[DerivedKind, ...] = ("summary", "segment")


class MemorySearch(Protocol):
    """The vectors of derived texts. May be behind the stores, and may name what is gone."""

    async def search_memory(
        self,
        tenant: str,
        vector: Vector,
        text: str,
        *,
        kinds: Sequence[DerivedKind],
        user: str | None,
        session: str | None,
        exclude_session: str | None,
        categories: Collection[str],
        limit: int,
    ) -> Sequence[DerivedHit]:
        """Best first. Raises ``UnavailableError`` when it does not answer."""
        ...


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A fact, a session's summary or a segment, as the stores have it now."""

    kind: Literal["fact", "summary", "segment"]
    id: str
    text: str
    score: float
    session: str = ""
    first_seq: int = 0
    last_seq: int = 0
    ts: str = ""
    copies: int = 0
    sources: tuple[tuple[str, str, int], ...] = ()
    """Of a fact: session, turn id and seq of where it was said."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is looked for: whose, and where."""

    tenant: str
    query: str
    vector: Vector
    user: str | None = None
    """``None``: of all the tenant's users."""
    session: str | None = None
    exclude_session: str | None = None
    limit: int = 10


class MemoryFinder:
    """Searches what is remembered of a tenant's users and sessions."""

    def __init__(self, sessions: Sessions, index: MemorySearch, places: asyncio.Semaphore) -> None:
        self._sessions = sessions
        self._index = index
        self._known = KnownFacts(sessions.users)
        self._places = places

    async def facts(self, wanted: Remembered) -> list[FoundMemory]:
        """Facts, those of the query's categories first, then by likeness, then what belongs to them.

        Neighbours in the graph of what the query names come last. Raises ``UnavailableError``.
        """
        categories = categories_of(wanted.query)
        hits = await self._hits(wanted, ("fact",), categories)
        users = {hit.user for hit in hits} | ({wanted.user} if wanted.user else set())
        facts = {user: await self._known.of(wanted.tenant, user) for user in sorted(users)}
        now_ms = int(time.time() * 1000)
        read = (_first_fact(hit, facts[hit.user], now_ms) for hit in hits)
        found = [one for one in read if one is not None][: wanted.limit]
        if wanted.user is None:
            return found
        known = facts[wanted.user]
        # With hundreds of facts a long query is looked through for some 50 ms.
        return [*found, *await asyncio.to_thread(_beside, wanted.query, categories, known, found, now_ms)]

    async def summaries(self, wanted: Remembered, kinds: Sequence[DerivedKind] = _SUMMARIES) -> list[FoundMemory]:
        """Summaries of sessions, and of segments of them, best first. Raises ``UnavailableError``."""
        hits = await self._hits(wanted, kinds, ())
        lives = Lives(self._sessions, self._places, wanted.tenant, wanted.user)
        read = await asyncio.gather(*(self._first_summary(lives, hit) for hit in hits))
        return [one for one in read if one is not None][: wanted.limit]

    async def _hits(
        self, wanted: Remembered, kinds: Sequence[DerivedKind], categories: Collection[str]
    ) -> Sequence[DerivedHit]:
        try:
            found = await self._index.search_memory(
                wanted.tenant,
                wanted.vector,
                wanted.query,
                kinds=kinds,
                user=wanted.user,
                session=wanted.session,
                exclude_session=wanted.exclude_session,
                categories=categories,
                limit=wanted.limit + _SPARE,
            )
        except RefusedError as error:
            raise not_set_up(error) from error
        return [hit for hit in found if hit.tenant == wanted.tenant and wanted.user in (None, hit.user)]

    async def _first_summary(self, lives: Lives, hit: DerivedHit) -> FoundMemory | None:
        """The hit, or else the first that says the same and that the stores confirm."""
        for one in _alike(hit):
            if (found := await self._summary(lives, one)) is not None:
                return found
        return None

    async def _summary(self, lives: Lives, hit: DerivedHit) -> FoundMemory | None:
        view = await lives.view(hit.session)
        if view is None or view.ref.incarnation != hit.incarnation or view.user != hit.user:
            return None
        async with self._places:
            return await (self._digest(lives, hit) if hit.kind == "summary" else self._segment(lives, hit))

    async def _digest(self, lives: Lives, hit: DerivedHit) -> FoundMemory | None:
        digest = await self._sessions.read_digest(lives.tenant, hit.session)
        if digest is None or text_digest(digest.text) != hit.digest:
            return None
        return _summary_of(hit, digest.text, 1, digest.upto)

    async def _segment(self, lives: Lives, hit: DerivedHit) -> FoundMemory | None:
        view = await lives.view(hit.session)
        for one in await self._sessions.read_segments(view.ref) if view is not None else ():
            if f"{one.level}:{one.first_seq}-{one.last_seq}" == hit.key and text_digest(one.text) == hit.digest:
                return _summary_of(hit, one.text, one.first_seq, one.last_seq)
        return None


def _summary_of(hit: DerivedHit, text: str, first_seq: int, last_seq: int) -> FoundMemory:
    return FoundMemory(
        kind="summary" if hit.kind == "summary" else "segment",
        id=hit.key,
        text=text,
        score=hit.score,
        session=hit.session,
        first_seq=first_seq,
        last_seq=last_seq,
        ts="" if hit.ts_ms is None else datetime.fromtimestamp(hit.ts_ms / 1000, UTC).date().isoformat(),
        copies=hit.copies,
    )


def _alike(hit: DerivedHit) -> Iterator[DerivedHit]:
    """The hit, then those that say the same, each with those that follow it."""
    same = (hit, *hit.others)
    for number, one in enumerate(same, 1):
        yield replace(one, score=hit.score, others=same[number:])


def _first_fact(hit: DerivedHit, known: UserFacts, now_ms: int) -> FoundMemory | None:
    return next((found for one in _alike(hit) if (found := _fact(one, known, now_ms)) is not None), None)


def _fact(hit: DerivedHit, known: UserFacts, now_ms: int) -> FoundMemory | None:
    fact = known.live(hit.key, now_ms)
    if fact is None or text_digest(text_of(fact)) != hit.digest:
        return None
    return _shown(fact, hit.score, hit.copies)


def _beside(
    query: str, categories: Collection[str], known: UserFacts, found: Sequence[FoundMemory], now_ms: int
) -> list[FoundMemory]:
    """What belongs to the question although its words do not say so: not yet indexed, or a neighbour of what it names."""
    near = neighbours(known.graph, entities_in(query, known.graph), _HOPS)
    of_category = [fact for fact in known.facts.values() if fact.category in categories]
    of_category.sort(key=lambda fact: (-fact.last_confirmed_ms, fact.id))
    there = {one.id for one in found}
    beside = {
        fact.id: fact
        for fact in (*near, *of_category)
        if fact.id not in there and known.live(fact.id, now_ms) is not None
    }
    return [_shown(fact, 0.0, 0) for fact in list(beside.values())[:_MOST_BESIDE]]


def _shown(fact: Fact, score: float, copies: int) -> FoundMemory:
    sources = tuple((one.session, one.turn_id, one.seq) for one in fact.sources)
    return FoundMemory("fact", fact.id, text_of(fact), score, copies=copies, sources=sources)
