"""Whole builds with the model engine over the chat's prefix: segments of new turns alone, and chunks where it cannot be."""

import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from prefold.compaction.build import SessionBuilder
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.compaction.reading.turns import TurnCache
from prefold.compaction.segments.engine import SegmentedSummarizer
from prefold.compaction.segments.prefix_source import SharedPrefix
from prefold.storage.types import StoredSegment
from prefold.tokens import load_counter
from tests.support.gateway import served_gateway
from tests.support.messages_api import Answer, MessagesApi, Wanted
from tests.support.messages_api.brains import brain_called
from tests.support.messages_api.journal import Entry
from tests.support.prefix_chat import ASKED, MODEL, PrefixChat, prefix_chat

SUPPORT = Path(__file__).parents[2] / "examples" / "support.jsonl"
SMALL = "claude-haiku-5-5"
FAITHFUL = brain_called("faithful")


@dataclass
class Case:
    """The support case of the examples, its chat's answers as they are recorded, and a build after each of them."""

    chat: PrefixChat
    said: list[dict[str, Any]] = field(default_factory=lambda: [*map(json.loads, SUPPORT.read_text().splitlines())])
    at: int = 1
    outcomes: list[str] = field(default_factory=list)
    late_seconds: float = 0.0
    """So long builds believe the chat's last turn to be ago."""
    answer_to_build: str | None = None
    """Instead of a faithful one."""
    builder: SessionBuilder = field(init=False)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + int(self.late_seconds * 1000)

    def brain(self, wanted: Wanted) -> Any:
        if wanted.body["model"] == SMALL:
            return FAITHFUL(wanted)
        if wanted.last_text.startswith(ASKED):
            return self.answer_to_build or FAITHFUL(wanted)
        content = self.said[self.at + 1]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        calls = any(block["type"] == "tool_use" for block in blocks)
        return Answer(blocks, stop_reason="tool_use" if calls else "end_turn")

    async def play(self, answers: int) -> None:
        """Goes on with the record until the model has answered so often, or to its end."""
        while answers and self.at < len(self.said) - 1:
            turn, after = self.said[self.at], self.said[self.at + 1]
            await self.chat.prefold.append(self.chat.session, turn["role"], turn["content"])
            if (turn["role"], after["role"]) == ("user", "assistant"):
                await self.chat.answer()
                ref = (await self.chat.served.sessions.view("default", self.chat.session)).ref
                self.outcomes.append(await self.builder.build(ref))
                answers -= 1
                self.at += 1
            self.at += 1

    def builds(self, model: str) -> list[Entry]:
        """What builds asked a model for."""
        return [
            one
            for one in self.chat.api.journal.messages
            if one.json["model"] == model and (model == SMALL or ASKED.encode() in one.body)
        ]

    async def segments(self) -> list[StoredSegment]:
        sessions = self.chat.served.sessions
        return await sessions.read_segments((await sessions.view("default", self.chat.session)).ref)


@pytest.fixture
async def case(redis_url: str) -> AsyncIterator[Case]:
    api = MessagesApi()
    counter = load_counter()
    async with served_gateway(redis_url) as served, prefix_chat(served, api, redis_url) as chat:
        case = Case(chat)
        prefix = SharedPrefix(served.sessions, chat.messages, counter, now_ms=case.now_ms)
        cache = TurnCache(counter)
        engine = SegmentedSummarizer(
            chat.messages,
            served.sessions,
            counter,
            chunk_tokens=20_000,
            most_output_tokens=8000,
            prefix=prefix,
        )
        case.builder = SessionBuilder(
            served.sessions, engine, cache, counter, fallback=ExtractiveSummarizer(cache, counter)
        )
        api.brain = case.brain
        system = case.said[0]["content"]
        await chat.open(system=system, hard_limit_tokens=9000, soft_ratio=0.5, keep_recent_turns=4)
        yield case


def read_share(entry: Entry) -> float:
    """Share of a request's input that the provider read from its cache."""
    usage = entry.usage or {}
    read = usage["cache_read_input_tokens"]
    return float(read / (read + usage["input_tokens"] + usage["cache_creation_input_tokens"]))


async def check_leaves(case: Case) -> list[StoredSegment]:
    """Every covered turn stands in exactly one segment, and segments are in order."""
    leaves = [one for one in await case.segments() if one.level == 0]
    assert leaves[0].first_seq == 1
    assert [one.first_seq for one in leaves[1:]] == [one.last_seq + 1 for one in leaves[:-1]]
    return leaves


async def test_the_chats_model_writes_every_segment_and_is_asked_for_new_turns_alone(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    await case.play(99)
    session = await case.chat.prefold.session(case.chat.session)
    asked, leaves = case.builds(MODEL), await check_leaves(case)
    shares = [read_share(entry) for entry in asked]
    with capsys.disabled():
        print(  # noqa: T201
            f"\n{len(asked)} builds, {session.swaps} swaps: read from the cache {min(shares):.1%} to {max(shares):.1%}, "
            f"mean {sum(shares) / len(shares):.1%}"
        )
    assert session.swaps >= 1
    assert len(leaves) == len(asked) == case.outcomes.count("standby") >= 10
    merges = case.builds(SMALL)
    assert all("<summaries-" in entry.body.decode() for entry in merges), "the small model reads no turn"
    assert min(shares) >= 0.8
    assert (session.active.engine, session.active.because) == ("anthropic", None)
    assert session.usage is not None
    assert session.usage.calls == len(asked) + len(merges)
    assert session.usage.cache_read_tokens > 3 * session.usage.input_tokens


async def test_a_build_whose_prefix_may_be_gone_goes_by_chunks_and_the_next_one_shares_again(case: Case) -> None:
    await case.play(26)
    case.late_seconds = 280
    await case.play(6)
    case.late_seconds = 0
    await case.play(8)
    assert len(case.builds(MODEL)) >= 2
    assert len(case.builds(SMALL)) >= 1
    assert set(case.outcomes) == {"not_due", "standby"}
    await check_leaves(case)


async def test_an_answer_that_the_gate_refuses_is_not_kept_and_chunks_are_asked_for(case: Case) -> None:
    case.answer_to_build = "Of course, Dana! I'll look that up for you right away. Is there anything else you need?"
    await case.play(26)
    assert len(case.builds(MODEL)) >= 1
    assert len(case.builds(SMALL)) >= 1
    assert "standby" in case.outcomes
    assert all("right away" not in one.text for one in await check_leaves(case))
