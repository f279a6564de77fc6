"""Which engine writes the summaries, and which one stands in for it.

A model that is away or overloaded comes back: the session rests, and what was made is kept. Whatever else goes wrong
would go wrong again, so the offline engine takes the build at once; it does so as well from the third time on that the
model is away. No model is asked, or waited for any longer, while the context has to leave out turns for want of a
summary: minutes of that are worse than one plainer summary.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from prefold.compaction.engine import Summarizer, Summary, SummaryInput
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.compaction.gate.checks import check_summary
from prefold.compaction.lease import LeaseLostError
from prefold.compaction.pauses import failures_with
from prefold.compaction.reading.turns import TurnCache
from prefold.compaction.segments.engine import SegmentedSummarizer, SegmentStorage
from prefold.compaction.segments.prefix_source import create_prefix
from prefold.config.settings import CHUNK_MARGIN, SummarizerSettings
from prefold.errors import RefusedError, TransientError, place_of
from prefold.messages.errors import ModelAwayError, ModelBusyError
from prefold.tokens import TokenCounter

if TYPE_CHECKING:
    from prefold.worker.runtime import Runtime

log = structlog.get_logger(__name__)

URGENT = "urgent"
"""Why no model was asked: the context is over its limit now."""
PATIENCE = 3
"""So often in a row a model may be away before another engine takes the build."""
_PROMPT_TOKENS = 1_500
"""More than the instructions around a transcript take."""
_LEAST_CHUNK = 1_000


@dataclass(frozen=True, slots=True)
class Made:
    """A summary that passed the gate, and who wrote it."""

    summary: Summary
    engine: Summarizer
    because: str = ""
    """Why it is not the first engine: its failure's code."""


@dataclass(frozen=True, slots=True)
class Engines:
    """The engines of a process."""

    primary: Summarizer
    fallback: Summarizer | None = None
    """Takes a build that the first one cannot do; None: there is none, a failure is a failure."""

    async def make(self, wanted: SummaryInput, last_error: Callable[[], Awaitable[str]]) -> Made:
        """The summary. Raises the first engine's error where the session shall rest, or nobody stands in.

        ``last_error``: what is kept of the session's last build, asked for only where it matters.
        """
        if self.fallback is None:
            return Made(await _checked(self.primary, wanted), self.primary)
        if wanted.ticket.is_urgent:
            return await self._instead(self.fallback, wanted, URGENT)
        try:
            summary = await _unless_hurried(_checked(self.primary, wanted), wanted)
            if summary is None:
                return await self._instead(self.fallback, wanted, URGENT)
            return Made(summary, self.primary)
        except LeaseLostError:
            raise
        except RefusedError as error:
            because = error.code
        except (ModelAwayError, ModelBusyError) as error:
            if failures_with(error.code, await last_error()) < PATIENCE:
                raise
            because = error.code
        except TransientError:
            raise
        except Exception as error:  # noqa: BLE001 (a fault of one engine must not cost the session its summary)
            log.error("engine_fault", engine=self.primary.name, error=place_of(error))
            because = "engine_fault"
        return await self._instead(self.fallback, wanted, because)

    async def _instead(self, engine: Summarizer, wanted: SummaryInput, because: str) -> Made:
        log.info("engine_stands_in", engine=engine.name, instead_of=self.primary.name, because=because)
        return Made(await _checked(engine, wanted), engine, because)


async def _unless_hurried(work: Coroutine[Any, Any, Summary], wanted: SummaryInput) -> Summary | None:
    """What ``work`` makes, or None, with it cancelled, once the session cannot wait for it."""
    making, hurried = asyncio.ensure_future(work), asyncio.ensure_future(wanted.hurry.wait())
    try:
        await asyncio.wait({making, hurried}, return_when=asyncio.FIRST_COMPLETED)
        return making.result() if making.done() else None
    finally:
        for one in (making, hurried):
            one.cancel()
        await asyncio.gather(making, hurried, return_exceptions=True)


async def _checked(engine: Summarizer, wanted: SummaryInput) -> Summary:
    summary = await engine.summarize(wanted)
    check_summary(summary, wanted)
    return summary


def create_engines(
    shared: "Runtime", cache: TurnCache, counter: TokenCounter, *, segments: SegmentStorage | None = None
) -> Engines:
    """What the settings name. ``ConfigurationError`` when it cannot work.

    ``segments``: where segments are kept instead of with the sessions; then no call repeats the chat's own prompt.
    """
    extractive = ExtractiveSummarizer(cache, counter)
    settings = shared.settings
    if settings.summarizer == "extractive":
        return Engines(extractive, None)
    model = SegmentedSummarizer(
        shared.messages,
        segments or shared.sessions,
        counter,
        chunk_tokens=chunk_tokens_of(settings),
        most_output_tokens=settings.summarizer_max_output_tokens,
        prefix=None if segments else create_prefix(shared),
        plain=extractive,
    )
    return Engines(model, extractive)


def chunk_tokens_of(settings: SummarizerSettings) -> int:
    """Most source tokens of one call: as it is set, and within the window less instructions and answer."""
    room = settings.summarizer_window_tokens - settings.summarizer_max_output_tokens - _PROMPT_TOKENS
    return max(_LEAST_CHUNK, min(settings.summarizer_chunk_tokens, int(room / CHUNK_MARGIN)))
