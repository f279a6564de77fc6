"""A chat backend as the manual shows it, and builds that share its prefix, on a fake of the Messages API."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import orjson
from anthropic import AsyncAnthropic

from prefold.client import AsyncPrefold
from prefold.compaction.engine import SummaryInput, Tally
from prefold.compaction.ledger.collect import Ledger
from prefold.compaction.segments.prefix_source import SharedPrefix
from prefold.config.settings import SummarizerSettings
from prefold.messages import Messages
from prefold.messages.calls import connect_messages
from prefold.storage.spending import Spending
from prefold.storage.types import BuildTicket, BuiltSummary, HeadFragment
from prefold.tokens import load_counter
from tests.support.gateway import Served
from tests.support.messages_api import Answer, MessagesApi, Wanted, in_process, text
from tests.support.messages_api.journal import Entry

MODEL = "claude-sonnet-5-5"
SYSTEM = "You are the assistant of a bookshop. " + " ".join(f"Rule {n}: be kind, exact and brief." for n in range(120))
TOOLS: list[dict[str, Any]] = [
    {
        "name": "look_up",
        "description": "Looks an order up. " + "Knows every order. " * 30,
        "input_schema": {
            "type": "object",
            "properties": {"z": {"type": "string"}, "a": {"type": "number", "minimum": 1.5}},
        },
    }
]
ASKED = "[Prefold: request for a record"
SUMMARY = "<summary>\n## intent\n- A person wants books.\n## state\n- They wait.\n</summary>"


def question(number: int, times: int = 6) -> str:
    """What a user says; longer with ``times``."""
    return f"Question {number}: " + f"where do I find the book of number {number} and who wrote it? " * times


class Sent(msgspec.Struct):
    """A request's body, its parts as the bytes that came."""

    messages: list[msgspec.Raw]
    system: msgspec.Raw = msgspec.Raw(b"")
    tools: msgspec.Raw = msgspec.Raw(b"")

    @classmethod
    def of(cls, entry: Entry) -> "Sent":
        return msgspec.json.decode(entry.body, type=cls)

    @property
    def parts(self) -> list[bytes]:
        return [bytes(part) for part in (self.tools, self.system, *self.messages)]


def brain(wanted: Wanted) -> Answer:
    """Answers the chat, and writes what it is asked for."""
    if wanted.last_text.startswith(ASKED):
        return text(SUMMARY)
    return text(f"Answer {wanted.number}. " + "The book is on the second shelf, I am sure. " * 8)


@dataclass
class PrefixChat:
    """One session, its backend and its builds."""

    served: Served
    prefold: AsyncPrefold
    anthropic: AsyncAnthropic
    messages: Messages
    api: MessagesApi
    session: str = "s1"
    covered: int = 0
    """By a summary that was committed here."""
    without: int = 0
    """Builds that could not share the prefix."""
    builds: list[Entry] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    """Of the last build."""
    options: dict[str, Any] = field(default_factory=dict)
    """What the backend gives its model beside the context."""
    model: str = MODEL

    def source(self, *, later_seconds: float = 0.0, **options: Any) -> SharedPrefix:
        """What builds ask, on a clock that is ``later_seconds`` ahead."""
        now_ms = lambda: time.time_ns() // 1_000_000 + int(later_seconds * 1000)  # noqa: E731
        return SharedPrefix(self.served.sessions, self.messages, load_counter(), now_ms=now_ms, **options)

    async def open(self, **options: Any) -> None:
        given = {"model": MODEL, "system": SYSTEM, "tools": TOOLS, "shared_prefix": {"enabled": True}, **options}
        await self.prefold.create_session(self.session, **given)

    async def say(self, words: str, *, query: str | None = None) -> Entry:
        """One turn of the chat; the request that the backend made."""
        await self.prefold.append(self.session, "user", words)
        return await self.answer(query=query)

    async def talk(self, turns: int, *, first: int = 0, times: int = 6, query: str | None = None) -> Entry:
        """So many turns; the request of the last."""
        requests = [await self.say(question(number, times), query=query) for number in range(first, first + turns)]
        return requests[-1]

    async def answer(self, *, query: str | None = None) -> Entry:
        """The model is asked with the context as it stands, and its answer published."""
        context = await self.prefold.context(self.session, cache="5m", query=query)
        given: dict[str, Any] = {"tools": TOOLS, **context.anthropic(), **self.options}
        said = await self.anthropic.messages.create(model=self.model, max_tokens=1024, **given)
        entry = self.api.journal.messages[-1]
        blocks = [block.model_dump(exclude_none=True) for block in said.content]
        await self.prefold.append(self.session, "assistant", blocks)
        return entry

    async def segment(self, source: SharedPrefix, first: int, last: int) -> str | None:
        """What ``source`` gives for a range of the log."""
        turns = tuple(await self.served.sessions.read_turns("default", self.session, 0, 500))
        ref = (await self.served.sessions.view("default", self.session)).ref
        ticket = BuildTicket(ref, 1, last, 0, 1000, 8000, 0, 1.0, 0, 1)
        wanted = SummaryInput(ref=ref, turns=turns, cap_tokens=400, language="en", ledger=Ledger(()), ticket=ticket)
        self.tally = wanted.tally
        before = len(self.api.journal.messages)
        written = await source.segment(wanted, first, last, 400)
        self.builds += list(self.api.journal.messages)[before:]
        return written

    async def build(self, source: SharedPrefix) -> bool:
        """One build of what is due, committed; False when none is due."""
        sessions = self.served.sessions
        ref = (await sessions.view("default", self.session)).ref
        ticket = await sessions.begin_build("default", self.session, ref.incarnation, 10_000)
        if isinstance(ticket, str):
            return False
        written = await self.segment(source, self.covered + 1, ticket.covers_to)
        if written is None:
            written = SUMMARY
            self.without += 1
        content = orjson.dumps({"type": "text", "text": f"[Summary of {ticket.covers_to}]\n" + written * 3})
        fragment = HeadFragment("summary", content, load_counter().count(content.decode()) + 4)
        result = await sessions.commit_build(ticket, BuiltSummary((fragment,), "{}", 1.0))
        assert result.outcome in ("standby", "swapped"), result
        self.covered = ticket.covers_to
        return True


@asynccontextmanager
async def prefix_chat(served: Served, api: MessagesApi, redis_url: str) -> AsyncIterator[PrefixChat]:
    """The parts, connected."""
    http: dict[str, Any] = {"api_key": "sk-test", "base_url": "http://messages.fake"}
    given = {"anthropic_" + name: value for name, value in http.items()}
    settings = SummarizerSettings.model_validate({"summarizer": "anthropic", **given})
    spending = Spending(served.sessions.client)
    async with (
        AsyncPrefold("http://127.0.0.1:7077", transport=served.transport) as prefold,
        AsyncAnthropic(**http, max_retries=0, http_client=in_process(api)) as anthropic,
        connect_messages(settings, spending, gate_url=redis_url, http_client=in_process(api)) as messages,
    ):
        yield PrefixChat(served, prefold, anthropic, messages, api)
