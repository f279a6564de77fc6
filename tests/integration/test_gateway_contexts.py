"""Reading contexts over HTTP, on a real Redis."""

import json
from collections.abc import AsyncIterator

import pytest

from prefold.conversation import check_anthropic, check_openai
from prefold.gateway.finding import Hit
from tests.support.gateway import Served, served_gateway

CONTEXT = "/v1/sessions/s1/context"


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as served:
        yield served


async def publish(served: Served, *contents: str, session: str = "s1") -> None:
    """Turns of user and assistant by turns, ids by number."""
    turns = [
        {"id": f"t{n}", "role": "user" if n % 2 == 0 else "assistant", "content": text, "ts": f"2026-09-0{n % 9 + 1}"}
        for n, text in enumerate(contents)
    ]
    answer = await served.client.post(f"/v1/sessions/{session}/turns", json={"turns": turns})
    assert answer.status_code == 201


async def hit(served: Served, seq: int, score: float, session: str = "s1", tenant: str = "default") -> None:
    view = await served.sessions.view(tenant, session)
    served.index.hits.append((tenant, Hit(session, view.ref.incarnation, seq, 0, score)))


async def test_the_messages_are_the_turns_joined(served: Served) -> None:
    await publish(served, "Hello", "Good morning", "Where is my order?")
    body = (await served.client.get(CONTEXT)).json()
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Good morning"}]},
        {"role": "user", "content": [{"type": "text", "text": "Where is my order?"}]},
    ]
    assert (body["version"], body["covers_to"], body["status"], body["system"]) == (1, 0, "ok", "")
    assert body["tokens"] == {"total": 29, "sections": {"window": 29}}
    assert (body["recalled"], body["left_out"], body["open_calls"]) == ([], [], [])


async def test_the_total_is_what_the_append_said(served: Served) -> None:
    await served.client.put("/v1/sessions/s1", json={"system": "Be kind.", "tools": [{"name": "look_up"}]})
    answer = await served.client.post("/v1/sessions/s1/turns", json={"role": "user", "content": "Hello"})
    tokens = (await served.client.get(CONTEXT)).json()["tokens"]
    assert tokens["total"] == answer.json()["context"]["tokens"]
    assert tokens["sections"].keys() == {"system", "tools", "window"}


async def test_the_system_prompt_is_what_was_registered_then_what_led(served: Served) -> None:
    await served.client.put("/v1/sessions/s1", json={"system": 'Be "kind".\n'})
    await served.client.post("/v1/sessions/s1/turns", json={"role": "system", "content": "Answer in German."})
    await publish(served, "Hallo")
    assert (await served.client.get(CONTEXT)).json()["system"] == 'Be "kind".\n\n\nAnswer in German.'
    openai = (await served.client.get(f"{CONTEXT}?format=openai")).json()
    assert openai["messages"][0] == {"role": "system", "content": openai["system"]}


async def test_a_context_of_no_session_is_not_found(served: Served) -> None:
    answer = await served.client.get("/v1/sessions/none/context")
    assert (answer.status_code, answer.json()["code"]) == (404, "session_not_found")


async def test_a_known_context_is_not_sent_again_until_it_changes(served: Served) -> None:
    await publish(served, "Hello")
    first = await served.client.get(CONTEXT)
    tag = first.headers["etag"]
    assert tag.startswith('"')
    again = await served.client.get(CONTEXT, headers={"if-none-match": f'"other", W/{tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    await served.client.post("/v1/sessions/s1/turns", json={"role": "assistant", "content": "Hi"})
    changed = await served.client.get(CONTEXT, headers={"if-none-match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


async def test_every_change_of_the_answer_changes_the_tag(served: Served) -> None:
    await publish(served, "Hello", "Hi", "Where is it?")
    tags: list[str] = []
    answers: list[bytes] = []

    async def note(url: str = CONTEXT) -> None:
        answer = await served.client.get(url)
        tags.append(answer.headers["etag"])
        answers.append(answer.content)

    await note()
    await note(f"{CONTEXT}?format=openai")
    await note(f"{CONTEXT}?budget_tokens=300")
    for change in ({"system": "A"}, {"system": "B"}, {"tools": [{"name": "f"}]}, {"hard_limit_tokens": 1000}):
        await served.client.put("/v1/sessions/s1", json=change)
        await note()
    # What is equal here may differ in its budget, never the other way round.
    assert len(set(tags)) == len(tags)
    assert len(set(answers)) >= 5


async def test_head_answers_like_get_without_a_body(served: Served) -> None:
    await publish(served, "Hello")
    answer = await served.client.head(CONTEXT)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["etag"] == (await served.client.get(CONTEXT)).headers["etag"]


@pytest.mark.parametrize("budget", [300, 500, 1500])
async def test_a_budget_is_kept_and_what_yields_is_named(served: Served, budget: int) -> None:
    await publish(served, *(f"turn {n} " + "some words " * 60 for n in range(21)))
    body = (await served.client.get(f"{CONTEXT}?budget_tokens={budget}")).json()
    assert body["tokens"]["total"] <= budget
    assert check_anthropic(body["messages"], body["system"]) == []
    assert "turn 20" in json.dumps(body["messages"][-1])
    gone = [one for one in body["left_out"] if one["part"] == "window" and one["reason"] == "no_room"]
    assert len(gone) == 1
    assert gone[0]["last_seq"] < 21
    openai = (await served.client.get(f"{CONTEXT}?format=openai&budget_tokens={budget}")).json()
    assert check_openai(openai["messages"]) == []


async def test_recalled_turns_stand_beside_the_newest_user_turn_with_their_numbers(served: Served) -> None:
    await publish(served, *(f"turn number {n}" for n in range(9)))
    await publish(served, "I can only travel in October", session="s2")
    # Turns that stand in the window are dropped, so the limit has to have taken some.
    await served.client.put("/v1/sessions/s1", json={"hard_limit_tokens": 1000})
    await served.client.post(
        "/v1/sessions/s1/turns",
        json={"turns": [{"role": "user", "content": f"long {n} " + "x y " * 150} for n in range(4)]},
    )
    await hit(served, 2, 0.9)
    await hit(served, 4, 0.8)
    await hit(served, 13, 0.7)
    body = (await served.client.get(f"{CONTEXT}?query=number")).json()
    assert [one["seq"] for one in body["recalled"]] == [2, 4]
    block = body["messages"][-1]["content"][-1]["text"]
    assert "[2 assistant 2026-09-02] turn number 1" in block
    assert block.index("turn number 1") < block.index("turn number 3")
    assert body["tokens"]["sections"]["recall"] > 0
    assert [one["reason"] for one in body["left_out"] if one.get("first_seq") == 13] in ([], ["in_context"])
    assert (
        served.index.asked[0].items() >= {"tenant": "default", "text": "number", "session": "s1", "user": None}.items()
    )
    smaller = (await served.client.get(f"{CONTEXT}?query=number&budget_tokens=600")).json()
    assert {2, 4, 13} >= {one["seq"] for one in smaller["recalled"]} >= {2}


async def test_a_context_is_served_without_recall_when_the_vectors_are_away(served: Served) -> None:
    await publish(served, "Hello")
    served.index.is_down = True
    answer = await served.client.get(f"{CONTEXT}?query=hello")
    assert answer.status_code == 200
    assert answer.json()["left_out"] == [{"part": "recall", "tokens": None, "reason": "unavailable"}]


async def test_no_recall_is_put_after_an_answer_of_the_assistant(served: Served) -> None:
    await publish(served, *(f"turn {n} " + "some words " * 60 for n in range(12)))
    await hit(served, 1, 0.9)
    body = (await served.client.get(f"{CONTEXT}?query=hello&budget_tokens=600")).json()
    recall = [one for one in body["left_out"] if one["part"] == "recall"]
    assert recall == [{"part": "recall", "tokens": None, "reason": "no_user_turn_at_the_end"}]
    assert body["messages"][-1]["role"] == "assistant"
    assert body["recalled"] == []


async def test_a_read_that_recalls_has_a_tag_of_its_answer(served: Served) -> None:
    await publish(served, "Hello")
    first = await served.client.get(f"{CONTEXT}?query=hello")
    again = await served.client.get(f"{CONTEXT}?query=hello", headers={"if-none-match": first.headers["etag"]})
    assert again.status_code == 304
    served.index.is_down = True
    other = await served.client.get(f"{CONTEXT}?query=hello", headers={"if-none-match": first.headers["etag"]})
    assert other.status_code == 200


async def test_an_open_round_is_served_with_its_waiting_calls_named(served: Served) -> None:
    calls = [{"type": "tool_use", "id": f"c{n}", "name": "look_up", "input": {}} for n in (1, 2)]
    await publish(served, "Hello")
    await served.client.post("/v1/sessions/s1/turns", json={"role": "assistant", "content": calls})
    result = {"type": "tool_result", "tool_use_id": "c2", "content": "there"}
    await served.client.post("/v1/sessions/s1/turns", json={"role": "user", "content": [result]})
    body = (await served.client.get(CONTEXT)).json()
    assert body["open_calls"] == ["c1"]
    assert check_anthropic(body["messages"], body["system"]) == []


async def test_a_number_beyond_64_bits_is_read_at_every_budget(served: Served) -> None:
    call = {"type": "tool_use", "id": "a", "name": "track", "input": {"n": 9400111899223197428490}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "on its way " * 300}
    turns = [
        {"role": "user", "content": "Where is it? " * 100},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    await served.client.post("/v1/sessions/big/turns", json={"turns": turns})
    for query in ("", "?budget_tokens=400", "?format=openai", "?format=openai&budget_tokens=400"):
        answer = await served.client.get(f"/v1/sessions/big/context{query}")
        assert answer.status_code == 200
        assert "9400111899223197428490" in answer.text
