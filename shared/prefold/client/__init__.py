"""The client SDK: publish turns, read the context. Needs the base dependencies only.

    with Prefold("http://127.0.0.1:7077") as prefold:
        prefold.append("chat-42", "user", "Where is my parcel?")
        answer = anthropic.messages.create(model=…, max_tokens=…, **prefold.context("chat-42").anthropic())

Refusals and outages are the errors of ``prefold.errors``.
"""

from prefold.client.asynchronous import AsyncPrefold
from prefold.client.blocking import Prefold
from prefold.client.results import (
    Appended,
    AppendedTurn,
    BuildState,
    Context,
    ContextState,
    Found,
    Session,
    StandbyState,
)
from prefold.client.retrying import RetryPolicy

__all__ = [
    "Appended",
    "AppendedTurn",
    "AsyncPrefold",
    "BuildState",
    "Context",
    "ContextState",
    "Found",
    "Prefold",
    "RetryPolicy",
    "Session",
    "StandbyState",
]
