"""The fake's prompt cache, seen as a client sees it: in the usage of each answer."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest

from tests.support.messages_api import Latency, MessagesApi, VirtualClock, faults
from tests.support.messages_api.sdk import sdk_of
from tests.support.waiting import wait_until_async

HAIKU = "claude-haiku-5-5"
LONG = "word " * 700
"""1,000 tokens; 1,003 as a block, 1,007 as the first block of a turn."""
HEAD, TURN = 1003, 1007

Body = dict[str, Any]
Told = tuple[int, int, int]
"""Read, written, neither."""


def words(text: str = LONG, ttl: str | None = None, *, marked: bool = False) -> dict[str, Any]:
    marker = {"type": "ephemeral", **({"ttl": ttl} if ttl else {})}
    return {"type": "text", "text": text, **({"cache_control": marker} if marked or ttl else {})}


def body(*contents: Any, system: Any = None, **more: Any) -> Body:
    """Turns in turn, a user's first."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": content} for at, content in enumerate(contents)]
    return {
        "model": HAIKU,
        "max_tokens": 200,
        "messages": messages,
        **({"system": system} if system is not None else {}),
        **more,
    }


def one(text: str) -> str:
    """As long as LONG, and other words from its first on."""
    return (text + " ").ljust(5, "_") + LONG[5:]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def api(clock: VirtualClock) -> MessagesApi:
    return MessagesApi(clock=clock)


@pytest.fixture
async def client(api: MessagesApi) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with sdk_of(api) as client:
        yield client


async def told(client: anthropic.AsyncAnthropic, wanted: Body) -> Told:
    usage = (await client.messages.create(**wanted)).usage
    return usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0, usage.input_tokens


async def test_without_a_marker_nothing_is_kept(client: anthropic.AsyncAnthropic) -> None:
    for _ in range(2):
        assert await told(client, body(LONG)) == (0, 0, TURN)


async def test_what_one_call_writes_the_next_one_reads(client: anthropic.AsyncAnthropic) -> None:
    first = body([words(marked=True), words("And now?")])
    assert await told(client, first) == (0, TURN, 6)
    assert await told(client, first) == (TURN, 0, 6)
    longer = body([words(marked=True), words("And now?")], "Well.", [words(one("then"), marked=True)])
    read, written, rest = await told(client, longer)
    assert (read, rest) == (TURN, 0)
    assert written == 6 + 9 + TURN


async def test_a_plain_text_is_the_same_as_one_block(client: anthropic.AsyncAnthropic) -> None:
    assert await told(client, body([words(marked=True)], "Well.", "And?")) == (0, TURN, 9 + 9)
    read, _, _ = await told(client, body(LONG, [words("Well.")], [words("And?", marked=True)]))
    assert read == TURN


async def test_a_summary_swapped_in_leaves_the_shared_prefix_in_the_cache(client: anthropic.AsyncAnthropic) -> None:
    tools = [{"name": "look_up", "input_schema": {"type": "object", "properties": {}}}]
    system = [words("Be kind. " + LONG, marked=True)]
    before = body(LONG, "Well.", [words("And?", marked=True)], system=system, tools=tools)
    _, written, _ = await told(client, before)
    after = body("A summary.", "Well.", [words("And?", marked=True)], system=system, tools=tools)
    read, _, rest = await told(client, after)
    head = (await told(client, body("x", system=system, tools=tools)))[0]
    assert read == head
    assert 0 < head < written - TURN + HEAD
    assert rest < 40


async def test_a_byte_changed_in_the_system_loses_all_but_the_tools(client: anthropic.AsyncAnthropic) -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string", "description": LONG}}}
    tools = [{"name": "look_up", "input_schema": schema, "cache_control": {"type": "ephemeral"}}]
    tail = [words("And?", marked=True)]
    _, all_of_it, _ = await told(client, body(LONG, "Well.", tail, system=[words(marked=True)], tools=tools))
    changed = body(LONG, "Well.", tail, system=[words(one("x"), marked=True)], tools=tools)
    read, written, _ = await told(client, changed)
    assert 0 < read < all_of_it - HEAD - 1004
    assert read + written == all_of_it
    without_tools = body(LONG, "Well.", tail, system=[words(one("y"), marked=True)])
    assert (await told(client, without_tools))[0] == 0


async def test_two_cold_calls_at_once_both_write() -> None:
    api = MessagesApi(latency=Latency(base=0.05))
    async with sdk_of(api) as client:
        wanted = body([words(marked=True)])
        assert await asyncio.gather(*(told(client, wanted) for _ in range(2))) == [(0, TURN, 0)] * 2
        assert await told(client, wanted) == (TURN, 0, 0)


async def test_an_entry_can_be_read_once_its_response_has_begun() -> None:
    """Not only when it has ended."""
    api = MessagesApi(latency=Latency(output_ms=2), brain=lambda wanted: "word " * 200)

    async def begun() -> bool:
        return len(api.cache) > 0

    async with sdk_of(api) as client:
        slow = asyncio.create_task(told(client, body([words(marked=True)])))
        await wait_until_async("the first has begun", begun)
        assert await told(client, body([words(marked=True)])) == (TURN, 0, 0)
        assert await slow == (0, TURN, 0)


async def test_below_the_minimum_of_the_model_nothing_happens(client: anthropic.AsyncAnthropic) -> None:
    short = body([words("word " * 300, marked=True)])
    for _ in range(2):
        assert await told(client, short) == (0, 0, 436)
    for model, is_kept in (("claude-opus-4-8", False), ("claude-haiku-4-5", False), (HAIKU, True)):
        wanted = {**body([words(marked=True)]), "model": model}
        await told(client, wanted)
        assert ((await told(client, wanted))[0] > 0) is is_kept, model


async def test_the_cache_of_one_model_is_not_anothers(client: anthropic.AsyncAnthropic) -> None:
    await told(client, body([words(marked=True)]))
    assert (await told(client, {**body([words(marked=True)]), "model": "claude-opus-5-5"}))[0] == 0


async def test_an_entry_lives_five_minutes_or_an_hour_from_its_last_reading(
    client: anthropic.AsyncAnthropic, clock: VirtualClock
) -> None:
    short, long = body([words(marked=True)]), body([words(one("long"), "1h")])
    await told(client, short)
    await told(client, long)
    for _ in range(3):
        clock.advance(299)
        assert (await told(client, short))[0] == TURN
    clock.advance(301)
    assert (await told(client, short))[0] == 0
    assert (await told(client, long))[0] == TURN
    clock.advance(3599)
    assert (await told(client, long))[0] == TURN
    clock.advance(3601)
    assert (await told(client, long))[0] == 0


async def test_what_is_written_is_told_by_its_life(client: anthropic.AsyncAnthropic) -> None:
    wanted = body([words(ttl="1h"), words(one("then"), marked=True), words("And?")])
    usage = (await client.messages.create(**wanted)).usage
    assert usage.cache_creation is not None
    assert usage.cache_creation.ephemeral_1h_input_tokens == TURN
    assert usage.cache_creation.ephemeral_5m_input_tokens == HEAD
    assert usage.cache_creation_input_tokens == TURN + HEAD


@pytest.mark.parametrize(("blocks_between", "is_found"), [(18, True), (19, False)])
async def test_a_marker_looks_twenty_blocks_back_its_own_included(
    client: anthropic.AsyncAnthropic, blocks_between: int, is_found: bool
) -> None:
    """The entry's block, those between, and the marker's own: 20 in all are looked at."""
    await told(client, body([words(marked=True)]))
    between = [words(f"{number}") for number in range(blocks_between)]
    read, written, rest = await told(client, body([words(), *between, words("And?", marked=True)]))
    assert (read > 0) is is_found
    assert read + written == TURN + 4 * blocks_between + 5
    assert rest == 0


async def test_an_earlier_marker_finds_what_the_last_one_cannot_see(client: anthropic.AsyncAnthropic) -> None:
    await told(client, body([words(marked=True)]))
    between = [words(f"{number}") for number in range(30)]
    assert (await told(client, body([words(marked=True), *between, words("And?", marked=True)])))[0] == TURN


@pytest.mark.parametrize(
    ("changes", "keeps"),
    [
        ({"tool_choice": {"type": "any"}}, "system"),
        ({"thinking": {"type": "disabled"}}, "system"),
        ({"output_config": {"effort": "low"}}, "system"),
        ({"speed": "fast"}, "tools"),
        (
            {
                "output_config": {
                    "format": {"type": "json_schema", "schema": {"type": "object", "additionalProperties": False}}
                }
            },
            "tools",
        ),
    ],
    ids=["tool choice", "thinking", "effort", "speed", "form of the answer"],
)
async def test_a_setting_spoils_the_cache_from_the_level_that_it_touches(
    client: anthropic.AsyncAnthropic, changes: Body, keeps: str
) -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string", "description": LONG}}}
    tools = [{"name": "look_up", "input_schema": schema, "cache_control": {"type": "ephemeral"}}]
    whole = body([words(marked=True)], system=[words(marked=True)], tools=tools)
    await told(client, whole)
    of_tools = (await told(client, body("x", tools=tools)))[0]
    assert of_tools > 0
    read = (await told(client, {**whole, **changes}))[0]
    assert read == (of_tools if keeps == "tools" else of_tools + HEAD)
    assert (await told(client, whole))[0] == of_tools + HEAD + TURN


async def test_an_image_anywhere_spoils_the_turns(client: anthropic.AsyncAnthropic) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    await told(client, body([words(marked=True)], system=[words(marked=True)]))
    with_image = body([words(), {"type": "image", "source": source}, words("And?", marked=True)], system=[words()])
    assert (await told(client, with_image))[0] == HEAD


async def test_automatic_caching_marks_the_last_block(client: anthropic.AsyncAnthropic) -> None:
    automatic = {"cache_control": {"type": "ephemeral"}}
    assert await told(client, body(LONG, "Well.", "And?", **automatic)) == (0, TURN + 9 + 9, 0)


async def test_markers_are_no_part_of_what_is_compared_but_the_order_of_an_input_is(
    client: anthropic.AsyncAnthropic,
) -> None:
    def with_input(given: dict[str, Any]) -> Body:
        call = {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": given}
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": LONG}
        return body("Find it.", [call], [result, words("And?", marked=True)])

    _, written, _ = await told(client, with_input({"a": 1, "b": 2}))
    assert (await told(client, with_input({"a": 1, "b": 2})))[0] == written
    assert (await told(client, with_input({"b": 2, "a": 1})))[0] == 0
    marked_elsewhere = with_input({"a": 1, "b": 2})
    marked_elsewhere["messages"][0] = {"role": "user", "content": [words("Find it.", marked=True)]}
    assert (await told(client, marked_elsewhere))[0] == written


async def test_a_call_that_failed_has_written_nothing(client: anthropic.AsyncAnthropic, api: MessagesApi) -> None:
    api.script(faults.overloaded())
    with pytest.raises(anthropic.APIStatusError):
        await told(client, body([words(marked=True)]))
    assert await told(client, body([words(marked=True)])) == (0, TURN, 0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"model": "claude-opus-5-5"}, "model_changed"),
        ({"system": [words(one("x"))]}, "system_changed"),
        ({"tools": []}, "tools_changed"),
        ({"messages": [{"role": "user", "content": "Something else."}]}, "messages_changed"),
        ({"tool_choice": {"type": "any"}}, "unavailable"),
        ({"diagnostics": {"previous_message_id": "msg_none"}}, "previous_message_not_found"),
    ],
)
async def test_who_asks_is_told_why_the_cache_was_missed(
    client: anthropic.AsyncAnthropic, changes: Body, reason: str | None
) -> None:
    tools = [{"name": "look_up", "input_schema": {"type": "object", "properties": {}}}]
    first = body([words(marked=True)], system=[words()], tools=tools, diagnostics={"previous_message_id": None})
    before = await client.messages.create(**first)
    assert before.diagnostics is None
    following = {**first, "diagnostics": {"previous_message_id": before.id}, **changes}
    following["messages"] = [*following["messages"], {"role": "assistant", "content": "Well."}, *first["messages"]]
    after = await client.messages.create(**following)
    found = (
        after.diagnostics.cache_miss_reason.type if after.diagnostics and after.diagnostics.cache_miss_reason else None
    )
    assert found == reason
