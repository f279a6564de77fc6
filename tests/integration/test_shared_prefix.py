"""Builds on the chat's own prefix: the same bytes as the chat sent, read from the provider's cache."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from prefold.compaction.segments.prefix_source import MISSES_ALLOWED, create_prefix
from prefold.gateway.finding import Hit
from prefold.storage.types import SessionOptions
from prefold.tokens import load_counter
from prefold.worker.runtime import Runtime
from tests.support.gateway import served_gateway
from tests.support.messages_api import Answer, MessagesApi, Wanted, text
from tests.support.messages_api.journal import Entry
from tests.support.prefix_chat import ASKED, MODEL, SUMMARY, TOOLS, PrefixChat, Sent, brain, prefix_chat, question


@pytest.fixture
async def chat(redis_url: str) -> AsyncIterator[PrefixChat]:
    api = MessagesApi(brain=brain)
    async with served_gateway(redis_url) as served, prefix_chat(served, api, redis_url) as chat:
        yield chat


def read_share(entry: Entry) -> float:
    """Share of a request's input that the provider read from its cache."""
    usage = entry.usage or {}
    read = usage["cache_read_input_tokens"]
    return float(read / (read + usage["input_tokens"] + usage["cache_creation_input_tokens"]))


def instruction_of(entry: Entry) -> str:
    """The last message of a build, which has to be the instruction alone."""
    message = entry.json["messages"][-1]
    assert message["role"] == "user"
    assert [block["text"][: len(ASKED)] for block in message["content"]] == [ASKED]
    return str(message["content"][0]["text"])


async def test_a_build_sends_the_bytes_of_the_chats_last_request_and_one_instruction_more(chat: PrefixChat) -> None:
    await chat.open()
    last = await chat.talk(4)
    assert await chat.segment(chat.source(), 1, 4) == SUMMARY
    sent, asked = Sent.of(last), Sent.of(chat.builds[0])
    assert sent.tools and sent.system and len(sent.messages) == 7
    assert asked.parts[:-1] == sent.parts
    assert sum(b'"cache_control"' in part for part in asked.parts) == 3
    told = instruction_of(chat.builds[0])
    assert "begins with «Question 0:" in told
    assert "begins with «Answer 2." in told
    assert chat.builds[0].json["model"] == MODEL
    assert (chat.tally.calls, chat.tally.micro_usd > 0) == (1, True)


async def test_most_of_every_builds_input_is_read_from_the_cache_within_and_across_swaps(
    chat: PrefixChat, capsys: pytest.CaptureFixture[str]
) -> None:
    await chat.open(hard_limit_tokens=10_000, soft_ratio=0.6, keep_recent_turns=4)
    source = chat.source()
    requests = []
    for number in range(100):
        requests.append(await chat.say(question(number, 12)))
        await chat.build(source)
    view = await chat.prefold.session(chat.session)
    shares = [read_share(entry) for entry in chat.builds]
    total = sum(shares) / len(shares)
    with capsys.disabled():
        print(  # noqa: T201
            f"\n{len(shares)} builds on the chat's prefix, {chat.without} without, {view.swaps} swaps: "
            f"read from the cache {min(shares):.1%} to {max(shares):.1%}, mean {total:.1%}; "
            f"the chat itself: {sum(map(read_share, requests[1:])) / (len(requests) - 1):.1%}"
        )
    assert view.swaps >= 3
    assert len(shares) >= 10
    assert chat.without <= len(shares) // 4
    assert min(shares) >= 0.8
    written = [(entry.usage or {})["cache_creation_input_tokens"] for entry in chat.builds]
    assert not any(written), "a build has no use for what it would pay to have cached"


async def test_the_first_request_after_a_swap_still_reads_system_and_tools(chat: PrefixChat) -> None:
    await chat.open(hard_limit_tokens=8000, soft_ratio=0.5, keep_recent_turns=2)
    source, covered = chat.source(), 0
    for number in range(60):
        request = await chat.say(question(number))
        context = await chat.prefold.context(chat.session)
        if context.covers_to > covered and covered == 0 and b"Summary of" in request.body:
            assert (request.usage or {})["cache_read_input_tokens"] > 1000
            return
        covered = 0 if b"Summary of" not in request.body else context.covers_to
        await chat.build(source)
    pytest.fail("there was no swap")


async def test_what_was_recalled_for_the_newest_turn_does_not_spoil_the_prefix(chat: PrefixChat) -> None:
    await chat.open(hard_limit_tokens=8000, soft_ratio=0.5, keep_recent_turns=2)
    source = chat.source()
    for number in range(40):
        await chat.say(question(number))
        await chat.build(source)
    life = (await chat.served.sessions.view("default", chat.session)).ref.incarnation
    chat.served.index.hits = [("default", Hit(chat.session, life, seq, 0, 0.9)) for seq in (1, 3)]
    last = await chat.talk(3, first=40, query="book")
    assert b"earlier turns of this conversation" in last.body
    assert await chat.segment(chat.source(), chat.covered + 1, chat.covered + 2) == SUMMARY
    asked = chat.builds[-1]
    assert b"earlier turns of this conversation" not in asked.body
    assert read_share(last) > 0.8
    assert read_share(asked) > 0.8


async def test_a_range_that_reaches_beyond_what_the_chat_sent_comes_with_what_was_said_since(chat: PrefixChat) -> None:
    await chat.open()
    last = await chat.talk(3)
    await chat.segment(chat.source(), 1, 6)
    sent, asked = Sent.of(last), Sent.of(chat.builds[0])
    assert asked.parts[: len(sent.parts)] == sent.parts
    assert [message["role"] for message in chat.builds[0].json["messages"][-2:]] == ["assistant", "user"]
    assert b"Answer 3" in bytes(asked.messages[-2])


async def test_a_round_of_tools_is_shared_with_its_results(chat: PrefixChat) -> None:
    def calling(wanted: Wanted) -> Answer:
        if wanted.last_text.startswith(ASKED) or wanted.messages[-1][1][-1]["type"] == "tool_result":
            return brain(wanted)
        call = {"type": "tool_use", "id": f"toolu_{wanted.number}", "name": "look_up", "input": {"z": "é", "a": 1.0}}
        return Answer([{"type": "text", "text": "Let me see."}, call], stop_reason="tool_use")

    chat.api.brain = calling
    chat.options = {
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "low"},
    }
    await chat.open(shared_prefix={"enabled": True, **chat.options})
    for number in range(6):
        await chat.say(question(number))
        call_id = chat.api.journal.messages[-1].number
        found = [{"type": "tool_result", "tool_use_id": f"toolu_{call_id}", "content": f"Order {number} " * 80}]
        await chat.prefold.append(chat.session, "user", found)
        await chat.answer()
    last = chat.api.journal.messages[-1]
    assert await chat.segment(chat.source(), 1, 8) == SUMMARY
    sent, asked = Sent.of(last), Sent.of(chat.builds[0])
    assert asked.parts[:-1] == sent.parts
    assert chat.builds[0].json.items() >= chat.options.items()
    assert read_share(chat.builds[0]) > 0.8


async def test_a_call_that_nobody_answered_is_closed_where_the_range_ends_with_it(chat: PrefixChat) -> None:
    await chat.open()
    await chat.talk(2)
    await chat.prefold.append(chat.session, "user", question(3))
    call = {"type": "tool_use", "id": "toolu_open", "name": "look_up", "input": {}}
    await chat.prefold.append(chat.session, "assistant", [call])
    await chat.prefold.append(chat.session, "user", "Never mind.")
    assert await chat.segment(chat.source(), 1, 6) == SUMMARY
    closing = chat.builds[0].json["messages"][-2]
    assert [block["type"] for block in closing["content"]] == ["tool_result"]
    assert "Never mind" not in chat.builds[0].body.decode()


async def refused(chat: PrefixChat, **options: Any) -> bool:
    """True when a build of turns 1 to 4 does without the prefix, and asks nobody."""
    asked = len(chat.builds)
    later_seconds = options.pop("later_seconds", 0)
    written = await chat.segment(chat.source(later_seconds=later_seconds, **options), 1, 4)
    assert (written is None) == (len(chat.builds) == asked)
    return written is None


async def test_a_prefix_that_the_provider_may_have_dropped_is_not_sent(chat: PrefixChat) -> None:
    await chat.open()
    await chat.talk(3)
    assert not await refused(chat, later_seconds=200)
    assert await refused(chat, later_seconds=280)
    await chat.prefold.create_session(chat.session, shared_prefix={"enabled": True, "cache": "1h"})
    await chat.say(question(3))
    assert not await refused(chat, later_seconds=2000)
    assert await refused(chat, later_seconds=3500)


CHANGES: dict[str, dict[str, Any]] = {
    "system": {"system": "You sell bread."},
    "model": {"model": "claude-opus-5-5"},
    "tools": {"tools": [TOOLS[0], {**TOOLS[0], "name": "look_down"}]},
    "setting": {"shared_prefix": {"enabled": True, "thinking": {"type": "adaptive"}}},
}


@pytest.mark.parametrize("name", CHANGES)
async def test_what_the_chat_has_not_sent_yet_is_not_taken_for_cached(chat: PrefixChat, name: str) -> None:
    await chat.open()
    await chat.talk(3)
    await chat.prefold.create_session(chat.session, **chat_options())
    assert not await refused(chat), "nothing has changed"
    await chat.prefold.create_session(chat.session, **CHANGES[name])
    assert await refused(chat)
    chat.model = CHANGES[name].get("model", MODEL)
    await chat.say(question(3))
    assert not await refused(chat)


def chat_options() -> dict[str, Any]:
    return {"model": MODEL, "tools": TOOLS, "shared_prefix": {"enabled": True}}


async def test_an_edit_makes_the_sent_prefix_void_until_the_chat_goes_on(chat: PrefixChat) -> None:
    await chat.open()
    await chat.talk(3)
    first = (await chat.prefold.turns(chat.session))[0]
    await chat.prefold.edit_turn(chat.session, first["id"], "user", "Never mind.")
    assert await refused(chat)
    await chat.say(question(3))
    assert not await refused(chat)


async def test_in_a_long_run_of_tools_a_changed_prefix_is_shared_again_once_the_chat_has_asked_with_it(
    chat: PrefixChat,
) -> None:
    source = chat.source()

    async def is_shared() -> bool:
        return await chat.segment(source, 1, 4) is not None

    await chat.open()
    await chat.talk(2)
    await chat.prefold.append(chat.session, "user", question(2))
    chat.api.brain = lambda wanted: (
        brain(wanted)
        if wanted.last_text.startswith(ASKED)
        else Answer(
            [{"type": "tool_use", "id": f"toolu_{wanted.number}", "name": "look_up", "input": {}}],
            stop_reason="tool_use",
        )
    )
    tries = []
    for number in range(6):
        if number == 2:
            await chat.prefold.create_session(chat.session, system="You sell bread. " * 300)
        await chat.answer()
        call_id = chat.api.journal.messages[-1].number
        result = [{"type": "tool_result", "tool_use_id": f"toolu_{call_id}", "content": f"Order {number} " * 90}]
        await chat.prefold.append(chat.session, "user", result)
        tries.append(await is_shared())
    assert tries == [True, True, False, False, True, True]
    assert min(map(read_share, chat.builds[2:])) > 0.7


async def test_without_a_model_a_setting_or_an_answer_there_is_no_prefix(chat: PrefixChat) -> None:
    await chat.open(shared_prefix={})
    await chat.talk(2)
    assert await refused(chat)
    chat.session = "s2"
    await chat.open(model=None)
    await chat.talk(2)
    assert await refused(chat)
    chat.session = "s3"
    await chat.open()
    for number in range(4):
        await chat.prefold.append(chat.session, "user", question(number))
    assert await refused(chat)
    chat.session = "s4"
    await chat.open()
    await chat.talk(2)
    assert await refused(chat, may_ask=lambda model: model != MODEL)


@pytest.mark.parametrize(
    ("allowed", "model", "is_asked"),
    [
        ("*", MODEL, True),
        ("claude-haiku-*, claude-sonnet-*", MODEL, True),
        ("claude-haiku-*", MODEL, False),
        ("none", MODEL, False),
        ("*", "model-of-no-price", False),
    ],
)
async def test_the_operator_says_for_which_models_sessions_may_spend(
    chat: PrefixChat, allowed: str, model: str, is_asked: bool
) -> None:
    await chat.open()
    await chat.talk(3)
    await chat.prefold.create_session(chat.session, model=model)
    chat.model = MODEL
    await chat.say(question(3))
    settings = SimpleNamespace(prices_file=None, summarizer_prefix_models=allowed)
    runtime = SimpleNamespace(
        settings=settings, sessions=chat.served.sessions, messages=chat.messages, counter=load_counter()
    )
    await chat.segment(create_prefix(cast("Runtime", runtime)), 1, 4)
    assert bool(chat.builds) is is_asked


async def test_turns_that_do_not_stand_whole_in_the_context_are_not_asked_for(chat: PrefixChat) -> None:
    await chat.open(hard_limit_tokens=8000)
    await chat.talk(3)
    await chat.prefold.create_session(chat.session, hard_limit_tokens=4500)
    await chat.talk(3, first=3, times=60)
    assert (await chat.prefold.context(chat.session)).status == "degraded"
    assert await refused(chat)


async def test_an_answer_that_calls_a_tool_is_no_summary(chat: PrefixChat) -> None:
    await chat.open()
    await chat.talk(3)
    call = {"type": "tool_use", "id": "toolu_x", "name": "look_up", "input": {}}
    chat.api.brain = lambda _: Answer([call], stop_reason="tool_use")
    assert await chat.segment(chat.source(), 1, 4) is None
    assert len(chat.builds) == 1
    assert (chat.tally.calls, chat.tally.refused) == (1, ["answer_stopped"])


async def test_a_session_whose_prefix_is_never_found_cached_soon_goes_without(chat: PrefixChat) -> None:
    await chat.open()
    await chat.talk(3)
    source = chat.source()
    tries = []
    for _ in range(30):
        chat.api.cache.clear()
        tries.append(await chat.segment(source, 1, 4) is not None)
    assert tries[:MISSES_ALLOWED] == [True] * MISSES_ALLOWED
    assert sum(tries) <= 6
    assert any(tries[MISSES_ALLOWED:]), "it is tried again later"


async def test_a_chat_that_thinks_gets_room_for_it(chat: PrefixChat) -> None:
    chat.api.brain = lambda wanted: brain(wanted) if wanted.max_tokens >= 6000 else text("cut")
    chat.model = "claude-opus-4-6"
    thinking = {"type": "enabled", "budget_tokens": 2000}
    await chat.open(model=chat.model, shared_prefix={"enabled": True, "thinking": thinking})
    await chat.prefold.append(chat.session, "user", question(0))
    await chat.prefold.append(chat.session, "assistant", "Here.")
    assert await chat.segment(chat.source(), 1, 2) == SUMMARY
    assert chat.builds[0].json["thinking"] == thinking


@pytest.mark.parametrize("tokens", [-(10**9), "2000", None, True, 15_001])
async def test_no_room_is_asked_for_that_no_answer_can_have(chat: PrefixChat, tokens: object) -> None:
    await chat.open()
    thinking = {"type": "enabled", "budget_tokens": tokens}
    stored = orjson.dumps({"enabled": True, "thinking": thinking}).decode()
    await chat.served.sessions.open("default", chat.session, SessionOptions(shared_prefix=stored))
    await chat.talk(2)
    assert await chat.segment(chat.source(), 1, 2) is None
    assert chat.builds == []


async def test_a_model_that_declines_each_time_is_not_paid_for_with_each_build(chat: PrefixChat) -> None:
    refusal = text("I would rather not.", stop_reason="refusal")
    chat.api.brain = lambda wanted: refusal if wanted.last_text.startswith(ASKED) else brain(wanted)
    await chat.open()
    await chat.talk(3)
    source = chat.source()
    for _ in range(10):
        assert await chat.segment(source, 1, 4) is None
    assert len(chat.builds) == MISSES_ALLOWED
