"""``…/state`` on a real Redis: read, written whole, patched, capped, and by one version at a time."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from prefold.conversation import redacted_turn
from prefold.pinned import Proposed, decode, encode, with_proposals
from prefold.storage import Sessions
from prefold.storage.memory_types import StoredState
from prefold.tokens import load_counter
from tests.support.gateway import Served, served_gateway

SESSION = "/v1/sessions/s1"
STATE = f"{SESSION}/state"
WHOLE: dict[str, Any] = {
    "goal": "Book the trip",
    "constraints": ["no flights"],
    "entities": {"booking": "QX-1"},
    "decisions": ["by train"],
    "plan": [{"step": "hotel", "done": True}],
}


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as running:
        await running.client.put(SESSION, json={"system": "Be kind."})
        yield running


async def propose(served: Served, *proposed: Proposed) -> list[dict[str, Any]]:
    """As a memory worker does it; the open proposals."""
    stored = await served.sessions.read_state("default", "s1")
    apply = stored.proposals == "apply"
    made = with_proposals(
        decode(stored.body), proposed, apply=apply, counter=load_counter(), cap_tokens=stored.cap_tokens
    )
    await served.sessions.put_state(
        "default", "s1", expected_version=stored.version, body=encode(made), tokens=made.tokens
    )
    found: list[dict[str, Any]] = (await served.client.get(STATE)).json()["proposals"]
    return found


async def test_a_session_begins_without_a_state(served: Served) -> None:
    answer = await served.client.get(STATE)
    assert answer.json() == {"version": 0, "tokens": 0, "cap_tokens": 250, "state": {}, "proposals": []}
    assert answer.headers["etag"] == '"0"'


async def test_a_state_is_replaced_whole_and_read_back(served: Served) -> None:
    put = await served.client.put(STATE, json=WHOLE)
    assert (put.status_code, put.json()["state"], put.json()["version"]) == (200, WHOLE, 1)
    other = await served.client.put(STATE, json={"goal": "Other"})
    assert other.json()["state"] == {"goal": "Other"}
    assert (await served.client.get(STATE)).json() == other.json()
    assert (await served.client.put(STATE, json={})).json()["tokens"] == 0


async def test_writing_the_same_again_changes_nothing(served: Served) -> None:
    first = await served.client.put(STATE, json=WHOLE)
    assert (await served.client.put(STATE, json=WHOLE)).json() == first.json()


async def test_the_state_counts_within_the_limit_and_raises_the_version_of_the_context(served: Served) -> None:
    before = (await served.client.get(SESSION)).json()
    put = (await served.client.put(STATE, json=WHOLE)).json()
    after = (await served.client.get(SESSION)).json()
    assert after["tokens"]["fixed"] == before["tokens"]["fixed"] + put["tokens"]
    assert after["version"] > before["version"]


async def test_a_patch_merges_entities_one_by_one_and_null_removes(served: Served) -> None:
    await served.client.put(STATE, json=WHOLE)
    patch = {"entities": {"booking": None, "hotel": "Astra"}, "goal": None, "plan": [{"step": "pay", "done": False}]}
    media = {"content-type": "application/merge-patch+json"}
    answer = await served.client.patch(STATE, content=httpx.Request("PATCH", "/", json=patch).content, headers=media)
    assert answer.json()["state"] == {
        "constraints": ["no flights"],
        "entities": {"hotel": "Astra"},
        "decisions": ["by train"],
        "plan": [{"step": "pay", "done": False}],
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"goal": 7}, "goal"),
        ({"goal": " "}, "goal"),
        ({"constraints": ["a", ""]}, "constraints[1]"),
        ({"entities": {"ok": "x", "a": {"b": "c"}}}, "entities.a"),
        ({"entities": {" ": "x"}}, "entities. "),
        ({"entities": {str(n): "x" for n in range(201)}}, "entities"),
        ({"plan": [{"step": "a", "when": 1}]}, "plan[0].when"),
        ({"plan": ["a"]}, "plan[0]"),
        ({"mood": "x"}, "mood"),
        ({"decisions": "d"}, "decisions"),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_what_is_no_state_is_refused_by_its_place(
    served: Served, method: str, body: dict[str, Any], field: str
) -> None:
    answer = await served.client.request(method, STATE, json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert (await served.client.get(STATE)).json()["version"] == 0


async def test_over_the_cap_a_write_is_refused_with_the_cost_of_every_entry(served: Served) -> None:
    await served.client.put(SESSION, json={"state_cap_tokens": 60})
    kept = await served.client.put(STATE, json={"goal": "short"})
    body = {"goal": "one " * 30, "constraints": ["two " * 40, "three"]}
    for method in ("PUT", "PATCH"):
        refusal = (await served.client.request(method, STATE, json=body)).json()
        assert (refusal["status"], refusal["code"], refusal["cap_tokens"]) == (422, "state_too_long", 60)
        assert [one["entry"] for one in refusal["entries"]] == ["constraints[0]", "goal", "constraints[1]"]
        assert all(one["tokens"] > 0 for one in refusal["entries"]) and refusal["tokens"] > 60
    assert (await served.client.get(STATE)).json() == kept.json()


async def test_a_hundred_entries_over_the_cap_are_all_named(served: Served) -> None:
    body = {"constraints": [f"rule number {n} is a rule" for n in range(100)]}
    refusal = (await served.client.put(STATE, json=body)).json()
    assert {one["entry"] for one in refusal["entries"]} == {f"constraints[{n}]" for n in range(100)}


async def test_a_state_that_leaves_the_conversation_no_room_is_refused(served: Served) -> None:
    await served.client.put(SESSION, json={"state_cap_tokens": 5000, "hard_limit_tokens": 1000})
    answer = await served.client.put(STATE, json={"goal": "word " * 790})
    assert (answer.status_code, answer.json()["code"]) == (422, "no_room")


async def test_a_write_that_builds_on_another_version_is_refused(served: Served) -> None:
    tag = (await served.client.put(STATE, json={"goal": "a"})).headers["etag"]
    assert (await served.client.put(STATE, json={"goal": "b"}, headers={"if-match": tag})).status_code == 200
    for stale in (tag, '"0"', 'W/"2"', "2", '"x", "7"'):
        answer = await served.client.patch(STATE, json={"goal": "c"}, headers={"if-match": stale})
        assert (answer.status_code, answer.json()["code"]) == (412, "version_conflict")
    assert (await served.client.patch(STATE, json={"goal": "d"}, headers={"if-match": "*"})).status_code == 200
    assert (await served.client.get(STATE)).json()["state"] == {"goal": "d"}


async def test_patches_at_the_same_time_lose_nothing_of_each_other(served: Served) -> None:
    bodies = [{"entities": {f"name{n}": f"value{n}"}} for n in range(6)]
    answers = await asyncio.gather(*(served.client.patch(STATE, json=body) for body in bodies))
    assert {answer.status_code for answer in answers} == {200}
    state = (await served.client.get(STATE)).json()
    assert (len(state["state"]["entities"]), state["version"]) == (6, 6)


async def test_a_proposal_is_accepted_or_rejected_by_its_id(served: Served) -> None:
    nuts, glass = await propose(
        served, Proposed("constraints", "no nuts", 3, "t3"), Proposed("decisions", "glass roof", 4, "t4")
    )
    assert nuts["sources"] == [{"turn_id": "t3", "seq": 3}]
    taken = await served.client.put(f"{STATE}/proposals/{nuts['id']}")
    assert taken.json()["state"] == {"constraints": ["no nuts"]}
    for _ in range(2):
        left = await served.client.delete(f"{STATE}/proposals/{glass['id']}")
        assert (left.status_code, left.json()["proposals"]) == (200, [])
    assert await propose(served, Proposed("decisions", "Glass roof.", 9, "t9")) == []
    again = await served.client.put(f"{STATE}/proposals/{glass['id']}")
    assert (again.status_code, again.json()["code"]) == (404, "proposal_not_found")
    assert (await served.client.put(f"{STATE}/proposals/nothing")).status_code == 422


async def test_applied_proposals_never_stand_in_the_system_prompt(served: Served) -> None:
    await served.client.put(SESSION, json={"proposals": "apply"})
    await served.client.put(STATE, json={"goal": "Mine"})
    await served.client.post(f"{SESSION}/turns", json={"role": "user", "content": "Hello"})
    (one,) = await propose(served, Proposed("constraints", "no nuts", 1, "t1"))
    assert one["status"] == "applied"
    context = (await served.client.get(f"{SESSION}/context")).json()
    assert "Goal: Mine" in context["system"] and "no nuts" not in context["system"]
    assert "no nuts" in context["messages"][-1]["content"][-1]["text"]


async def test_proposals_go_with_the_turn_that_they_came_from(served: Served) -> None:
    for n in (1, 2):
        await served.client.post(f"{SESSION}/turns", json={"id": f"t{n}", "role": "user", "content": f"turn {n}"})
    await propose(served, Proposed("constraints", "of one", 1, "t1"), Proposed("constraints", "of two", 2, "t2"))
    await served.client.delete(f"{SESSION}/turns/t1")
    assert [one["value"] for one in (await served.client.get(STATE)).json()["proposals"]] == ["of two"]
    await served.client.post(f"{SESSION}/rewind", json={"to_seq": 1})
    assert (await served.client.get(STATE)).json()["proposals"] == []


async def test_a_fork_has_no_proposal_of_turns_that_it_does_not_have(served: Served) -> None:
    await served.client.put(SESSION, json={"proposals": "apply"})
    turns = [{"id": f"t{number}", "role": "user", "content": f"text {number}"} for number in (1, 2, 3)]
    await served.client.post(f"{SESSION}/turns", json={"turns": turns})
    await propose(
        served, Proposed("decisions", "by train", 1, "t1"), Proposed("goal", "lunch", 2, "t2"),
        Proposed("constraints", "no flights", 3, "t3"), Proposed("decisions", "by train", 3, "t3"),
    )  # fmt: skip
    # The gateway that removed t1 died before it could see to what was proposed of it, and no worker has been there yet.
    counter, stored = load_counter(), await served.sessions.find_turn("default", "s1", "t1")
    await served.sessions.remove_turn("default", "s1", "t1", redacted_turn(stored, counter))
    await served.client.post(f"{SESSION}/fork", json={"session": "f2", "at_seq": 2})
    await served.client.post(f"{SESSION}/fork", json={"session": "f3"})
    shown = {name: (await served.client.get(f"/v1/sessions/{name}/state")).json() for name in ("f2", "f3")}
    assert [one["value"] for one in shown["f2"]["proposals"]] == ["lunch"]
    assert [one["value"] for one in shown["f3"]["proposals"]] == ["by train", "lunch", "no flights"]
    assert shown["f3"]["proposals"][0]["sources"] == [{"turn_id": "t3", "seq": 3}]
    context = (await served.client.get("/v1/sessions/f2/context")).text
    assert "lunch" in context
    assert "by train" not in context and "no flights" not in context


async def test_proposals_stand_in_contexts_as_the_session_has_it_now(served: Served) -> None:
    await served.client.put(SESSION, json={"proposals": "apply"})
    await served.client.post(f"{SESSION}/turns", json={"id": "t1", "role": "user", "content": "hello"})
    await propose(served, Proposed("decisions", "by train", 1, "t1"))

    async def shown() -> tuple[str, bool]:
        (proposal,) = (await served.client.get(STATE)).json()["proposals"]
        return proposal["status"], "by train" in (await served.client.get(f"{SESSION}/context")).text

    assert await shown() == ("applied", True)
    for options, then in (
        ({"proposals": "hold"}, ("proposed", False)),
        ({"proposals": "apply"}, ("applied", True)),
        ({"state_cap_tokens": 1}, ("proposed", False)),
    ):
        answer = await served.client.put(SESSION, json=options)
        assert answer.json() == (await served.client.get(SESSION)).json()
        assert await shown() == then


async def test_a_patch_writes_nothing_of_an_erased_session_into_its_next_life(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    await served.client.put(STATE, json={"goal": "Old"})
    read, pending = Sessions.read_state, [True]

    async def read_before_a_new_life(sessions: Sessions, tenant: str, session: str) -> StoredState:
        found = await read(sessions, tenant, session)
        if pending and pending.pop():
            await served.client.delete(SESSION)
            await served.client.put(SESSION, json={})
            await sessions.put_state("default", "s1", expected_version=0, body=b"", tokens=0)
        return found

    monkeypatch.setattr(Sessions, "read_state", read_before_a_new_life)
    patched = await served.client.patch(STATE, json={"decisions": ["by train"]})
    assert (patched.status_code, patched.json()["state"]) == (200, {"decisions": ["by train"]})


async def test_the_options_of_memory_are_set_and_shown(served: Served) -> None:
    shown = (await served.client.get(SESSION)).json()
    assert (shown["close_after_seconds"], shown["state_cap_tokens"], shown["proposals"]) == (1800, 250, "hold")
    assert (shown["closed_at"], shown["remembered_to"]) == (None, 0)
    given = {"close_after_seconds": 60, "state_cap_tokens": 100, "proposals": "apply"}
    answer = (await served.client.put(SESSION, json=given)).json()
    assert {name: answer[name] for name in given} == given
    for name, value in (("close_after_seconds", -1), ("state_cap_tokens", 10_001), ("proposals", "maybe")):
        refusal = await served.client.put(SESSION, json={name: value})
        assert (refusal.status_code, refusal.json()["field"]) == (422, name)


async def test_closing_says_what_is_still_open_and_may_be_repeated(served: Served) -> None:
    empty = await served.client.post(f"{SESSION}/close")
    assert (empty.status_code, empty.json()["closed"], empty.json()["closed_at"]) == (200, True, None)
    await served.client.post(f"{SESSION}/turns", json={"role": "user", "content": "Hello"})
    for _ in range(2):
        answer = await served.client.post(f"{SESSION}/close")
        assert answer.status_code == 202
        assert answer.json() == {
            "session": "s1",
            "closed": False,
            "closed_at": None,
            "head_seq": 1,
            "remembered_to": 0,
            "turns_open": 1,
        }
    ref = (await served.sessions.view("default", "s1")).ref
    ticket = await served.sessions.begin_memory(ref, lease_ms=1000)
    assert not isinstance(ticket, str) and ticket.closing
    await served.sessions.end_memory(ticket, upto=1, closed=True)
    closed = await served.client.post(f"{SESSION}/close")
    assert (closed.status_code, closed.json()["closed"], closed.json()["turns_open"]) == (200, True, 0)
    await served.client.post(f"{SESSION}/turns", json={"role": "user", "content": "One more"})
    assert (await served.client.get(SESSION)).json()["closed_at"] is None


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/state"),
        ("PUT", "/state"),
        ("PATCH", "/state"),
        ("POST", "/close"),
        ("DELETE", f"/state/proposals/{'0' * 18}"),
    ],
)
async def test_a_session_that_is_not_there_has_no_state_and_no_end(served: Served, method: str, path: str) -> None:
    body: dict[str, Any] | None = {} if method in ("PUT", "PATCH") else None
    missing = await served.client.request(method, f"/v1/sessions/none{path}", json=body)
    assert (missing.status_code, missing.json()["code"]) == (404, "session_not_found")
    await served.client.delete(SESSION)
    erased = await served.client.request(method, SESSION + path, json=body)
    assert (erased.status_code, erased.json()["code"]) == (410, "session_erased")
