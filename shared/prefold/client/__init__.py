"""The client SDK: publish turns, read the context. Needs the base dependencies only.

    with Prefold("http://127.0.0.1:7077") as prefold:
        prefold.append("chat-42", "user", "Where is my parcel?")
        answer = anthropic.messages.create(model=…, max_tokens=…, **prefold.context("chat-42").anthropic())
        prefold.append_response("chat-42", answer)

``Prefold.direct(redis_url)`` and ``AsyncPrefold.direct(redis_url)`` talk to Redis without a gateway. All calls try
again by themselves and are safe to repeat. Refusals and outages are the errors of ``prefold.errors``.
"""

from typing import TYPE_CHECKING, Any

from prefold.client.async_buffer import AsyncAppendBuffer, AsyncTicket
from prefold.client.asynchronous import AsyncPrefold
from prefold.client.blocking import Prefold
from prefold.client.buffer import AppendBuffer, Ticket
from prefold.client.events import Degraded, Erased, Event, StandbyReady, Swapped
from prefold.client.reporting import turn_of
from prefold.client.results import (
    Appended,
    AppendedTurn,
    BuildState,
    Changed,
    ChangedTurn,
    Context,
    ContextState,
    ForkOrigin,
    Found,
    Remains,
    Rewound,
    Session,
    SoftThreshold,
    StandbyState,
    SummaryFacts,
    SummaryUsage,
)
from prefold.client.retrying import RetryPolicy

if TYPE_CHECKING:
    from prefold.client.memory_results import (
        Closed,
        ContextRecord,
        DayUsage,
        Fact,
        FactPage,
        FactSource,
        Graph,
        GraphEdge,
        GraphNode,
        Proposal,
        State,
    )
    from prefold.client.receipts import DeletedFact, ErasedSession, ErasedUser

__all__ = [
    "AppendBuffer",
    "Appended",
    "AppendedTurn",
    "AsyncAppendBuffer",
    "AsyncPrefold",
    "AsyncTicket",
    "BuildState",
    "Changed",
    "ChangedTurn",
    "Closed",
    "Context",
    "ContextRecord",
    "ContextState",
    "DayUsage",
    "Degraded",
    "DeletedFact",
    "Erased",
    "ErasedSession",
    "ErasedUser",
    "Event",
    "Fact",
    "FactPage",
    "FactSource",
    "ForkOrigin",
    "Found",
    "Graph",
    "GraphEdge",
    "GraphNode",
    "Prefold",
    "Proposal",
    "Remains",
    "RetryPolicy",
    "Rewound",
    "Session",
    "SoftThreshold",
    "StandbyReady",
    "StandbyState",
    "State",
    "SummaryFacts",
    "SummaryUsage",
    "Swapped",
    "Ticket",
    "turn_of",
]

_RECEIPTS = ("DeletedFact", "ErasedSession", "ErasedUser")


def __getattr__(name: str) -> Any:
    """The results that few backends name: imported when they are first asked for."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module("prefold.client.receipts" if name in _RECEIPTS else "prefold.client.memory_results")
    return getattr(module, name)
