"""The gateway's composition root: settings in, a running application out."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import structlog

from prefold.access import secret_of
from prefold.audit import AuditLog
from prefold.cli.main import version
from prefold.config.addresses import naming_address
from prefold.facts import FactBook
from prefold.gateway.admission import Admission
from prefold.gateway.api import Calls, operations_of
from prefold.gateway.background import InBackground
from prefold.gateway.change_calls import ChangeCalls, TurnForgettingIndex
from prefold.gateway.close_calls import CloseCalls
from prefold.gateway.context_calls import ContextCalls
from prefold.gateway.context_records import ContextRecordCalls, ContextRecords, opened_records
from prefold.gateway.credentials import KeyRing
from prefold.gateway.door import Door
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
from prefold.gateway.shortcut import HotCalls, HotParts
from prefold.gateway.state_calls import StateCalls
from prefold.gateway.sweeping import ForgettingIndex, NamingJobs, Sweep, opened_jobs
from prefold.gateway.turn_calls import TurnCalls
from prefold.gateway.usage_calls import UsageCalls
from prefold.gateway.user_calls import UserCalls
from prefold.gateway.user_erasing import UserErasing
from prefold.gateway.vectors import opened_finder
from prefold.gateway.withdrawing import Withdrawing
from prefold.quotas import Quotas
from prefold.storage import Sessions, connect_sessions
from prefold.storage.layout import meet_layout
from prefold.storage.quotas import QuotaCounts
from prefold.storage.watching import Store, watched_store
from prefold.tokens import TokenCounter, load_counter

log = structlog.get_logger(__name__)

_CROWD = 64
"""Of the requests that may be under way, a tenant may have so large a part when they all are."""


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
    quotas: Quotas | None = None
    """None: of the guard's allowances, on the sessions' Redis."""


@asynccontextmanager
async def gateway(settings: GatewaySettings) -> AsyncIterator[Door]:
    """The application with everything it needs; all of it is closed at the end.

    Raises ``ConfigurationError`` for settings that cannot serve and for a store of another layout,
    ``UnavailableError`` when the session store is away.
    """
    guard = guard_of(settings)
    async with AsyncExitStack() as stack:
        counter = InBackground("token counter", load_counter)
        counter.start()
        connecting = connect_sessions(
            settings.redis_url, max_connections=settings.redis_max_connections, lead=settings.build_lead
        )
        sessions = await stack.enter_async_context(connecting)
        with naming_address(settings, "redis_url"):
            store = await stack.enter_async_context(watched_store(sessions, settings))
            await meet_layout(sessions.client)
            await sessions.load_scripts()
        finder, index = await stack.enter_async_context(opened_finder(settings, sessions))
        rewrites = await stack.enter_async_context(opened_rewrites(sessions.client))
        jobs = stack.enter_context(opened_jobs(settings.queue_url))
        records = await stack.enter_async_context(opened_records(sessions))
        quotas = Quotas(QuotaCounts(sessions.client), guard.allowances)
        stack.push_async_callback(quotas.close)
        parts = Collaborators(sessions, finder, index, rewrites, counter, guard, store, jobs, records, quotas)
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
    quotas = parts.quotas or Quotas(QuotaCounts(sessions.client), parts.guard.allowances)
    audit = AuditLog(settings.audit_file, role="gateway")
    erasing = SessionErasing(sessions, Sweep(sessions, parts.index, parts.jobs), quotas, audit)
    calls = Calls(
        turns=TurnCalls(sessions, counter, settings, parts.store, quotas),
        contexts=ContextCalls(reads, counter, recall, parts.records),
        records=ContextRecordCalls(sessions),
        sessions=SessionCalls(sessions, counter, settings, quotas),
        changes=ChangeCalls(
            sessions, parts.index, parts.rewrites, counter, settings, parts.store, withdrawing, quotas, audit
        ),
        search=SearchCalls(parts.finder, memory, settings),
        erasure=ErasureCalls(sessions, erasing, withdrawing, parts.rewrites),
        usage=UsageCalls(sessions.spending),
        memory=MemoryCalls(
            state=StateCalls(sessions, counter, settings),
            close=CloseCalls(sessions),
            facts=FactCalls(sessions, book, vectors, parts.rewrites, settings, audit),
            graph=GraphCalls(book),
            users=UserCalls(UserErasing(sessions, erasing, parts.index), parts.rewrites, audit),
        ),
        events=EventCalls(sessions, parts.guard, stopping),
        health=HealthCalls(sessions.client, counter, metrics, lambda: document),
    )
    table = OperationTable(operations_of(calls))
    document = openapi_document(table.operations, version())
    admission = Admission(
        places=settings.requests_at_once,
        most_of_tenant=settings.requests_of_tenant,
        most_when_crowded=settings.requests_in_flight // _CROWD,
    )
    door = Door(
        table,
        parts.guard,
        metrics,
        parts.store,
        admission=admission,
        most_in_flight=settings.requests_in_flight,
        answer_within_seconds=settings.request_timeout_ms / 1000,
        stopping=stopping,
        ready=calls.health.checks,
    )
    door.shortcut = HotCalls(
        door,
        HotParts(
            table,
            parts.guard,
            metrics,
            parts.store,
            admission,
            sessions,
            reads,
            calls.contexts,
            counter,
            quotas,
            settings,
        ),
    )
    return door


def guard_of(settings: GatewaySettings) -> Guard:
    """Keys where a file names them; else this machine only, which the settings have made sure of."""
    keys = key_ring_of(settings)
    if keys is None:
        return LoopbackGuard()
    log.info("keys_loaded", keys=keys.load())
    return KeyGuard(keys)


def key_ring_of(settings: GatewaySettings) -> KeyRing | None:
    """The keys of the file that is set, not read yet; None: no file is."""
    if settings.api_keys_file is None:
        return None
    every = timedelta(seconds=settings.keys_check_seconds)
    return KeyRing(settings.api_keys_file, secret=secret_of(settings), check_every=every)
