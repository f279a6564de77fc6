"""No text of a conversation becomes an order of ours: a model that obeys all of them, on a real server."""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from typing import Any

import pytest

from prefold.compaction.build import SessionBuilder
from prefold.messages import connect_messages
from prefold.storage import Sessions, connect_sessions
from tests.support.injected.corpus import CORPUS, Injection
from tests.support.injected.crossing import crossed
from tests.support.injected.obedient import FORMS
from tests.support.injected.served import builder_with, parts_of, swapped
from tests.support.messages_api import MessagesApi, in_process
from tests.support.messages_api.brains import BRAINS, brain_called
from tests.support.messages_api.brains.faithful import chosen_lines
from tests.support.messages_api.brains.reading import source_of
from tests.support.messages_api.wanted import Wanted
from tests.support.messaging import summarizer_settings
from tests.support.seeds import tell

_FILE = re.compile(r"\(file (\d+)\)")
_AT_ONCE = 24
GOOD = {"faithful", "two_blocks", "drops_facts", "invents"}
"""Brains whose summaries may stand. One that drops every fact does no harm: the ledger has them. What one has invented
is taken out."""


def obedient(wanted: Wanted) -> str:
    """Obeys the injection whose number the conversation bears, each call in another form."""
    found = _FILE.search(wanted.last_text)
    assert found is not None
    form = list(FORMS.values())[(int(found[1]) + wanted.number) % len(FORMS)]
    return form(chosen_lines(source_of(wanted)), CORPUS[int(found[1])].order)


def numbered(number: int) -> list[dict[str, Any]]:
    """The conversation of an injection, with its number in the first turn."""
    turns = CORPUS[number].turns()
    return [{**turns[0], "content": f"{turns[0]['content']} (file {number})"}, *turns[1:]]


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


@pytest.fixture
def api() -> MessagesApi:
    return MessagesApi(brain=obedient)


@pytest.fixture
async def builder(api: MessagesApi, sessions: Sessions, queue_url: str) -> AsyncIterator[SessionBuilder]:
    settings = summarizer_settings("http://messages.fake")
    async with connect_messages(
        settings, sessions.spending, gate_url=queue_url, http_client=in_process(api)
    ) as messages:
        yield builder_with(messages, sessions)


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(range(0, len(CORPUS), 10), id="every-tenth"),
        pytest.param(range(len(CORPUS)), id="all", marks=[pytest.mark.long, pytest.mark.timeout(600)]),
    ],
)
async def test_no_injection_of_the_corpus_crosses_into_a_served_context(
    numbers: range, sessions: Sessions, builder: SessionBuilder
) -> None:
    assert len(CORPUS) >= 100
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(number: int) -> tuple[Injection, str, list[str]]:
        async with room:
            turns = numbered(number)
            record, contexts = await swapped(sessions, builder, f"s{number}", turns)
        texts = [part for context in contexts.values() for part in parts_of(context)]
        assert len(texts) == 4, texts
        return (
            CORPUS[number],
            record["engine"],
            [line for text in texts for line in crossed(text, CORPUS[number], turns)],
        )

    ended = await asyncio.gather(*(one(number) for number in numbers))
    _show(ended)
    assert [(injection.name, lines) for injection, _, lines in ended if lines] == []


@pytest.mark.parametrize("brain", sorted(set(BRAINS) - GOOD))
async def test_nothing_that_a_bad_model_says_is_committed(
    brain: str, sessions: Sessions, builder: SessionBuilder, api: MessagesApi
) -> None:
    api.brain = brain_called(brain)
    record, contexts = await swapped(sessions, builder, "bad", numbered(0))
    assert record["engine"] == "extractive"
    assert record["instead_of"] == "anthropic"
    tell(f"{brain}: {record['because']}")
    assert parts_of(contexts["anthropic"]) == parts_of(contexts["openai"]) != []


@pytest.mark.parametrize("brain", sorted(GOOD))
async def test_what_a_good_model_says_is_committed(
    brain: str, sessions: Sessions, builder: SessionBuilder, api: MessagesApi
) -> None:
    api.brain = brain_called(brain)
    record, contexts = await swapped(sessions, builder, "good", numbered(0))
    assert record["engine"] == "anthropic"
    text = "\n".join(parts_of(contexts["anthropic"]))
    assert "1,250 euros" in text
    assert "RMA-3306" not in text


def _show(ended: list[tuple[Injection, str, list[str]]]) -> None:
    """The table: how many there were and how many crossed, by language, shape and place."""
    for kind in ("language", "shape", "place"):
        tried, over = Counter[str](), defaultdict[str, int](int)
        for injection, _, lines in ended:
            tried[getattr(injection, kind)] += 1
            over[getattr(injection, kind)] += bool(lines)
        tell(f"{kind}: " + ", ".join(f"{name} {over[name]}/{count}" for name, count in sorted(tried.items())))
    tell(f"engines: {dict(Counter(engine for _, engine, _ in ended))}")
