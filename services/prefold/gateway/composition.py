"""The gateway's composition root: settings in, a running application out."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import structlog

from prefold.cli.main import version
from prefold.facts import FactBook
from prefold.gateway.api import Calls, operations_of
from prefold.gateway.background import InBackground
from prefold.gateway.change_calls import ChangeCalls, TurnForgettingIndex
from prefold.gateway.close_calls import CloseCalls
from prefold.gateway.context_calls import ContextCalls
from prefold.gateway.context_records import ContextRecordCalls, ContextRecords, opened_records
from prefold.gateway.credentials import KeyRing
from prefold.gateway.door import Door
from prefold.gateway.durability import Store, watched_store
from prefold.gateway.erasure_calls import ErasureCalls, SessionErasing
from prefold.gateway.event_calls import EventCalls
from prefold.gateway.fact_calls import FactCalls
from prefold.gateway.fact_vectors import DerivedIndex, FactVectors
from prefold.gateway.finding import Finder
from prefold.gateway.graph_calls import GraphCalls
from prefold.gateway.guard import Guard, KeyGuard, LoopbackGuard
from prefold.gateway.health_calls import HealthCalls
from prefold.gateway.memory_api import MemoryCalls
from prefold.gateway.memory_finding import MemoryFinder, MemorySearch
from prefold.gateway.metrics import Metrics
from prefold.gateway.openapi import openapi_document
from prefold.gateway.operations import OperationTable
from prefold.gateway.profiles import ContextReads
from prefold.gateway.recalling import ContextRecall
from prefold.gateway.rewriting import LogRewrites, opened_rewrites
from prefold.gateway.search_calls import SearchCalls
from prefold.gateway.session_calls import SessionCalls
from prefold.gateway.settings import GatewaySettings
from prefold.gateway.state_calls import StateCalls
from prefold.gateway.sweeping import ForgettingIndex, NamingJobs, Sweep, opened_jobs
from prefold.gateway.turn_calls import TurnCalls
from prefold.gateway.usage_calls import UsageCalls
from prefold.gateway.user_calls import UserCalls
from prefold.gateway.user_erasing import UserErasing
from prefold.gateway.vectors import opened_finder
from prefold.gateway.withdrawing import Withdrawing
from prefold.storage import Sessions, connect_sessions
from prefold.tokens import TokenCounter, load_counter

log = structlog.get_logger(__name__)


class Index(ForgettingIndex, TurnForgettingIndex, MemorySearch, DerivedIndex, Protocol):
    """The vectors, as erasures, changes, facts and recall need them."""


@dataclass(frozen=True, slots=True)
class Collaborators:
    """What the calls work with."""

    sessions: Sessions
    finder: Finder
    index: Index
    rewrites: LogRewrites
    counter: InBackground[TokenCounter]
    guard: Guard
    store: Store
    jobs: NamingJobs | None = None
    records: ContextRecords | None = None
    """None: contexts leave no records."""


@asynccontextmanager
async def gateway(settings: GatewaySettings) -> AsyncIterator[Door]:
    """The application with everything it needs; all of it is closed at the end.

    Raises ``ConfigurationError`` for settings that cannot serve, ``UnavailableError`` when the session store is away.
    """
    guard = guard_of(settings)
    async with AsyncExitStack() as stack:
        counter = InBackground("token counter", load_counter)
        counter.start()
        connecting = connect_sessions(
            settings.redis_url, max_connections=settings.redis_max_connections, lead=settings.build_lead
        )
        sessions = await stack.enter_async_context(connecting)
        store = await stack.enter_async_context(watched_store(sessions, settings))
        await sessions.load_scripts()
        finder, index = await stack.enter_async_context(opened_finder(settings, sessions))
        rewrites = await stack.enter_async_context(opened_rewrites(sessions.client))
        jobs = stack.enter_context(opened_jobs(settings.queue_url))
        records = await stack.enter_async_context(opened_records(sessions))
        parts = Collaborators(sessions, finder, index, rewrites, counter, guard, store, jobs, records)
        yield application(settings, parts)


def application(settings: GatewaySettings, parts: Collaborators) -> Door:
    """The ASGI application on given collaborators."""
    metrics, stopping = Metrics(), asyncio.Event()
    sessions, counter = parts.sessions, parts.counter
    book = FactBook(sessions.users, None)
    memory = MemoryFinder(sessions, parts.index, parts.finder.places)
    within = settings.recall_deadline_ms / 1000
    reads = ContextReads(sessions, book, within_seconds=within)
    recall = ContextRecall(parts.finder, memory, within_seconds=within)
    vectors = FactVectors(sessions.users, book, parts.index)
    withdrawing = Withdrawing(sessions, book, vectors, counter)
    erasing = SessionErasing(sessions, Sweep(sessions, parts.index, parts.jobs))
    calls = Calls(
        turns=TurnCalls(sessions, counter, settings, parts.store),
        contexts=ContextCalls(reads, counter, recall, parts.records),
        records=ContextRecordCalls(sessions),
        sessions=SessionCalls(sessions, counter, settings),
        changes=ChangeCalls(sessions, parts.index, parts.rewrites, counter, settings, parts.store, withdrawing),
        search=SearchCalls(parts.finder, memory, settings),
        erasure=ErasureCalls(sessions, erasing, withdrawing, parts.rewrites),
        usage=UsageCalls(sessions.spending),
        memory=MemoryCalls(
            state=StateCalls(sessions, counter, settings),
            close=CloseCalls(sessions),
            facts=FactCalls(sessions, book, vectors, parts.rewrites, settings),
            graph=GraphCalls(book),
            users=UserCalls(UserErasing(sessions, erasing, parts.index), parts.rewrites),
        ),
        events=EventCalls(sessions, stopping),
        health=HealthCalls(sessions.client, counter, metrics, lambda: document),
    )
    table = OperationTable(operations_of(calls))
    document = openapi_document(table.operations, version())
    return Door(
        table,
        parts.guard,
        metrics,
        parts.store,
        most_in_flight=settings.requests_in_flight,
        answer_within_seconds=settings.request_timeout_ms / 1000,
        stopping=stopping,
    )


def guard_of(settings: GatewaySettings) -> Guard:
    """Keys where a file names them; else this machine only, which the settings have made sure of."""
    if settings.api_keys_file is None:
        return LoopbackGuard()
    keys = KeyRing(settings.api_keys_file, check_every=timedelta(seconds=settings.keys_check_seconds))
    log.info("keys_loaded", keys=keys.load())
    return KeyGuard(keys)
