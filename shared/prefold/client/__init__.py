"""The client SDK: publish turns, read the context. Needs the base dependencies only.

    with Prefold("http://127.0.0.1:7077") as prefold:
        prefold.append("chat-42", "user", "Where is my parcel?")
        answer = anthropic.messages.create(model=…, max_tokens=…, **prefold.context("chat-42").anthropic())

``prefold.rewind``, ``fork``, ``edit_turn`` and ``remove_turn`` take back, branch off, correct and remove what was said.
All calls try again by themselves and are safe to repeat. Refusals and outages are the errors of ``prefold.errors``.
"""

from prefold.client.asynchronous import AsyncPrefold
from prefold.client.blocking import Prefold
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

__all__ = [
    "Appended",
    "AppendedTurn",
    "AsyncPrefold",
    "BuildState",
    "Changed",
    "ChangedTurn",
    "Context",
    "ContextState",
    "ForkOrigin",
    "Found",
    "Prefold",
    "Remains",
    "RetryPolicy",
    "Rewound",
    "Session",
    "SoftThreshold",
    "StandbyState",
    "SummaryFacts",
    "SummaryUsage",
]
