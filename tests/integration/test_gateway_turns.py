"""Appending and reading turns over HTTP, on a real Redis."""

from collections.abc import AsyncIterator

import pytest

from tests.support.gateway import Served, served_gateway


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as served:
        yield served


async def test_one_turn_is_accepted_with_its_number_and_where_the_context_stands(served: Served) -> None:
    answer = await served.client.post("/v1/sessions/s1/turns", json={"id": "a", "role": "user", "content": "Hello"})
    assert answer.status_code == 201
    body = answer.json()
    assert body["turns"] == [{"id": "a", "seq": 1, "tokens": 8, "duplicate": False}]
    assert body["context"] == {
        "version": 1,
        "swaps": 0,
        "tokens": 8,
        "window_tokens": 8,
        "hard_limit_tokens": 100_000,
        "status": "ok",
    }
    assert body["durability"] == "fast"


async def test_several_turns_are_numbered_in_order_and_read_back_verbatim(served: Served) -> None:
    turns: list[dict[str, object]] = [
        {"id": "a", "role": "user", "content": "Where is my order?", "ts": "2026-09-08T07:41:05+02:00"},
        {"role": "assistant", "content": [{"type": "text", "text": "Let me look."}], "name": "bot"},
    ]
    accepted = (await served.client.post("/v1/sessions/s1/turns", json={"turns": turns})).json()["turns"]
    assert [turn["seq"] for turn in accepted] == [1, 2]
    log = (await served.client.get("/v1/sessions/s1/turns")).json()["turns"]
    assert log == [{"seq": 1, **turns[0]}, {"seq": 2, "id": accepted[1]["id"], **turns[1]}]


async def test_a_page_of_the_log_begins_after_the_turn_asked_for(served: Served) -> None:
    turns = [{"id": str(n), "role": "user", "content": f"turn {n}"} for n in range(1, 8)]
    await served.client.post("/v1/sessions/s1/turns", json={"turns": turns})
    page = (await served.client.get("/v1/sessions/s1/turns?after_seq=3&limit=2")).json()["turns"]
    assert [turn["seq"] for turn in page] == [4, 5]
    assert (await served.client.get("/v1/sessions/s1/turns?after_seq=7")).json() == {"turns": []}


async def test_publishing_again_changes_nothing_and_says_so(served: Served) -> None:
    turn = {"id": "a", "role": "user", "content": "Hello"}
    first = await served.client.post("/v1/sessions/s1/turns", json=turn)
    again = await served.client.post("/v1/sessions/s1/turns", json=turn)
    assert again.status_code == 201
    assert again.json()["turns"] == [{**first.json()["turns"][0], "duplicate": True}]
    assert len((await served.client.get("/v1/sessions/s1/turns")).json()["turns"]) == 1


async def test_another_content_under_a_known_id_is_a_conflict_and_the_whole_batch_is_refused(served: Served) -> None:
    await served.client.post("/v1/sessions/s1/turns", json={"id": "a", "role": "user", "content": "Hello"})
    batch = [{"id": "b", "role": "user", "content": "new"}, {"id": "a", "role": "user", "content": "other"}]
    answer = await served.client.post("/v1/sessions/s1/turns", json={"turns": batch})
    assert (answer.status_code, answer.json()["code"]) == (409, "turn_conflict")
    assert len((await served.client.get("/v1/sessions/s1/turns")).json()["turns"]) == 1


async def test_one_bad_turn_refuses_the_batch_and_is_named(served: Served) -> None:
    batch = [{"role": "user", "content": "good"}, {"role": "user", "content": "good"}, {"role": "user", "content": " "}]
    answer = await served.client.post("/v1/sessions/s1/turns", json={"turns": batch})
    assert (answer.status_code, answer.json()["field"]) == (422, "turns[2].content")
    assert (await served.client.get("/v1/sessions/s1")).status_code == 404


async def test_a_single_bad_turn_is_named_without_an_index(served: Served) -> None:
    answer = await served.client.post("/v1/sessions/s1/turns", json={"role": "robot", "content": "hi"})
    assert (answer.status_code, answer.json()["field"]) == (422, "role")


async def test_a_log_of_no_session_is_not_an_empty_log(served: Served) -> None:
    answer = await served.client.get("/v1/sessions/none/turns")
    assert (answer.status_code, answer.json()["code"]) == (404, "session_not_found")


async def test_the_answer_names_the_durability_that_was_verified(redis_url: str) -> None:
    async with served_gateway(redis_url, durability="durable") as served:
        answer = await served.client.post("/v1/sessions/s/turns", json={"role": "user", "content": "hi"})
        assert answer.json()["durability"] == "durable"


async def test_too_many_turns_in_one_call_are_refused(served: Served) -> None:
    turns = [{"role": "user", "content": "x"}] * 101
    answer = await served.client.post("/v1/sessions/s1/turns", json={"turns": turns})
    assert (answer.status_code, answer.json()["field"]) == (413, "turns")


async def test_tool_rounds_in_openai_form_are_kept_whole_and_served_in_both_forms(served: Served) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": '{"order":7}'}}
    turns = [
        {"role": "user", "content": "Where is order 7?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "on its way"},
    ]
    await served.client.post("/v1/sessions/s1/turns", json={"turns": turns})
    openai = (await served.client.get("/v1/sessions/s1/context?format=openai")).json()["messages"]
    assert openai == [turns[0], turns[1], turns[2]]
    anthropic = (await served.client.get("/v1/sessions/s1/context")).json()["messages"]
    assert [message["role"] for message in anthropic] == ["user", "assistant", "user"]
    assert anthropic[1]["content"] == [{"type": "tool_use", "id": "call_1", "name": "look_up", "input": {"order": 7}}]


async def test_a_long_turn_is_read_beside_the_others_and_comes_back_whole(served: Served) -> None:
    text = "word 東京 👩‍👧 " * 20_000
    answer = await served.client.post("/v1/sessions/s1/turns", json={"role": "user", "content": text})
    assert answer.status_code == 201
    (stored,) = (await served.client.get("/v1/sessions/s1/turns")).json()["turns"]
    assert stored["content"] == text
    bad = {"turns": [{"role": "user", "content": text}, {"role": "user", "content": 7}]}
    refused = await served.client.post("/v1/sessions/s2/turns", json=bad)
    assert (refused.status_code, refused.json()["field"]) == (422, "turns[1].content")
