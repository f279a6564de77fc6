"""The gateway's application on a real Redis, in this process, with vectors that a test decides."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import httpx
import numpy as np

from prefold.embedding import CosineScale, Embedder, Matrix, Vector
from prefold.errors import UnavailableError
from prefold.facts import Fact, text_of
from prefold.gateway.answers import Durability
from prefold.gateway.background import InBackground
from prefold.gateway.composition import Collaborators, application
from prefold.gateway.context_records import opened_records
from prefold.gateway.finding import Finder, Hit
from prefold.gateway.guard import Guard, LoopbackGuard
from prefold.gateway.rewriting import LogRewrites
from prefold.gateway.settings import GatewaySettings
from prefold.gateway.sweeping import opened_jobs
from prefold.recall import DerivedHit, DerivedKind
from prefold.storage import Sessions, connect_sessions
from prefold.storage.watching import Store, watched_store
from prefold.tokens import load_counter


@dataclass
class DecidedIndex:
    """Answers a search with what the test put in, for the tenant that it put it in for."""

    hits: list[tuple[str, Hit]] = field(default_factory=list)
    is_down: bool = False
    asked: list[dict[str, object]] = field(default_factory=list)
    memory: list[DerivedHit] = field(default_factory=list)
    asked_memory: list[dict[str, object]] = field(default_factory=list)
    facts: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """Texts of stored facts by tenant, user and id."""
    before_storing: Callable[[], Awaitable[None]] | None = None
    """Runs once, when the next facts' vectors are made and not stored yet."""
    before_forgetting: Callable[[], Awaitable[None]] | None = None
    """The same, when facts' vectors are to be removed next."""

    async def search(
        self, tenant: str, vector: Vector, text: str, *, session: str | None, user: str | None, limit: int
    ) -> Sequence[Hit]:
        self.asked.append({"tenant": tenant, "text": text, "session": session, "user": user, "limit": limit})
        if self.is_down:
            raise UnavailableError("the vector store does not answer")
        mine = [hit for owner, hit in self.hits if owner == tenant and session in (None, hit.session)]
        return mine[:limit]

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
        """Best first. Keeps to the kinds; whose a hit is, whoever asks has to check."""
        self.asked_memory.append(
            {"tenant": tenant, "user": user, "kinds": kinds, "session": session, "not": exclude_session}
        )
        if self.is_down:
            raise UnavailableError("the vector store does not answer")
        return [hit for hit in self.memory if hit.kind in kinds][:limit]

    async def store_facts(self, tenant: str, user: str, facts: Sequence[Fact]) -> None:
        if self.is_down:
            raise UnavailableError("the vector store does not answer")
        if (meanwhile := self.before_storing) is not None:
            self.before_storing = None
            await meanwhile()
        self.facts |= {(tenant, user, one.id): text_of(one) for one in facts}

    async def forget_derived(
        self,
        tenant: str,
        *,
        user: str | None = None,
        session: str | None = None,
        incarnation: str | None = None,
        kinds: Sequence[DerivedKind] | None = None,
        keys: Sequence[str] | None = None,
    ) -> int:
        if self.is_down:
            raise UnavailableError("the vector store does not answer")
        if (meanwhile := self.before_forgetting) is not None:
            self.before_forgetting = None
            await meanwhile()
        for one in keys or ():
            self.facts.pop((tenant, user or "", one), None)
        return 0

    async def forget_user(self, tenant: str, user: str) -> int:
        if self.is_down:
            raise UnavailableError("the vector store does not answer")
        self.facts = {place: text for place, text in self.facts.items() if place[:2] != (tenant, user)}
        return 0

    async def forget(self, tenant: str, session: str, incarnation: str) -> int:
        if self.is_down:
            raise UnavailableError("the vector store does not answer")
        gone = (tenant, session, incarnation)
        self.hits = [(owner, hit) for owner, hit in self.hits if (owner, hit.session, hit.incarnation) != gone]
        return 0

    async def forget_turns(
        self,
        tenant: str,
        session: str,
        incarnation: str,
        first_seq: int,
        last_seq: int,
        *,
        below_revision: int | None = None,
    ) -> int:
        if self.is_down:
            raise UnavailableError("the vector store does not answer")
        self.hits = [
            (owner, hit)
            for owner, hit in self.hits
            if (owner, hit.session, hit.incarnation) != (tenant, session, incarnation)
            or not first_seq <= hit.seq <= last_seq
            or (below_revision is not None and hit.revision >= below_revision)
        ]
        return 0


@dataclass
class DecidedStore:
    """Has room and holds the class that a test says."""

    durability: Durability = "fast"

    async def admit(self) -> None: ...

    async def promised(self) -> Durability:
        return self.durability

    def known(self) -> Durability | None:
        return self.durability

    async def held(self) -> Durability:
        return self.durability


class SmallEmbedder:
    """One vector for everything."""

    id = "small"
    dimension = 4
    max_batch = 8
    scale = CosineScale()

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return np.full((len(texts), 4), 0.5, dtype=np.float32)

    def embed_query(self, text: str) -> Vector:
        return np.full(4, 0.5, dtype=np.float32)

    def close(self) -> None: ...


@dataclass
class Served:
    """A gateway in this process."""

    client: httpx.AsyncClient
    sessions: Sessions
    index: DecidedIndex
    transport: httpx.ASGITransport
    """For another client of the same gateway."""


def gateway_settings(**given: object) -> GatewaySettings:
    """Settings that no environment changes."""
    return GatewaySettings.model_validate({"redis_url": "redis://127.0.0.1:1/0", **given})


@asynccontextmanager
async def served_gateway(
    redis_url: str,
    *,
    guard: Guard | None = None,
    durability: Durability = "fast",
    watched: bool = False,
    **given: object,
) -> AsyncIterator[Served]:
    """A client of a gateway on that Redis; counter and embedder are loaded.

    Without ``watched`` the store has room and holds that class, whatever it is.
    """
    settings = gateway_settings(durability=durability, **given)
    index = DecidedIndex()
    counter = InBackground("counter", load_counter)
    embedder: InBackground[Embedder] = InBackground("embedder", SmallEmbedder)
    with ThreadPoolExecutor(1) as executor:
        async with connect_sessions(redis_url) as sessions, AsyncExitStack() as stack:
            await counter.get()
            await embedder.get()
            store: Store = DecidedStore(durability)
            if watched:
                store = await stack.enter_async_context(watched_store(sessions, settings))
            finder = Finder(sessions, index, embedder, executor)
            rewrites = LogRewrites(sessions.client)
            jobs = stack.enter_context(opened_jobs(settings.queue_url))
            records = await stack.enter_async_context(opened_records(sessions))
            admitted = guard or LoopbackGuard()
            parts = Collaborators(sessions, finder, index, rewrites, counter, admitted, store, jobs, records)
            app = application(settings, parts)
            transport = httpx.ASGITransport(app=app, raise_app_exceptions=True)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7077") as client:
                yield Served(client, sessions, index, transport)
