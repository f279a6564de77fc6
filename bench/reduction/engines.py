"""Builders with the engine that is measured."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

from pydantic import SecretStr

from prefold.compaction.build import SessionBuilder
from prefold.compaction.engine import Summarizer
from prefold.compaction.engines import chunk_tokens_of
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.compaction.reading.turns import TurnCache
from prefold.compaction.segments.engine import SegmentedSummarizer
from prefold.config.settings import SummarizerSettings
from prefold.messages import connect_messages
from prefold.storage import Sessions
from prefold.tokens import load_counter

ENGINES = ("extractive", "faithful")
"""``faithful``: the engine that asks a model, and the tests' stand-in for the model, which summarises as it is told."""
Wrap = Callable[[Summarizer], Summarizer]
MakeBuilder = Callable[[Wrap], SessionBuilder]
"""Makes a builder whose engine is what the given function makes of it."""


@asynccontextmanager
async def builders(name: str, sessions: Sessions, redis_url: str, lease: timedelta) -> AsyncIterator[MakeBuilder]:
    """``lease``: of every build."""
    counter = load_counter()
    if name == "extractive":

        def offline(wrap: Wrap) -> SessionBuilder:
            cache = TurnCache(counter)
            return SessionBuilder(sessions, wrap(ExtractiveSummarizer(cache, counter)), cache, counter, lease)

        yield offline
        return
    from tests.support.messages_api import MessagesApi, in_process

    settings = SummarizerSettings(
        summarizer="anthropic", ANTHROPIC_API_KEY=SecretStr("bench"), ANTHROPIC_BASE_URL="http://messages.fake"
    )
    api = MessagesApi(brain=name, keep=0)
    async with (
        in_process(api) as http,
        connect_messages(settings, sessions.spending, gate_url=redis_url, http_client=http) as messages,
    ):

        def with_model(wrap: Wrap) -> SessionBuilder:
            cache = TurnCache(counter)
            engine = SegmentedSummarizer(
                messages,
                sessions,
                counter,
                chunk_tokens=chunk_tokens_of(settings),
                most_output_tokens=settings.summarizer_max_output_tokens,
            )
            fallback = ExtractiveSummarizer(cache, counter)
            return SessionBuilder(sessions, wrap(engine), cache, counter, lease, fallback=fallback)

        yield with_model
