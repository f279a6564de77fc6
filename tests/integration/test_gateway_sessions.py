"""Sessions, search and health over HTTP, on a real Redis."""

from collections.abc import AsyncIterator

import pytest

from prefold.gateway.finding import Hit
from tests.support.gateway import Served, served_gateway
from tests.support.metrics import Scrape


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as served:
        yield served


async def test_a_session_is_created_with_what_the_body_names_and_defaults(served: Served) -> None:
    given = {"user": "ann@example.org", "model": "some-model", "hard_limit_tokens": 8000, "metadata": {"n": 10**30}}
    answer = await served.client.put("/v1/sessions/s1", json=given)
    assert answer.status_code == 200
    body = answer.json()
    assert (body["session"], body["user"], body["model"]) == ("s1", "ann@example.org", "some-model")
    assert body["limits"]["hard_limit_tokens"] == 8000
    assert body["limits"]["keep_recent_turns"] == 6
    assert body["metadata"] == {"n": 10**30}
    assert (body["head_seq"], body["swaps"], body["standby"], body["build"]) == (0, 0, None, None)
    assert body == (await served.client.get("/v1/sessions/s1")).json() | {"updated_at": body["updated_at"]}


async def test_what_a_later_put_does_not_name_stays(served: Served) -> None:
    await served.client.put("/v1/sessions/s1", json={"system": "Be kind.", "hard_limit_tokens": 8000})
    body = (await served.client.put("/v1/sessions/s1", json={"keep_recent_turns": 3})).json()
    assert (body["system"], body["limits"]["hard_limit_tokens"]) == ("Be kind.", 8000)
    assert body["limits"]["keep_recent_turns"] == 3


async def test_the_user_of_a_session_is_set_once(served: Served) -> None:
    await served.client.put("/v1/sessions/s1", json={"user": "ann"})
    answer = await served.client.put("/v1/sessions/s1", json={"user": "bob"})
    assert (answer.status_code, answer.json()["code"]) == (409, "user_conflict")
    assert (await served.client.get("/v1/sessions/s1")).json()["user"] == "ann"


async def test_a_blank_system_prompt_is_none(served: Served) -> None:
    body = (await served.client.put("/v1/sessions/s1", json={"system": " \n"})).json()
    assert (body["system"], body["tokens"]["fixed"]) == (None, 0)


async def found_by(served: Served, **body: object) -> list[dict[str, object]]:
    answer = await served.client.post("/v1/search", json={"query": "parcel", **body})
    assert answer.status_code == 200, answer.json()
    results: list[dict[str, object]] = answer.json()["results"]
    return results


async def publish(served: Served, session: str, *texts: str) -> str:
    turns = [{"id": f"{session}-{n}", "role": "user", "content": text} for n, text in enumerate(texts)]
    await served.client.post(f"/v1/sessions/{session}/turns", json={"turns": turns})
    return (await served.sessions.view("default", session)).ref.incarnation


async def test_a_search_gives_the_turns_verbatim_and_best_first(served: Served) -> None:
    life = await publish(served, "s1", "Where is my parcel?", "It was blue")
    served.index.hits = [("default", Hit("s1", life, 2, 0, 0.4)), ("default", Hit("s1", life, 1, 0, 0.7))]
    assert await found_by(served) == [
        {
            "kind": "turn",
            "session": "s1",
            "turn_id": "s1-0",
            "seq": 1,
            "role": "user",
            "text": "Where is my parcel?",
            "score": 0.7,
            "copies": 0,
        },
        {
            "kind": "turn",
            "session": "s1",
            "turn_id": "s1-1",
            "seq": 2,
            "role": "user",
            "text": "It was blue",
            "score": 0.4,
            "copies": 0,
        },
    ]


async def test_hits_that_the_log_does_not_confirm_are_dropped(served: Served) -> None:
    life = await publish(served, "s1", "Where is my parcel?")
    served.index.hits = [
        ("default", Hit("s1", "another-life", 1, 0, 0.9)),
        ("default", Hit("s1", life, 7, 0, 0.9)),
        ("default", Hit("gone", life, 1, 0, 0.9)),
        ("other-tenant", Hit("s1", life, 1, 0, 0.9)),
    ]
    assert await found_by(served) == []


async def test_a_hit_of_another_user_is_dropped_even_if_the_index_gives_it(served: Served) -> None:
    await served.client.put("/v1/sessions/s1", json={"user": "ann"})
    life = await publish(served, "s1", "Where is my parcel?")
    served.index.hits = [("default", Hit("s1", life, 1, 0, 0.9))]
    assert await found_by(served, user="bob") == []
    assert len(await found_by(served, user="ann")) == 1


async def test_turns_that_say_the_same_are_given_once(served: Served) -> None:
    life = await publish(served, "s1", "Should I get travel insurance?", "should I get travel insurance", "October")
    served.index.hits = [("default", Hit("s1", life, seq, 0, score)) for seq, score in ((1, 0.9), (2, 0.8), (3, 0.1))]
    assert [found["seq"] for found in await found_by(served)] == [1, 3]


async def test_kinds_that_are_not_stored_yet_find_nothing(served: Served) -> None:
    life = await publish(served, "s1", "Where is my parcel?")
    served.index.hits = [("default", Hit("s1", life, 1, 0, 0.9))]
    assert await found_by(served, kinds=["fact", "segment"]) == []
    assert len(await found_by(served, kinds=["fact", "turn"])) == 1


SEARCHES: dict[str, tuple[object, str]] = {
    "no query": ({}, "query"),
    "blank query": ({"query": "  "}, "query"),
    "unknown kind": ({"query": "a", "kinds": ["video"]}, "kinds[0]"),
    "unknown member": ({"query": "a", "where": "b"}, "where"),
    "limit too large": ({"query": "a", "limit": 101}, "limit"),
    "session that is no name": ({"query": "a", "session": "a:b"}, "session"),
    "user that is no name": ({"query": "a", "user": "*"}, "user"),
}


@pytest.mark.parametrize("name", SEARCHES)
async def test_a_bad_search_is_refused_with_its_place(served: Served, name: str) -> None:
    body, field = SEARCHES[name]
    answer = await served.client.post("/v1/search", json=body)
    assert (answer.status_code, answer.json().get("field")) == (422, field), answer.json()
    assert served.index.asked == []


async def test_a_search_says_when_to_try_again_while_the_vectors_are_away(served: Served) -> None:
    served.index.is_down = True
    answer = await served.client.post("/v1/search", json={"query": "parcel"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


async def test_the_process_lives_and_is_ready(served: Served) -> None:
    assert (await served.client.get("/livez")).json()["status"] == "ok"
    ready = await served.client.get("/readyz")
    assert (ready.status_code, ready.json()) == (
        200,
        {"status": "ok", "checks": {"sessions": "ok", "layout": "ok", "counter": "ok"}},
    )


async def test_metrics_count_by_route_and_never_by_name(served: Served) -> None:
    before = Scrape((await served.client.get("/metrics")).text)
    await publish(served, "very-secret-name", "hello")
    await served.client.get("/v1/nothing-of-the-kind")
    text = (await served.client.get("/metrics")).text
    name, turns = "prefold_http_requests_total", "/v1/sessions/{session}/turns"
    for labels in ({"method": "POST", "route": turns, "status": "201"}, {"method": "", "route": "", "status": "404"}):
        assert Scrape(text).value(name, **labels) - before.value(name, **labels) == 1
    assert "secret" not in text
    assert "nothing-of" not in text
