"""Turns removed and corrected inside tool rounds, in the system prompt and under summaries, read in both formats."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from prefold.conversation import check_anthropic, check_openai
from prefold.conversation.markers import REMOVED_TEXT
from prefold.gateway import change_calls
from prefold.stack.redis_server import with_options
from tests.support.gateway import Served, served_gateway
from tests.support.redis import IN_MEMORY, running_redis
from tests.support.seeds import seed_of_run
from tests.support.waiting import wait_until_async

SESSION = "/v1/sessions/s1"
EXAMPLE = Path(__file__).parents[2] / "examples" / "support.jsonl"
CANARY = "CANARY-7731"
Json = dict[str, Any]


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as running:
        yield running


async def publish(served: Served, *turns: Json) -> None:
    answer = await served.client.post(f"{SESSION}/turns", json={"turns": turns})
    assert answer.status_code == 201, answer.json()


async def done(served: Served, method: str, path: str, body: Json | None = None) -> Json:
    answer = await served.client.request(method, SESSION + path, json=body)
    assert answer.status_code == 200, answer.json()
    told: Json = answer.json()
    return told


async def read(served: Served) -> Json:
    """The context, checked in both formats."""
    openai = (await served.client.get(f"{SESSION}/context?format=openai")).json()
    assert check_openai(openai["messages"]) == []
    body: Json = (await served.client.get(f"{SESSION}/context")).json()
    assert check_anthropic(body["messages"], body["system"]) == []
    assert CANARY not in json.dumps([openai, body])
    return body


def calls(turn_id: str, *ids: str, thinking: bool = False) -> Json:
    thought = {"type": "thinking", "thinking": CANARY, "signature": "EqQB" * 40}
    blocks: list[Json] = [thought] if thinking else []
    blocks += [{"type": "tool_use", "id": one, "name": CANARY, "input": {"q": CANARY}} for one in ids]
    return {"id": turn_id, "role": "assistant", "content": blocks}


def results(turn_id: str, *ids: str, words: str = "") -> Json:
    blocks: list[Json] = [{"type": "tool_result", "tool_use_id": one, "content": CANARY} for one in ids]
    return {"id": turn_id, "role": "user", "content": [*blocks, {"type": "text", "text": words}] if words else blocks}


ASK = {"id": "ask", "role": "user", "content": "Hello"}
END = {"id": "end", "role": "user", "content": "And now?"}
ROUNDS: dict[str, Sequence[Json]] = {
    "answered": [calls("c", "k1", "k2"), results("r", "k1", "k2"), END],
    "answered one by one": [calls("c", "k1", "k2"), results("r", "k2"), results("r2", "k1"), END],
    "still open": [calls("c", "k1")],
    "half answered and open": [calls("c", "k1", "k2"), results("r", "k2")],
    "closed by a plain turn": [calls("c", "k1", "k2"), results("r", "k2"), END],
    "closed by words beside results": [calls("c", "k1", "k2"), results("r", "k2", words=CANARY)],
    "answered late": [calls("c", "k1"), END, results("r", "k1")],
    "a call id that comes again": [calls("c", "k1"), results("r", "k1"), calls("c2", "k1"), results("r2", "k1"), END],
    "two turns of calls": [calls("c", "k1"), calls("c2", "k2"), results("r", "k1", "k2")],
    "thinking, open": [calls("c", "k1", thinking=True)],
    "thinking, answered": [calls("c", "k1", thinking=True), results("r", "k1"), END],
    "openai": [
        {
            "id": "c",
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "k1", "type": "function", "function": {"name": "f", "arguments": f'{{"q":"{CANARY}"}}'}}
            ],
        },
        {"id": "r", "role": "tool", "tool_call_id": "k1", "content": CANARY},
        END,
    ],
}


@pytest.mark.parametrize("name", ROUNDS)
async def test_any_turns_of_a_round_can_be_removed_in_any_order(served: Served, name: str) -> None:
    turns = [ASK, *ROUNDS[name]]
    for order in (turns, turns[::-1]):
        await served.client.put(SESSION, json={})
        await publish(served, *turns)
        before = (await served.client.get(f"{SESSION}/context")).json()
        for turn in order:
            told = await done(served, "DELETE", f"/turns/{turn['id']}")
            assert told["removed"] and told["changed"]
        after = await read(served)
        assert shape(after) == shape(before)
        await publish(served, {"id": "new", "role": "user", "content": "on"})
        assert (await read(served))["messages"][-1]["content"][-1]["text"] == "on"
        await served.client.delete(SESSION)


def shape(body: Json) -> list[Any]:
    """Roles, kinds of blocks that bind, and the ids of calls."""
    binding = ("tool_use", "tool_result")
    return [
        body["open_calls"],
        [
            (
                message["role"],
                [
                    (one["type"], one.get("id") or one["tool_use_id"])
                    for one in message["content"]
                    if one["type"] in binding
                ],
            )
            for message in body["messages"]
        ],
    ]


async def test_corrected_results_and_calls_keep_their_round(served: Served) -> None:
    await publish(served, ASK, calls("c", "k1", "k2"), results("r", "k1", "k2"), END)
    call = {"type": "tool_use", "name": "find", "input": {"q": "parcel"}}
    await done(served, "PUT", "/turns/c", {"role": "assistant", "content": [call | {"id": "k1"}, call | {"id": "k2"}]})
    found = {"type": "tool_result", "content": "at the neighbour's"}
    said: Json = {"role": "user", "content": [found | {"tool_use_id": "k1"}, found | {"tool_use_id": "k2"}]}
    await done(served, "PUT", "/turns/r", said)
    shown = (await read(served))["messages"]
    assert [block["input"] for block in shown[1]["content"]] == [{"q": "parcel"}] * 2
    assert [block["content"] for block in shown[2]["content"][:2]] == ["at the neighbour's"] * 2
    said["content"] = [*said["content"], {"type": "text", "text": "Both are there."}]
    await done(served, "PUT", "/turns/r", said)
    assert "Both are there." in json.dumps((await read(served))["messages"][2])


@pytest.mark.parametrize(
    ("turn_id", "said"),
    [
        ("c", calls("c", "k1")),
        ("c", calls("c", "k2", "k1")),
        ("c", {"role": "assistant", "content": "no calls"}),
        ("r", results("r", "k1")),
        ("r", results("r", "k3", "k4")),
        ("end", results("end", "k1")),
    ],
)
async def test_a_correction_that_would_break_a_round_is_refused(served: Served, turn_id: str, said: Json) -> None:
    await publish(served, ASK, calls("c", "k1", "k2"), results("r", "k1", "k2"), END)
    answer = await served.client.put(f"{SESSION}/turns/{turn_id}", json=said)
    assert (answer.status_code, answer.json()["code"]) == (409, "turn_shape")


async def test_a_leading_system_turn_leaves_the_system_prompt_and_a_later_one_its_place(served: Served) -> None:
    await served.client.put(SESSION, json={"system": "Be kind."})
    system = {"role": "system", "content": CANARY}
    await publish(served, system | {"id": "y1"}, ASK, system | {"id": "y2"}, END)
    told = await done(served, "DELETE", "/turns/y1")
    await done(served, "DELETE", "/turns/y2")
    body = await read(served)
    assert body["system"] == "Be kind."
    assert [block["text"] for block in body["messages"][0]["content"]] == ["Hello", REMOVED_TEXT, "And now?"]
    assert told["turn"]["tokens"] == 0


async def test_a_recorded_conversation_stays_valid_whatever_is_changed_in_it(served: Served) -> None:
    chance = random.Random(seed_of_run("these changes"))
    turns = [json.loads(line) for line in EXAMPLE.read_text("utf-8").splitlines()]
    known = ("id", "role", "content", "ts", "name", "tool_calls", "tool_call_id")
    turns = [{name: turn[name] for name in known if name in turn} for turn in turns]
    await served.client.put(SESSION, json={"hard_limit_tokens": 3000})
    await publish(served, *turns[:100])
    await publish(served, *turns[100:])
    standing = [turn["id"] for turn in turns]
    for _ in range(40):
        match chance.choice(("remove", "remove", "edit", "rewind")):
            case "remove":
                await done(served, "DELETE", f"/turns/{chance.choice(standing)}")
            case "edit":
                turn = turns[standing.index(chance.choice(standing))]
                answer = await served.client.put(f"{SESSION}/turns/{turn['id']}", json={**turn, "name": "Ann"})
                assert answer.status_code in (200, 409), answer.json()
            case "rewind":
                back = chance.randrange(4)
                page = (await served.client.get(f"{SESSION}/turns?limit=500")).json()["turns"]
                if len(page) > 20:
                    told = await done(served, "POST", "/rewind", {"to_seq": page[-1 - back]["seq"]})
                    assert told["turns"] == back
                    standing = standing[: len(standing) - back]
        body = await read(served)
        assert body["tokens"]["total"] <= 3000


async def test_the_append_only_file_loses_the_old_words() -> None:
    with running_redis(with_options(IN_MEMORY, appendonly="yes")) as server:
        async with served_gateway(server.url) as served, Redis.from_url(server.url) as redis:

            def is_written() -> bool:
                files = [path.read_bytes() for path in server.server.directory.rglob("*.aof")]
                return any(CANARY.encode() in content for content in files)

            async def is_idle() -> bool:
                return not (await redis.info("persistence"))["aof_rewrite_in_progress"]

            async def is_gone() -> bool:
                return await is_idle() and not is_written()

            await wait_until_async("no first rewrite is under way", is_idle)
            await publish(served, {"id": "m1", "role": "user", "content": CANARY}, END)
            assert is_written()
            told = await done(served, "DELETE", "/turns/m1")
            assert {"where": "redis append-only file", "until": "the rewrite that was started now"} in told["remains"]
            await wait_until_async("the file is written anew", is_gone)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", "/turns/ask", None),
        ("PUT", "/turns/ask", {"role": "user", "content": "new"}),
        ("POST", "/rewind", {"to_seq": 1}),
    ],
)
async def test_a_change_has_more_time_than_a_read_and_its_vectors_have_less(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Json | None
) -> None:
    monkeypatch.setattr(change_calls, "_FORGET_WITHIN_SECONDS", 0.2)

    async def hang(*_turns: object, **_options: object) -> int:
        await asyncio.Event().wait()
        return 0

    async with served_gateway(redis_url, request_timeout_ms=100) as served:
        await publish(served, ASK, END)
        monkeypatch.setattr(served.index, "forget_turns", hang)
        assert (await done(served, method, path, body))["vectors_left"] is None
