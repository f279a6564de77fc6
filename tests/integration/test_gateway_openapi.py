"""What ``/openapi.json`` says is what the gateway does."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import msgspec
import pytest

from prefold.gateway import (
    answers,
    change_answers,
    close_answers,
    fact_answers,
    recall_answers,
    state_answers,
    usage_calls,
    user_answers,
)
from prefold.gateway.finding import Hit
from tests.support.gateway import Served, served_gateway


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as served:
        yield served


@pytest.fixture
async def document(served: Served) -> dict[str, Any]:
    answer = await served.client.get("/openapi.json")
    described: dict[str, Any] = answer.json()
    return described


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


async def test_every_documented_call_is_routed_and_no_other_method_is(served: Served, document: dict[str, Any]) -> None:
    for path, methods in document["paths"].items():
        url = re.sub(r"\{\w+\}", "x", path)
        for method in ("GET", "PUT", "POST", "PATCH", "DELETE"):
            answer = await served.client.request("HEAD" if url.endswith("/events") and method == "GET" else method, url)
            assert (answer.status_code == 405) == (method.lower() not in methods), (method, path)
            assert b"no_such_path" not in answer.content


async def test_the_calls_of_the_design_are_all_there(document: dict[str, Any]) -> None:
    calls = {(method, path) for method, path, _ in operations(document)}
    session, user = "/v1/sessions/{session}", "/v1/users/{user}"
    assert calls == {
        *((method, session) for method in ("PUT", "GET", "DELETE")),
        *((method, f"{session}/turns") for method in ("POST", "GET")),
        *((method, f"{session}/turns/{{turn}}") for method in ("PUT", "DELETE")),
        *((method, f"{session}/state") for method in ("GET", "PUT", "PATCH")),
        *((method, f"{session}/state/proposals/{{proposal}}") for method in ("PUT", "DELETE")),
        *(("POST", f"{session}/{name}") for name in ("rewind", "fork", "close")),
        *(("GET", f"{session}/{name}") for name in ("context", "contexts", "events")),
        *((method, f"{user}/facts") for method in ("GET", "POST")),
        *((method, f"{user}/facts/{{fact}}") for method in ("PUT", "DELETE")),
        ("GET", f"{user}/graph"),
        ("DELETE", user),
        ("POST", "/v1/search"),
        ("GET", "/v1/usage"),
        *(("GET", f"/{name}") for name in ("livez", "readyz", "metrics", "openapi.json")),
    }


async def test_names_are_unique_and_references_lead_somewhere(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(names)) == len(names)
    schemas = document["components"]["schemas"]
    for reference in re.findall(r'"\$ref":\s*"([^"]+)"', json.dumps(document)):
        assert reference.removeprefix("#/components/schemas/") in schemas
    for _, path, operation in operations(document):
        in_path = [one["name"] for one in operation["parameters"] if one["in"] == "path"]
        assert in_path == re.findall(r"\{(\w+)\}", path)


async def test_nothing_is_documented_that_does_not_exist_yet(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        assert "501" not in operation["responses"], (method, path)
        assert any(status.startswith("2") for status in operation["responses"]), (method, path)


async def test_answers_have_exactly_the_documented_members(served: Served, document: dict[str, Any]) -> None:
    client = served.client
    await client.put("/v1/sessions/s1", json={"system": "Be kind.", "tools": [{"name": "f"}], "metadata": {"a": 1}})
    turns = [
        {"role": "user", "content": "word " * 400, "name": "ann"},
        {"role": "assistant", "content": "yes", "ts": 7},
    ]
    append = await client.post("/v1/sessions/s1/turns", json={"turns": [*turns, {"role": "user", "content": "so?"}]})
    life = (await served.sessions.view("default", "s1")).ref.incarnation
    served.index.hits = [("default", Hit("s1", life, 1, 0, 0.5))]
    got: dict[type[msgspec.Struct], httpx.Response] = {
        answers.AppendAnswer: append,
        answers.SessionAnswer: await client.get("/v1/sessions/s1"),
        answers.TurnsAnswer: await client.get("/v1/sessions/s1/turns"),
        recall_answers.ContextAnswer: await client.get("/v1/sessions/s1/context?budget_tokens=300&query=word"),
        recall_answers.SearchAnswer: await client.post("/v1/search", json={"query": "word"}),
        change_answers.ChangeAnswer: await client.delete(f"/v1/sessions/s1/turns/{append.json()['turns'][0]['id']}"),
        change_answers.RewindAnswer: await client.post("/v1/sessions/s1/rewind", json={"to_seq": 2}),
        usage_calls.UsageAnswer: await client.get("/v1/usage?days=2"),
        answers.Health: await client.get("/readyz"),
        answers.Problem: await client.get("/v1/sessions/s1/context?format=x"),
    }
    for kind, answer in got.items():
        assert_is_exactly(kind, answer)
    assert_is_exactly(answers.TurnsAnswer, await client.get("/v1/sessions/s1/turns"))
    assert_is_exactly(answers.SessionAnswer, await client.post("/v1/sessions/s1/fork", json={"session": "s2"}))
    assert got[recall_answers.ContextAnswer].json()["recalled"] or got[recall_answers.ContextAnswer].json()["left_out"]


def assert_is_exactly(kind: type[msgspec.Struct], answer: httpx.Response) -> None:
    """Decodes as the documented type, and holds nothing that the type has not."""
    decoded = msgspec.json.decode(answer.content, type=kind)
    assert json.loads(msgspec.json.encode(decoded)) == answer.json()


async def test_answers_about_memory_have_exactly_the_documented_members(served: Served) -> None:
    client = served.client
    await client.put("/v1/sessions/s1", json={"user": "ada", "state_cap_tokens": 50})
    await client.post("/v1/sessions/s1/turns", json={"id": "t1", "role": "user", "content": "I live in Germany"})
    fact = {
        "relation": "lives_in",
        "object": "Germany",
        "is_entity": True,
        "sources": [{"session": "s1", "turn_id": "t1"}],
    }
    added = await client.post("/v1/users/ada/facts", json=fact)
    url = f"/v1/users/ada/facts/{added.json()['id']}"
    plan = [{"step": "a", "done": True}]
    got: list[tuple[type[msgspec.Struct], httpx.Response]] = [
        (state_answers.StateAnswer, await client.put("/v1/sessions/s1/state", json={"goal": "a", "plan": plan})),
        (answers.Problem, await client.put("/v1/sessions/s1/state", json={"goal": "word " * 60})),
        (close_answers.CloseAnswer, await client.post("/v1/sessions/s1/close")),
        (fact_answers.FactAnswer, added),
        (fact_answers.FactsAnswer, await client.get("/v1/users/ada/facts?limit=1")),
        (fact_answers.GraphAnswer, await client.get("/v1/users/ada/graph")),
        (fact_answers.FactAnswer, await client.put(url, json={"object": "France"})),
        (fact_answers.FactDeletedAnswer, await client.delete(url)),
        (user_answers.UserErasureAnswer, await client.delete("/v1/users/ada")),
    ]
    assert [answer.status_code for _, answer in got] == [200, 422, 202, 201, 200, 200, 200, 200, 200]
    for kind, answer in got:
        assert_is_exactly(kind, answer)


async def test_links_lead_to_calls_with_the_parameters_that_these_take(document: dict[str, Any]) -> None:
    named = {operation["operationId"]: operation for _, _, operation in operations(document)}
    links = [
        link
        for operation in named.values()
        for answer in operation["responses"].values()
        for link in answer.get("links", {}).values()
    ]
    assert len(links) > 20
    for link in links:
        in_path = {one["name"] for one in named[link["operationId"]]["parameters"] if one["in"] == "path"}
        assert set(link["parameters"]) == in_path


async def test_the_statuses_of_refusals_are_documented(served: Served, document: dict[str, Any]) -> None:
    append = document["paths"]["/v1/sessions/{session}/turns"]["post"]["responses"]
    media = {"content-type": "application/json"}
    url = "/v1/sessions/s1/turns"
    seen = {
        (await served.client.post(url, content=b"{", headers=media)).status_code,
        (await served.client.post(url, content=b"{}", headers=media)).status_code,
        (await served.client.post(url, content=b"{}")).status_code,
        (await served.client.post(url, content=b" " * 5_000_000, headers=media)).status_code,
        (await served.client.post(url, json={"role": "user", "content": "hi", "id": "a"})).status_code,
        (await served.client.post(url, json={"role": "user", "content": "ho", "id": "a"})).status_code,
        (await served.client.post(url, json={}, headers={"host": "evil.example"})).status_code,
    }
    assert seen == {400, 422, 415, 413, 201, 409, 403}
    assert {str(status) for status in seen} <= append.keys()


async def test_the_statuses_of_changes_are_documented(served: Served, document: dict[str, Any]) -> None:
    turn = {"id": "a", "role": "user", "content": "hi"}
    session, path = "/v1/sessions/s1", "/v1/sessions/{session}"

    async def statuses_of(method: str, suffix: str, *bodies: Any) -> set[int]:
        return {(await served.client.request(method, session + suffix, json=body)).status_code for body in bodies}

    changes: dict[str, tuple[str, str, Any]] = {
        f"{path}/rewind": ("POST", "/rewind", {"to_seq": 1}),
        f"{path}/fork": ("POST", "/fork", {"session": "s1"}),
        f"{path}/turns/{{turn}}": ("PUT", "/turns/a", {**turn, "role": "assistant"}),
    }
    seen = {name: await statuses_of(*call) for name, call in changes.items()}
    await served.client.post(f"{session}/turns", json=turn)
    for name, (method, suffix, body) in changes.items():
        seen[name] |= await statuses_of(method, suffix, body, {}, [])
    await served.client.delete(session)
    for name, call in changes.items():
        seen[name] |= await statuses_of(*call)
        documented = document["paths"][name][call[0].lower()]["responses"]
        assert {str(status) for status in seen[name]} <= documented.keys()
    assert [sorted(one) for one in seen.values()] == [[200, 400, 404, 410, 422], *[[400, 404, 409, 410, 422]] * 2]
    removal = document["paths"][f"{path}/turns/{{turn}}"]["delete"]["responses"]
    assert {"200", "404", "409", "410"} <= removal.keys()


async def test_the_id_of_a_turn_is_not_documented_as_a_name(document: dict[str, Any]) -> None:
    _, turn = document["paths"]["/v1/sessions/{session}/turns/{turn}"]["put"]["parameters"]
    assert turn["name"] == "turn"
    assert turn["schema"]["maxLength"] == 256
    assert "pattern" not in turn["schema"]
