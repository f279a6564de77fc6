"""What contexts and searches show of a user's memory, on a real Redis with an index that a test decides."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from prefold.conversation import check_anthropic
from prefold.facts import FactBook, Source
from prefold.storage.types import SessionOptions
from tests.support.gateway import Served, served_gateway
from tests.support.remembered import add_fact, close_with_summary, fact_hit
from tests.support.waiting import wait_until_async

CONTEXT = "/v1/sessions/s1/context"
LIVES: dict[str, Any] = {
    "subject": "user",
    "relation": "lives_in",
    "object": "Porto",
    "category": "location",
    "is_entity": True,
}
NUTS: dict[str, Any] = {"subject": "user", "relation": "allergic_to", "object": "peanuts", "category": "health"}


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as served:
        yield served


async def say(served: Served, text: str, session: str = "s1", user: str | None = "dana") -> None:
    if user is not None:
        await served.sessions.open("default", session, SessionOptions(user=user))
    answer = await served.client.post(f"/v1/sessions/{session}/turns", json={"role": "user", "content": text})
    assert answer.status_code == 201, answer.text


async def read(served: Served, query: str = "") -> dict[str, Any]:
    answer = await served.client.get(f"{CONTEXT}{query}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    assert check_anthropic(body["messages"], body["system"] or None) == []
    assert sum(body["tokens"]["sections"].values()) == body["tokens"]["total"]
    return body


def beside(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"][-1]["text"])


async def test_what_is_known_of_the_user_stands_marked_beside_the_newest_turn(served: Served) -> None:
    await add_fact(served.sessions, "dana", **NUTS)
    await say(served, "What shall I cook?")
    for _ in range(2):  # the second read knows whose session it is
        body = await read(served)
        assert "peanuts" in beside(body)
        assert beside(body).startswith("[Prefold: what is known of the user")
        assert body["tokens"]["sections"]["profile"] > 0
        assert "peanuts" not in body["system"]


async def test_a_session_of_nobody_or_of_another_user_shows_nothing_of_it(served: Served) -> None:
    await add_fact(served.sessions, "dana", **NUTS)
    await add_fact(served.sessions, "dana", tenant="other", **LIVES)
    await say(served, "Hello", user=None)
    await say(served, "Hello", session="s2", user="eve")
    for session in ("s1", "s2"):
        answer = await served.client.get(f"/v1/sessions/{session}/context?query=allergy")
        assert "peanuts" not in answer.text and "Porto" not in answer.text


async def test_a_session_that_changes_hands_shows_its_new_users_profile(served: Served) -> None:
    await add_fact(served.sessions, "dana", **NUTS)
    await add_fact(served.sessions, "eve", **LIVES)
    await say(served, "Hello")
    assert "peanuts" in beside(await read(served))
    await served.sessions.erase("default", "s1")
    await say(served, "Hello", user="eve")
    body = json.dumps(await read(served))
    assert "peanuts" not in body
    assert "Porto" in body


async def test_a_new_fact_changes_the_tag_of_a_context(served: Served) -> None:
    await say(served, "Hello")
    tag = (await served.client.get(CONTEXT)).headers["etag"]
    assert (await served.client.get(CONTEXT, headers={"if-none-match": tag})).status_code == 304
    await add_fact(served.sessions, "dana", **NUTS)
    assert (await served.client.get(CONTEXT, headers={"if-none-match": tag})).status_code == 200


async def test_facts_are_recalled_as_they_are_stored_now_with_their_sources(served: Served) -> None:
    nuts = await add_fact(served.sessions, "dana", **NUTS)
    await say(served, "What shall I cook?")
    stale = replace(fact_hit(nuts, "dana", text="user allergic to almonds"), key=nuts.id)
    of_another = replace(fact_hit(nuts, "dana"), user="eve")
    of_a_stranger = replace(fact_hit(nuts, "dana"), tenant="other")
    gone = replace(fact_hit(nuts, "dana"), key="no-such-fact")
    ask = {"query": "zzz", "user": "dana", "kinds": ["fact"]}
    for hit in (stale, of_another, of_a_stranger, gone):
        served.index.memory = [hit]
        assert (await served.client.post("/v1/search", json=ask)).json()["results"] == [], hit
    served.index.memory = [fact_hit(nuts, "dana")]
    (result,) = (await served.client.post("/v1/search", json=ask)).json()["results"]
    assert result["kind"] == "fact" and result["fact_id"] == nuts.id and result["sources"] == []
    assert "peanuts" in result["text"]


async def test_what_is_gone_does_not_hide_what_says_the_same(served: Served) -> None:
    nuts = await add_fact(served.sessions, "dana", **NUTS)
    for name in ("s0", "s9"):
        await say(served, "Let us plan Madeira", session=name)
    text = "They planned a hiking trip to Madeira in spring."
    stands = await close_with_summary(served.sessions, "s9", text)
    gone = replace(fact_hit(nuts, "dana"), key="no-such-fact", others=(fact_hit(nuts, "dana"),))
    erased = replace(stands, session="s0", others=(stands, stands))
    for hit, named in ((gone, ("fact_id", nuts.id, 0)), (erased, ("session", "s9", 1))):
        served.index.memory = [hit]
        ask = {"query": "zzz", "user": "dana", "kinds": [hit.kind]}
        (result,) = (await served.client.post("/v1/search", json=ask)).json()["results"]
        assert (result[named[0]], result["copies"]) == named[1:]


async def test_a_fact_that_the_profile_shows_is_not_shown_twice(served: Served) -> None:
    nuts = await add_fact(served.sessions, "dana", **NUTS)
    await say(served, "What shall I cook?")
    served.index.memory = [fact_hit(nuts, "dana")]
    body = await read(served, "?query=zzz")
    assert beside(body).count("peanuts") == 1
    assert [(one["reason"], one["id"]) for one in body["left_out"]] == [("near_duplicate", nuts.id)]


async def test_neighbours_of_what_the_query_names_come_with_it(served: Served) -> None:
    rex = await add_fact(
        served.sessions, "dana", subject="user", relation="has_dog", object="Rex", category="family", is_entity=True
    )
    food = await add_fact(
        served.sessions, "dana", subject="Rex", relation="eats", object="salmon only", category="other"
    )
    answer = await served.client.post("/v1/search", json={"query": "what about Rex", "user": "dana"})
    found = {one["fact_id"]: one["score"] for one in answer.json()["results"]}
    assert {rex.id, food.id} <= found.keys()
    assert found[food.id] == 0


async def test_summaries_of_earlier_sessions_are_recalled_and_only_while_they_stand(served: Served) -> None:
    text = "They planned a hiking trip to Madeira in spring."
    await say(served, "Let us plan Madeira", session="s0")
    hit = await close_with_summary(served.sessions, "s0", text)
    await say(served, "Where did we want to go?")
    served.index.memory = [hit]
    body = await read(served, "?query=trip")
    assert [(one["kind"], one["session"], one["id"]) for one in body["recalled"]] == [("summary", "s0", "digest")]
    assert f"] {text}" in beside(body)
    assert served.index.asked_memory[-1]["not"] == "s1"
    answer = await served.client.post("/v1/search", json={"query": "trip", "user": "dana", "kinds": ["summary"]})
    assert [(one["session"], one["first_seq"], one["last_seq"]) for one in answer.json()["results"]] == [("s0", 1, 1)]
    turns = (await served.client.get("/v1/sessions/s0/turns")).json()["turns"]
    await served.client.delete(f"/v1/sessions/s0/turns/{turns[0]['id']}")
    assert (await read(served, "?query=trip"))["recalled"] == []
    served.index.memory = [hit]
    again = await served.client.post("/v1/search", json={"query": "trip", "kinds": ["summary"]})
    assert again.json()["results"] == []


async def test_a_summary_of_another_users_session_is_never_shown(served: Served) -> None:
    await say(served, "Let us plan Madeira", session="s0", user="eve")
    hit = await close_with_summary(served.sessions, "s0", "They planned Madeira.")
    await say(served, "Where did we want to go?")
    for claimed in (hit, replace(hit, user="dana")):
        served.index.memory = [claimed]
        assert (await read(served, "?query=trip"))["recalled"] == []


async def test_each_part_of_recall_that_fails_is_named_and_the_rest_is_served(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_fact(served.sessions, "dana", **NUTS)
    await say(served, "Hello")

    async def broken(*_: object, **__: object) -> object:
        raise RuntimeError("not as expected")

    monkeypatch.setattr(served.index, "search_memory", broken)
    body = await read(served, "?query=zzz")
    failed = sorted((one["kind"], one["reason"]) for one in body["left_out"])
    assert failed == [("fact", "failed"), ("summary", "failed")]
    assert "peanuts" in beside(body)
    monkeypatch.setattr(FactBook, "profile", broken)
    body = await read(served)
    assert body["left_out"] == [{"part": "profile", "tokens": None, "reason": "failed"}]
    served.index.is_down = True
    monkeypatch.setattr(served.index, "search_memory", served.index.search)
    assert (await read(served, "?query=zzz"))["status"] == "ok"


async def test_a_search_over_all_kinds_is_best_first_and_says_what_each_is(served: Served) -> None:
    await say(served, "Let us plan Madeira", session="s0")
    summary = await close_with_summary(served.sessions, "s0", "They planned Madeira.")
    nuts = await add_fact(served.sessions, "dana", **NUTS)
    served.index.memory = [fact_hit(nuts, "dana", 0.3), replace(summary, score=0.8)]
    answer = await served.client.post("/v1/search", json={"query": "zzz", "user": "dana"})
    results = answer.json()["results"]
    assert [one["kind"] for one in results] == ["summary", "fact"]
    assert [one["score"] for one in results] == [0.8, 0.3]
    one_session = await served.client.post("/v1/search", json={"query": "zzz", "session": "s0"})
    assert "fact" not in [one["kind"] for one in one_session.json()["results"]]


async def test_every_context_leaves_a_record_without_a_word_of_it(served: Served) -> None:
    await add_fact(served.sessions, "dana", **NUTS)
    await say(served, "My secret word is xylophone")
    served_tag = (await served.client.get(f"{CONTEXT}?budget_tokens=400")).headers["etag"]
    await read(served, "?query=xylophone")
    records = await wait_until_async("both records are there", lambda: _records(served, 2))
    newest, oldest = records
    assert (newest["with_query"], oldest["with_query"]) == (True, False)
    assert (oldest["budget_tokens"], oldest["etag"], oldest["summary_rewritten"]) == (400, served_tag, None)
    assert newest["summary_rewritten"] is False
    assert newest["tokens"]["sections"]["profile"] > 0
    assert "xylophone" not in json.dumps(records) and "peanuts" not in json.dumps(records)
    answer = await served.client.get("/v1/sessions/s1/contexts?limit=1")
    assert [one["with_query"] for one in answer.json()["contexts"]] == [True]
    assert answer.json()["contexts"][0]["summary_rewritten"] is False


async def test_a_record_names_no_turn_of_a_session_that_may_be_erased_apart(served: Served) -> None:
    source = Source("s0", "1", "order-of-mrs-quillfeather", 1, 0)
    nuts = await add_fact(served.sessions, "dana", **NUTS, sources=[source])
    await say(served, "What shall I cook?")
    served.index.memory = [fact_hit(nuts, "dana")]
    (recalled,) = (await read(served, "?query=cook&budget_tokens=400"))["recalled"]  # too little for a profile
    assert [one["turn_id"] for one in recalled["sources"]] == ["order-of-mrs-quillfeather"]
    (record,) = await wait_until_async("the record is there", lambda: _records(served, 1))
    assert [(one["kind"], one["id"]) for one in record["recalled"]] == [("fact", nuts.id)]
    assert "quillfeather" not in json.dumps(record)


async def test_a_read_that_changes_nothing_leaves_no_record_and_a_strange_limit_is_refused(served: Served) -> None:
    await say(served, "Hello")
    tag = (await served.client.get(CONTEXT)).headers["etag"]
    await served.client.get(CONTEXT, headers={"if-none-match": tag})
    await served.client.get(CONTEXT)
    assert len(await wait_until_async("two records are there", lambda: _records(served, 2))) == 2
    for limit in ("0", "21", "x"):
        assert (await served.client.get(f"/v1/sessions/s1/contexts?limit={limit}")).status_code == 422
    assert (await served.client.get("/v1/sessions/none/contexts")).status_code == 404


async def _records(served: Served, least: int) -> list[dict[str, Any]]:
    answer = await served.client.get("/v1/sessions/s1/contexts")
    records: list[dict[str, Any]] = answer.json()["contexts"]
    return records if len(records) >= least else []
