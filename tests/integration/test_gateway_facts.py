"""``…/facts`` and ``…/graph`` on a real Redis: seen with their sources, added, corrected, deleted."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from prefold.errors import OverloadedError
from prefold.facts import Fact, FactBook, Graph, NewFact, Source, Stated, graph_of
from prefold.gateway import graph_calls
from prefold.storage.users import Unindexed, Users
from tests.support.gateway import Served, served_gateway

FACTS = "/v1/users/ada/facts"
LIVES: dict[str, Any] = {"relation": "lives_in", "object": "Germany", "is_entity": True}


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as running:
        yield running


async def say(served: Served, session: str, turn_id: str, text: str, *, user: str = "ada") -> Source:
    """A turn of the user's, as the log has it."""
    await served.client.put(f"/v1/sessions/{session}", json={"user": user})
    await served.client.post(f"/v1/sessions/{session}/turns", json={"id": turn_id, "role": "user", "content": text})
    life = (await served.sessions.view("default", session)).ref.incarnation
    turn = await served.sessions.find_turn("default", session, turn_id)
    return Source(session, life, turn_id, turn.seq, turn.revision)


def stated(source: Source, relation: str, what: str, **given: Any) -> Stated:
    return Stated(
        **{
            "subject": "user",
            "relation": relation,
            "object": what,
            "category": "location",
            "confidence": 0.9,
            "said": f"I said {what}",
            "source": source,
            "said_at_ms": time.time_ns() // 1_000_000,
            **given,
        }
    )


async def learn(served: Served, *what: Stated, user: str = "ada") -> None:
    """As a memory worker does it."""
    await FactBook(served.sessions.users).learn("default", user, what, now_ms=time.time_ns() // 1_000_000)


async def shown(served: Served, query: str = "", user: str = "ada") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await served.client.get(f"/v1/users/{user}/facts{query}")).json()["facts"]
    return found


async def test_nothing_is_known_of_a_user_whom_nobody_has_heard_of(served: Served) -> None:
    assert (await served.client.get(FACTS)).json() == {"facts": [], "next_after": None}
    assert (await served.client.get("/v1/users/ada/graph")).json() == {"nodes": [], "edges": []}


async def test_a_known_relation_says_itself_whether_its_object_is_a_name(served: Served) -> None:
    for row in (
        {"relation": "lives_in", "object": "Germany"},
        {"relation": "works_at", "object": "a bakery", "is_entity": False},
        {"relation": "likes", "object": "tea"},
        {"relation": "mentors", "object": "Mo", "is_entity": True},
    ):
        assert (await served.client.post(FACTS, json=row)).status_code == 201
    edges = (await served.client.get("/v1/users/ada/graph")).json()["edges"]
    assert {edge["relation"] for edge in edges} == {"lives_in", "mentors"}


async def test_a_graph_is_made_beside_the_event_loop(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """500 facts take some 100 ms: so long no other request may wait."""
    threads: list[int] = []

    def noted(facts: Iterable[Fact]) -> Graph:
        threads.append(threading.get_ident())
        return graph_of(facts)

    monkeypatch.setattr(graph_calls, "graph_of", noted)
    assert (await served.client.get("/v1/users/ada/graph?entity=Lisbon")).status_code == 200
    assert threads and threading.get_ident() not in threads


async def test_a_fact_says_where_it_comes_from_and_in_whose_words(served: Served) -> None:
    source = await say(served, "s1", "t1", "I live in Germany")
    await learn(served, stated(source, "lives_in", "Germany", said="I live in Germany"))
    (fact,) = await shown(served)
    assert fact["sources"] == [{"session": "s1", "turn_id": "t1", "seq": 1}]
    assert (fact["said"], fact["origin"], fact["superseded_by"]) == ("I live in Germany", "extracted", None)
    assert fact["text"].startswith("User lives in Germany (said ")
    assert 0 < fact["confidence"] <= 0.9


async def test_a_fact_that_another_request_adds_meanwhile_gets_its_vector_too(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, meanwhile = Users.take_unindexed, [NewFact(subject="user", relation="likes", object="tea")]

    async def taken(users: Users, tenant: str, user: str, limit: int = 100) -> Unindexed:
        while meanwhile:
            await FactBook(users).add(tenant, user, meanwhile.pop(), now_ms=time.time_ns() // 1_000_000)
        return await take(users, tenant, user, limit)

    monkeypatch.setattr(Users, "take_unindexed", taken)
    await served.client.post(FACTS, json=LIVES)
    assert {key[2] for key in served.index.facts} == {fact["id"] for fact in await shown(served)}
    assert len(served.index.facts) == 2


@pytest.mark.parametrize("what", ["the fact", "the user"])
async def test_a_vector_that_arrives_after_the_deletion_of_its_fact_is_removed(served: Served, what: str) -> None:
    async def delete() -> None:
        (fact,) = await shown(served)
        deleted = await served.client.delete(f"{FACTS}/{fact['id']}" if what == "the fact" else "/v1/users/ada")
        assert deleted.json()["vectors_left"] == 0

    served.index.before_storing = delete
    await served.client.post(FACTS, json=LIVES)
    assert await shown(served) == []
    assert served.index.facts == {}


async def test_an_older_vector_that_arrives_after_the_newer_one_does_not_stay(served: Served) -> None:
    async def correct() -> None:
        (fact,) = await shown(served)
        assert (await served.client.put(f"{FACTS}/{fact['id']}", json={"category": "plan"})).status_code == 200
        assert (await served.client.post(FACTS, json={**LIVES, "object": "GERMANY"})).status_code == 201

    served.index.before_storing = correct
    await served.client.post(FACTS, json=LIVES)
    assert list(served.index.facts.values()) == [fact["text"] for fact in await shown(served)]


async def test_a_fact_that_holds_again_while_its_vector_is_removed_keeps_one(served: Served) -> None:
    async def say_again() -> None:
        assert (await served.client.post(FACTS, json=LIVES)).status_code == 201

    await served.client.post(FACTS, json=LIVES)
    served.index.before_forgetting = say_again
    await served.client.post(FACTS, json={**LIVES, "object": "Norway"})
    assert served.index.before_forgetting is None
    (fact,) = await shown(served)
    assert list(served.index.facts.values()) == [fact["text"]]


async def test_a_backend_s_fact_is_stored_with_its_vector(served: Served) -> None:
    answer = await served.client.post(FACTS, json=LIVES)
    fact = answer.json()
    assert (answer.status_code, fact["origin"], fact["confidence"], fact["sources"]) == (201, "backend", 1.0, [])
    assert await shown(served) == [fact]
    assert served.index.facts == {("default", "ada", fact["id"]): fact["text"]}
    assert (await served.sessions.users.take_unindexed("default", "ada")).ids == ()


async def test_without_a_vector_store_a_fact_waits_for_a_worker(served: Served) -> None:
    served.index.is_down = True
    fact = (await served.client.post(FACTS, json=LIVES)).json()
    assert await shown(served) == [fact]
    assert (await served.sessions.users.take_unindexed("default", "ada")).ids == (fact["id"],)


async def test_the_same_fact_again_confirms_it(served: Served) -> None:
    first = (await served.client.post(FACTS, json=LIVES)).json()
    again = (await served.client.post(FACTS, json=LIVES)).json()
    assert again["id"] == first["id"]
    assert len(await shown(served, "?history=true")) == 1


async def test_a_correction_takes_the_place_of_a_fact_and_keeps_it_as_history(served: Served) -> None:
    old = (await served.client.post(FACTS, json=LIVES)).json()
    answer = await served.client.put(f"{FACTS}/{old['id']}", json={"object": "France"})
    new = answer.json()
    assert (answer.status_code, new["object"], new["relation"]) == (200, "France", "lives_in")
    assert await shown(served) == [new]
    history = {fact["object"]: fact["superseded_by"] for fact in await shown(served, "?history=true")}
    assert history == {"Germany": new["id"], "France": None}
    assert list(served.index.facts) == [("default", "ada", new["id"])]


async def test_a_deleted_fact_is_gone_with_its_vector_and_not_learnt_again(served: Served) -> None:
    source = await say(served, "s1", "t1", "I live in Germany")
    await learn(served, stated(source, "lives_in", "Germany"))
    (fact,) = await shown(served)
    answer = await served.client.delete(f"{FACTS}/{fact['id']}")
    assert answer.status_code == 200
    receipt = answer.json()
    assert (receipt["id"], receipt["facts_left"], receipt["vectors_left"]) == (fact["id"], 0, 0)
    remaining = {one["where"] for one in receipt["remains"]}
    assert {"working memory of gateways and workers", "backups that you keep"} <= remaining
    await learn(served, stated(source, "lives_in", "Germany"))
    assert await shown(served, "?history=true") == []
    again = await served.client.delete(f"{FACTS}/{fact['id']}")
    assert (again.status_code, again.json()["code"]) == (404, "fact_not_found")


async def test_a_deletion_without_a_vector_store_says_so(served: Served) -> None:
    fact = (await served.client.post(FACTS, json=LIVES)).json()
    served.index.is_down = True
    receipt = (await served.client.delete(f"{FACTS}/{fact['id']}")).json()
    assert receipt["vectors_left"] is None
    assert "vectors" in {one["where"] for one in receipt["remains"]}
    assert (await served.sessions.users.take_unindexed("default", "ada")).ids == (fact["id"],)


async def test_what_an_erasure_could_not_remove_of_the_facts_it_names(served: Served) -> None:
    source = await say(served, "s1", "t1", "I live in Germany")
    await learn(served, stated(source, "lives_in", "Germany"))
    served.index.is_down = True
    receipt = (await served.client.delete("/v1/sessions/s1")).json()
    assert (receipt["facts_withdrawn"], receipt["facts_left"], receipt["vectors_left"]) == (1, 0, None)
    assert receipt["not_checked"] == ["jobs", "vectors"]


async def test_a_receipt_is_about_the_deleted_fact_however_many_wait_for_a_worker(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prefold.gateway.fact_vectors._MOST_ROWS", 2)
    facts = [(await served.client.post(FACTS, json=LIVES)).json()]
    served.index.is_down = True
    for n in range(4):
        body = {"relation": f"likes_{n}", "object": "x", "category": "preference"}
        facts.append((await served.client.post(FACTS, json=body)).json())
    served.index.is_down = False
    served.index.facts[("default", "ada", facts[-1]["id"])] = "of the last one"
    receipt = (await served.client.delete(f"{FACTS}/{facts[-1]['id']}")).json()
    assert receipt["vectors_left"] == 0
    assert ("default", "ada", facts[-1]["id"]) not in served.index.facts


async def test_pages_follow_each_other_and_show_every_fact_once(served: Served) -> None:
    for n in range(7):
        await served.client.post(
            FACTS, json={"relation": f"likes_{n}", "object": f"thing {n}", "category": "preference"}
        )
    seen: list[str] = []
    after = ""
    for _ in range(4):
        page = (await served.client.get(f"{FACTS}?limit=2{after}")).json()
        seen += [fact["relation"] for fact in page["facts"]]
        after = f"&after={page['next_after']}"
    assert sorted(seen) == [f"likes_{n}" for n in range(7)]
    assert after == "&after=None"


async def test_facts_are_listed_by_category_and_with_history_on_request(served: Served) -> None:
    await served.client.post(FACTS, json={**LIVES, "category": "location"})
    await served.client.post(FACTS, json={**LIVES, "object": "Spain", "category": "location"})
    await served.client.post(FACTS, json={"relation": "allergic_to", "object": "nuts", "category": "health"})
    assert [fact["object"] for fact in await shown(served, "?category=health")] == ["nuts"]
    assert [fact["object"] for fact in await shown(served, "?category=location")] == ["Spain"]
    assert len(await shown(served, "?category=location&history=true")) == 2


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("history=yes", "history"),
        ("category=mood", "category"),
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("after=x", "after"),
    ],
)
async def test_what_cannot_be_listed_by_is_refused(served: Served, query: str, field: str) -> None:
    answer = await served.client.get(f"{FACTS}?{query}")
    assert (answer.status_code, answer.json()["field"]) == (422, field)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"object": "x"}, "relation"),
        ({"relation": "lives_in"}, "object"),
        ({**LIVES, "relation": "Lives In"}, "relation"),
        ({**LIVES, "object": " "}, "object"),
        ({**LIVES, "object": "x" * 501}, "object"),
        ({**LIVES, "confidence": 1.5}, "confidence"),
        ({**LIVES, "category": "mood"}, "category"),
        ({**LIVES, "expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({**LIVES, "expires_at": "2100-01-01T00:00:00"}, "expires_at"),
        ({**LIVES, "expires_at": "9999-12-31T23:59:59-23:00"}, "expires_at"),
        ({**LIVES, "expires_at": "0001-01-01T00:00:00+23:00"}, "expires_at"),
        ({**LIVES, "sources": [{"session": "s1", "turn_id": "none"}]}, "sources[0]"),
        ({**LIVES, "sources": [{"session": "s2", "turn_id": "t2"}]}, "sources[0]"),
        ({**LIVES, "mood": 1}, "mood"),
    ],
)
async def test_what_is_no_fact_is_refused_by_its_place(served: Served, body: dict[str, Any], field: str) -> None:
    await say(served, "s1", "t1", "Hello")
    await say(served, "s2", "t2", "Hello from another", user="bob")
    answer = await served.client.post(FACTS, json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert await shown(served, "?history=true") == []


async def test_a_fact_with_a_source_goes_with_its_turn(served: Served) -> None:
    await say(served, "s1", "t1", "I live in Germany")
    body = {**LIVES, "sources": [{"session": "s1", "turn_id": "t1"}]}
    assert (await served.client.post(FACTS, json=body)).json()["sources"][0]["seq"] == 1
    removed = (await served.client.delete("/v1/sessions/s1/turns/t1")).json()
    assert removed["facts_withdrawn"] == 1
    assert await shown(served, "?history=true") == []
    assert served.index.facts == {}


async def test_a_fact_whose_turn_changes_while_it_is_written_is_withdrawn_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(served, "s1", "t1", "I live in Germany")
    add = FactBook.add

    async def changing(self: FactBook, *args: Any, **given: Any) -> Fact:
        await served.client.delete("/v1/sessions/s1/turns/t1")
        return await add(self, *args, **given)

    monkeypatch.setattr(FactBook, "add", changing)
    answer = await served.client.post(FACTS, json={**LIVES, "sources": [{"session": "s1", "turn_id": "t1"}]})
    assert (answer.status_code, answer.json()["code"]) == (422, "source_not_found")
    assert await shown(served, "?history=true") == []


async def test_an_expiry_is_kept_to_the_millisecond_whatever_the_time_zone(served: Served) -> None:
    fact = (await served.client.post(FACTS, json={**LIVES, "expires_at": "2099-01-01T01:00:00.250+01:00"})).json()
    assert fact["expires_at"] == "2099-01-01T00:00:00.250Z"


@pytest.mark.parametrize("change", ["edit", "remove", "rewind", "erase"])
async def test_what_a_turn_taught_is_withdrawn_with_it_at_once(served: Served, change: str) -> None:
    first = await say(served, "s1", "t1", "I live in Germany")
    second = await say(served, "s1", "t2", "I live in France")
    await learn(served, stated(first, "lives_in", "Germany"))
    await learn(served, stated(second, "lives_in", "France"), stated(first, "name", "Ada", category="identity"))
    url = "/v1/sessions/s1"
    if change == "edit":
        answer = await served.client.put(f"{url}/turns/t2", json={"role": "user", "content": "I live nowhere"})
    elif change == "remove":
        answer = await served.client.delete(f"{url}/turns/t2")
    elif change == "rewind":
        answer = await served.client.post(f"{url}/rewind", json={"to_seq": 1})
    else:
        answer = await served.client.delete(url)
    left = {fact["object"]: fact["superseded_by"] for fact in await shown(served, "?history=true")}
    if change == "erase":
        assert (answer.json()["facts_withdrawn"], answer.json()["facts_left"], left) == (3, 0, {})
    else:
        assert (answer.json()["facts_withdrawn"], left) == (1, {"Germany": None, "Ada": None})


async def test_the_erasure_of_a_session_spares_what_other_sessions_showed(served: Served) -> None:
    one = await say(served, "s1", "t1", "I live in Germany")
    other = await say(served, "s2", "t1", "I do live in Germany")
    await learn(served, stated(one, "lives_in", "Germany"), stated(other, "lives_in", "Germany"))
    receipt = (await served.client.delete("/v1/sessions/s1")).json()
    assert (receipt["facts_withdrawn"], receipt["facts_left"]) == (0, 0)
    (fact,) = await shown(served)
    assert [source["session"] for source in fact["sources"]] == ["s2"]


async def test_a_repeated_erasure_finishes_what_a_failure_had_left_of_the_facts(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = await say(served, "s1", "t1", "I live in Germany")
    await served.sessions.erase("default", "s1")  # and then the gateway died
    await learn(served, stated(source, "lives_in", "Germany"))
    receipt = (await served.client.delete("/v1/sessions/s1")).json()
    assert (receipt["turns"], receipt["facts_withdrawn"], receipt["facts_left"]) == (0, 1, 0)


@pytest.mark.parametrize("busy", ["for long", "too busy"])
async def test_an_erasure_does_not_wait_for_a_user_of_whom_many_write_at_once(
    served: Served, monkeypatch: pytest.MonkeyPatch, busy: str
) -> None:
    await learn(served, stated(await say(served, "s1", "t1", "I live in Germany"), "lives_in", "Germany"))

    async def withdraw(*_given: Any, **_named: Any) -> None:
        if busy == "too busy":
            raise OverloadedError("too many write of this user at once", code="user_busy")
        await asyncio.Event().wait()

    with monkeypatch.context() as patched:
        patched.setattr(FactBook, "withdraw", withdraw)
        patched.setattr("prefold.gateway.withdrawing._WITHIN_SECONDS", 0.05)
        receipt = (await served.client.delete("/v1/sessions/s1")).json()
    assert (receipt["keys_left"], receipt["facts_withdrawn"], receipt["facts_left"]) == (0, None, None)
    assert {"facts", "vectors"} <= set(receipt["not_checked"])
    assert "what was known of the user from it" in {one["where"] for one in receipt["remains"]}
    assert (await served.client.delete("/v1/sessions/s1")).json()["facts_withdrawn"] == 1


async def test_the_graph_has_entities_as_nodes_and_their_facts_as_edges(served: Served) -> None:
    source = await say(served, "s1", "t1", "My dog Rex lives with Bob")
    await learn(
        served,
        stated(source, "lives_in", "Germany", is_entity=True),
        stated(source, "lives_with", "Bob", subject="Rex", is_entity=True, category="family"),
        stated(source, "works_at", "ACME", subject="bob", is_entity=True, category="work"),
        stated(source, "name", "Ada", category="identity"),
    )
    graph = (await served.client.get("/v1/users/ada/graph")).json()
    assert {node["id"] for node in graph["nodes"]} == {"user", "germany", "rex", "bob", "acme"}
    edges = {(edge["source"], edge["relation"], edge["target"]) for edge in graph["edges"]}
    assert edges == {("user", "lives_in", "germany"), ("rex", "lives_with", "bob"), ("bob", "works_at", "acme")}
    assert all(edge["sources"] == [{"session": "s1", "turn_id": "t1", "seq": 1}] for edge in graph["edges"])
    near = (await served.client.get("/v1/users/ada/graph?entity=REX")).json()
    assert {node["id"] for node in near["nodes"]} == {"rex", "bob"}
    far = (await served.client.get("/v1/users/ada/graph?entity=rex&hops=2")).json()
    assert {node["id"] for node in far["nodes"]} == {"rex", "bob", "acme"}
    assert (await served.client.get("/v1/users/ada/graph?entity=nobody")).json() == {"nodes": [], "edges": []}
    refusal = await served.client.get("/v1/users/ada/graph?hops=3")
    assert (refusal.status_code, refusal.json()["field"]) == (422, "hops")
