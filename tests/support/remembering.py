"""The memory of sessions on a real Redis, with an extractor, an embedder and a vector store that a test can hold or fail."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from prefold.compaction.engines import Engines
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.errors import UnavailableError
from prefold.facts import FactBook, Stated
from prefold.memory.derived_vectors import DerivedVectors, OpenedStore, UserFacts
from prefold.memory.digest import DigestWriter
from prefold.memory.failures import Failures
from prefold.memory.learning import Learning, OfflineExtractor
from prefold.memory.ports import ModelExtracts
from prefold.memory.proposing import Proposing
from prefold.memory.remembering import Parts, Remembering
from prefold.recall.derived import DerivedKind, DerivedPoint
from prefold.recall.scope import Scope
from prefold.storage import Sessions
from prefold.storage.memory_types import MemoryTicket
from prefold.storage.types import SessionOptions, SessionRef, StoredTurn
from prefold.tokens import load_counter
from tests.support.compaction import new_cache
from tests.support.embedding import FakeEmbedder
from tests.support.storage import TENANT, append, turn

USER = "mara"
Then = Callable[[], Awaitable[None]]


async def nothing() -> None:
    """As a rule, nothing happens in between."""


async def nothing_of(_kind: DerivedKind) -> None:
    """The same."""


@dataclass
class HeldExtractor:
    """The offline extractor. ``then`` runs once it has read its turns, before anything is learnt of them."""

    then: Then = nothing
    fails_on: str = ""
    calls: int = 0

    async def extract(self, ticket: MemoryTicket, turns: Sequence[StoredTurn], *, stored_at_ms: int) -> list[Stated]:
        self.calls += 1
        if self.fails_on and any(self.fails_on in one.verbatim_json.decode() for one in turns):
            raise ValueError(f"cannot read {self.fails_on}")
        found = await OfflineExtractor().extract(ticket, turns, stored_at_ms=stored_at_ms)
        await self.then()
        return found


@dataclass
class FakeDerivedStore:
    """Derived points in memory. ``before_upsert`` is told of each write first, ``is_away`` fails every call."""

    points: dict[str, DerivedPoint] = field(default_factory=dict)
    is_away: bool = False
    before_upsert: Callable[[DerivedKind], Awaitable[None]] = nothing_of

    async def upsert(self, points: Sequence[DerivedPoint]) -> None:
        for kind in dict.fromkeys(point.kind for point in points):
            await self.before_upsert(kind)
        self._check()
        self.points |= {point.id: point for point in points}

    async def forget(
        self,
        tenant: str,
        *,
        user: str | None = None,
        session: str | None = None,
        incarnation: str | None = None,
        kinds: Sequence[DerivedKind] | None = None,
        keys: Sequence[str] | None = None,
    ) -> int:
        self._check()
        scope = Scope(tenant=tenant, user=user, session=session, incarnation=incarnation, kinds=kinds, keys=keys)
        self.points = {name: one for name, one in self.points.items() if not scope.admits(one.payload())}
        return 0

    def kinds(self) -> list[str]:
        return sorted(point.kind for point in self.points.values())

    def _check(self) -> None:
        if self.is_away:
            raise UnavailableError("the vectors do not answer")


class Memory:
    """One worker's memory, and what it talks to."""

    def __init__(
        self,
        sessions: Sessions,
        *,
        store: FakeDerivedStore | None = None,
        model: ModelExtracts | None = None,
        engines: Engines | None = None,
        lease: timedelta = timedelta(seconds=10),
    ) -> None:
        counter, cache = load_counter(), new_cache()
        self.sessions = sessions
        self.book = FactBook(sessions.users, counter)
        self.store = store or FakeDerivedStore()
        self.embedder = FakeEmbedder()
        self.opened = 0
        self.extractor = HeldExtractor()
        failures = Failures()
        facts = UserFacts(sessions.users, self.book, _now_ms)
        self.vectors = DerivedVectors(sessions, facts, self._open)
        self.remembering = Remembering(
            Parts(
                storage=sessions,
                facts=self.book,
                users=sessions.users,
                learning=Learning(self.extractor, model, failures),
                proposing=Proposing(sessions, counter),
                digests=DigestWriter(engines or Engines(ExtractiveSummarizer(cache, counter)), cache, counter),
                vectors=self.vectors,
                failures=failures,
                now_ms=_now_ms,
            ),
            lease=lease,
        )

    async def remember(self, ref: SessionRef) -> str:
        """One whole pass: what became of it, or why none began."""
        ticket = await self.remembering.begin(ref)
        return ticket if isinstance(ticket, str) else await self.remembering.build_with(ticket)

    async def close(self, ref: SessionRef) -> str:
        await self.sessions.ask_close(ref.tenant, ref.session)
        return await self.remember(ref)

    async def known(self, user: str = USER, *, history: bool = False) -> dict[str, str]:
        """Relation to object of what is served of the user, or of all rows."""
        facts = await self.book.list(TENANT, user, history=history, now_ms=_now_ms())
        return {one.relation: one.object for one in facts}

    async def traces(self, word: str, user: str = USER) -> list[str]:
        """Where anything that was derived still says ``word``."""
        facts = await self.book.list(TENANT, user, history=True, now_ms=_now_ms())
        found = [f"fact {one.relation}" for one in facts if word in f"{one.object} {one.said}"]
        profile = await self.book.profile(TENANT, user)
        found += ["profile"] if word in profile.text else []
        async for key in self.sessions.client.scan_iter("pf1:*"):
            name = key.decode()
            if name.endswith(":state"):
                stored: Any = await self.sessions.client.get(key)
                found += ["state"] if word.encode() in (stored or b"") else []
            if name.endswith(":meta"):
                found += [name] if word.encode() in b" ".join((await self._hash(name)).values()) else []
        return found

    async def due(self) -> list[str]:
        """Sessions that are due for their memory, whenever that is."""
        return [one.ref.session for one in await self.sessions.due_sets.due(2**52, 100) if one.kind == "remember"]

    async def _hash(self, name: str) -> dict[bytes, bytes]:
        found: Any = self.sessions.client.hgetall(name)
        return dict(await found)

    async def _open(self) -> OpenedStore:
        self.opened += 1
        return OpenedStore(self.embedder, self.store)


async def talk(sessions: Sessions, session: str, *said: str, user: str | None = USER, **options: Any) -> SessionRef:
    """A session in which the user says these things and the assistant answers each."""
    await sessions.open(TENANT, session, SessionOptions(user=user, **options))
    ref = None
    for number, text in enumerate(said):
        ref = (
            await append(
                sessions,
                turn("user", text, id=f"{session}-{number}"),
                turn("assistant", "Thank you, that is good to know for later.", id=f"{session}-{number}a"),
                session=session,
            )
        ).ref
    assert ref is not None
    return ref


async def until_cancelled() -> None:
    """Never ends by itself."""
    await asyncio.get_running_loop().create_future()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
