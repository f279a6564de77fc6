"""The job of the compact queue: builds the summaries of many sessions in one event loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from functools import lru_cache
from typing import Any

import structlog

from prefold.compaction.build import Failed, SessionBuilder, Undecided
from prefold.compaction.engine import Summarizer
from prefold.compaction.extractive import ExtractiveSummarizer
from prefold.compaction.reading import TurnCache
from prefold.errors import ConfigurationError, TransientError
from prefold.jobs import decode_sessions
from prefold.storage.types import SessionRef
from prefold.tokens import TokenCounter
from prefold.worker.isolation import Ended
from prefold.worker.runtime import Runtime, runtime

log = structlog.get_logger(__name__)

BUILDS_AT_ONCE = 64
"""Builds of one process that are under way at the same time."""


def build_summaries(sessions: list[list[Any]]) -> Ended:
    """RQ entry. ``sessions`` as ``encode_sessions`` made it; a session that needs no summary costs one script.

    Tells which sessions' builds failed for good, and which came to nothing for other reasons.
    Raises ``InvalidInputError`` (permanent) on a payload that is none, ``TransientError`` when the storage did
    not answer for any of the sessions: the others are built all the same.
    """
    refs = list(dict.fromkeys(decode_sessions(sessions)))
    shared = runtime()
    outcomes = shared.run(build_all(builder_of(shared).build, refs, shared.stop))
    return Ended(
        failed={ref: outcome for ref, outcome in outcomes.items() if isinstance(outcome, Failed)},
        undecided=frozenset(ref for ref, outcome in outcomes.items() if isinstance(outcome, Undecided)),
    )


async def build_all(
    build: Callable[[SessionRef], Coroutine[Any, Any, str]], refs: Sequence[SessionRef], stop: threading.Event
) -> dict[SessionRef, str]:
    """Builds ``refs`` side by side; their outcomes. After ``stop`` no further one begins: what is due stays due."""
    slots = asyncio.Semaphore(BUILDS_AT_ONCE)

    async def one(ref: SessionRef) -> str:
        async with slots:
            return "stopped" if stop.is_set() else await build(ref)

    ended = await asyncio.gather(*map(one, refs), return_exceptions=True)
    failed = [error for error in ended if isinstance(error, BaseException)]
    transient = [error for error in failed if isinstance(error, TransientError)]
    if transient:  # first: another session's fault must not take the retry from these
        log.warning("builds_unavailable", sessions=len(transient), error=str(transient[0]))
        raise transient[0]
    if failed:
        raise failed[0]
    return {ref: outcome for ref, outcome in zip(refs, ended, strict=True) if isinstance(outcome, str)}


def create_summarizer(name: str, cache: TurnCache, counter: TokenCounter) -> Summarizer:
    """The engine of a setting. ``ConfigurationError``: this version has none of that name."""
    if name == "extractive":
        return ExtractiveSummarizer(cache, counter)
    raise ConfigurationError(f"this version has no summarizer {name!r}; set PREFOLD_SUMMARIZER=extractive")


@lru_cache(maxsize=1)
def builder_of(shared: Runtime) -> SessionBuilder:
    """One for a process: its cache of read turns is what makes a refresh cheap.

    ``ConfigurationError`` when this version has not the engine that is set.
    """
    cache = TurnCache(shared.counter)
    engine = create_summarizer(shared.settings.summarizer, cache, shared.counter)
    return SessionBuilder(shared.sessions, engine, cache, shared.counter)
