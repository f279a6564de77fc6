"""``DELETE /v1/users/{user}`` on a real Redis: everything of a user goes, and nothing of anybody else."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from prefold.gateway.callers import THIS_MACHINE, Caller
from prefold.gateway.credentials import KeyRing
from prefold.gateway.erasure_calls import SessionErasing
from prefold.gateway.finding import Hit
from prefold.gateway.guard import KeyGuard
from prefold.gateway.user_erasing import UserErasing
from prefold.jobs import JobQueue, queue_connection
from prefold.storage.keys import SessionKeys, UserKeys
from prefold.storage.types import SessionOptions, SessionRef
from prefold.storage.users import ErasedUser, Users
from tests.support.gateway import Served, served_gateway

USER = "/v1/users/ada"
SECRET = "CANARY-7731"
LIVES = {"relation": "lives_in", "object": f"Germany {SECRET}", "is_entity": True}


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as running:
        yield running


async def talk(served: Served, session: str, user: str = "ada", **headers: str) -> None:
    url = f"/v1/sessions/{session}"
    await served.client.put(url, json={"user": user}, headers=headers)
    await served.client.post(
        f"{url}/turns", json={"id": "t1", "role": "user", "content": f"{SECRET} I am"}, headers=headers
    )
    await served.client.put(f"{url}/state", json={"goal": SECRET}, headers=headers)
    await served.client.get(f"{url}/context", headers=headers)


async def everything_of(served: Served) -> bytes:
    """All that the store holds, as bytes."""
    client = served.sessions.client
    found = []
    async for key in client.scan_iter("*"):
        found += [key, await client.dump(key) or b""]
    return b"\n".join(found)


async def erase(served: Served, user: str = "ada", **headers: str) -> dict[str, Any]:
    answer = await served.client.delete(f"/v1/users/{user}", headers=headers)
    assert answer.status_code == 200, answer.text
    receipt: dict[str, Any] = answer.json()
    return receipt


async def test_everything_of_a_user_goes_and_the_receipt_comes_from_another_look(served: Served) -> None:
    for session in ("s1", "s2"):
        await talk(served, session)
    await served.client.post("/v1/sessions/s1/fork", json={"session": "s3"})
    await served.client.post(f"{USER}/facts", json=LIVES)
    life = (await served.sessions.view("default", "s1")).ref.incarnation
    served.index.hits = [("default", Hit("s1", life, 1, 0, 0.9))]
    receipt = await erase(served)
    assert sorted(receipt["sessions"]) == ["s1", "s2", "s3"]
    assert (receipt["facts"], receipt["turns"]) == (1, 3)
    left = ("sessions_left", "facts_left", "keys_left", "events_left", "due_left", "dead_letters_left", "vectors_left")
    assert {name: receipt[name] or 0 for name in left} == dict.fromkeys(left, 0)
    assert receipt["commands_left"] == 0
    assert (receipt["jobs_left"], receipt["not_checked"], receipt["opened_anew"]) == (None, ["jobs"], False)
    assert (served.index.hits, served.index.facts) == ([], {})
    assert SECRET.encode() not in await everything_of(served)
    for path in ("/v1/sessions/s1", "/v1/sessions/s3/context", "/v1/sessions/s2/state"):
        assert (await served.client.get(path)).status_code == 410
    assert (await served.client.get(f"{USER}/facts?history=true")).json()["facts"] == []
    assert (await served.client.get(f"{USER}/graph")).json() == {"nodes": [], "edges": []}
    assert {"backups that you keep", "vector store files"} <= {one["where"] for one in receipt["remains"]}


async def test_queued_work_of_a_user_s_sessions_goes_too(redis_url: str, queue_url: str) -> None:
    async with served_gateway(redis_url, queue_url=queue_url) as served:
        await talk(served, "s1")
        ref = (await served.sessions.view("default", "s1")).ref
        jobs = JobQueue(queue_connection(queue_url))
        jobs.remember([ref, SessionRef("default", "other", "x")], occasion="1")
        receipt = await erase(served)
        assert (receipt["jobs_left"], receipt["not_checked"]) == (0, [])
        assert (jobs.jobs_of("default", "s1"), jobs.jobs_of("default", "other")) == (0, 1)
        jobs.close()


async def test_repeating_is_safe_and_an_unknown_user_is_nobody(served: Served) -> None:
    await talk(served, "s1")
    await erase(served)
    for user in ("ada", "nobody"):
        receipt = await erase(served, user)
        assert (receipt["sessions"], receipt["facts"], receipt["keys_left"], receipt["vectors_left"]) == ([], 0, 0, 0)


async def test_nobody_else_loses_anything(served: Served) -> None:
    await talk(served, "s1")
    await talk(served, "s2", "bob")
    await served.client.put("/v1/sessions/s3", json={})
    # Ada was named for Bob's session, and was refused: the name alone makes it none of hers.
    assert (await served.client.put("/v1/sessions/s2", json={"user": "ada"})).status_code == 409
    await served.client.post("/v1/users/bob/facts", json=LIVES)
    receipt = await erase(served)
    assert receipt["sessions"] == ["s1"]
    assert (await served.client.get("/v1/sessions/s2/context")).status_code == 200
    assert (await served.client.get("/v1/sessions/s3")).status_code == 200
    assert len((await served.client.get("/v1/users/bob/facts")).json()["facts"]) == 1
    assert [place[1] for place in served.index.facts] == ["bob"]


async def test_a_session_that_another_user_has_by_now_is_spared(served: Served) -> None:
    await talk(served, "s1")
    await served.client.delete("/v1/sessions/s1")
    await talk(served, "s1", "bob")
    assert (await erase(served))["sessions"] == []
    assert (await served.client.get("/v1/sessions/s1/context")).status_code == 200


async def test_an_erased_user_may_begin_anew(served: Served) -> None:
    await talk(served, "s1")
    await served.client.post(f"{USER}/facts", json=LIVES)
    await erase(served)
    await talk(served, "s1")
    await served.client.post(f"{USER}/facts", json=LIVES)
    assert len((await served.client.get(f"{USER}/facts")).json()["facts"]) == 1
    assert (await erase(served))["sessions"] == ["s1"]


async def test_a_session_that_is_opened_while_the_erasure_runs_is_found_by_a_second_look(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talk(served, "s1")
    erase_users = Users.erase
    opened: list[str] = []

    async def opening(self: Users, tenant: str, user: str) -> ErasedUser:
        erased = await erase_users(self, tenant, user)
        if not opened:  # after the list was taken, as a PUT that had noted the session before would do it
            opened.append("late")
            await talk(served, "late")
        return erased

    monkeypatch.setattr(Users, "erase", opening)
    receipt = await erase(served)
    assert sorted(receipt["sessions"]) == ["late", "s1"]
    assert (receipt["sessions_left"], receipt["keys_left"], receipt["opened_anew"]) == ([], 0, False)
    assert SECRET.encode() not in await everything_of(served)


async def test_a_session_that_is_opened_again_and_again_is_named(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    erase_users = Users.erase
    opened: list[str] = []

    async def opening(self: Users, tenant: str, user: str) -> ErasedUser:
        erased = await erase_users(self, tenant, user)
        opened.append(f"late{len(opened)}")
        await served.sessions.open("default", opened[-1], SessionOptions(user="ada"))
        return erased

    monkeypatch.setattr(Users, "erase", opening)
    receipt = await erase(served)
    assert receipt["sessions_left"] == opened[-1:]
    assert receipt["opened_anew"] is True


@pytest.mark.parametrize("was_erased", [True, False])
async def test_a_session_that_somebody_else_begins_meanwhile_under_the_same_name_lives_on(
    served: Served, monkeypatch: pytest.MonkeyPatch, was_erased: bool
) -> None:
    await talk(served, "s1")
    if was_erased:
        await served.client.delete("/v1/sessions/s1")
    run, pending = SessionErasing.run, [True]

    async def run_late(erasing: SessionErasing, caller: Caller, session: str, **given: Any) -> Any:
        if pending and pending.pop():
            await served.sessions.erase(caller.tenant, session)
            await talk(served, session, "bob")
        return await run(erasing, caller, session, **given)

    monkeypatch.setattr(SessionErasing, "run", run_late)
    assert (await erase(served))["sessions_left"] == []
    assert pending == []
    assert (await served.sessions.view("default", "s1")).user == "bob"
    assert (await served.sessions.view("default", "s1")).head_seq == 1


async def test_a_put_notes_the_session_again_after_it_was_opened(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    note, erasures = Users.note_session, [ErasedUser(0, ("s1",), 0)]

    async def erased_after_the_first(users: Users, tenant: str, user: str, session: str) -> None:
        await note(users, tenant, user, session)
        if erasures:
            assert await users.erase(tenant, user) == erasures.pop()

    monkeypatch.setattr(Users, "note_session", erased_after_the_first)
    await served.client.put("/v1/sessions/s1", json={"user": "ada"})
    assert await served.sessions.users.sessions("default", "ada") == ["s1"]


async def test_without_time_for_all_sessions_the_list_stands_for_a_repeat(served: Served) -> None:
    for n in range(3):
        await talk(served, f"s{n}")
    await served.client.post(f"{USER}/facts", json=LIVES)
    erasing = UserErasing(served.sessions, _Never(), served.index)
    made = await erasing.run(THIS_MACHINE, "ada", within_seconds=-1)
    assert (made.is_cut_short, sorted(made.sessions_left), made.facts_left) == (True, ["s0", "s1", "s2"], 1)
    assert made.findings().is_reopened is False
    assert sorted((await erase(served))["sessions"]) == ["s0", "s1", "s2"]


class _Never(SessionErasing):
    def __init__(self) -> None: ...

    async def run(self, caller: Caller, session: str, *, incarnation: str = "") -> Any:
        raise AssertionError("there was no time for it")


async def test_what_a_failure_had_left_a_repeat_finishes(served: Served) -> None:
    await talk(served, "s1")
    served.index.facts[("default", "ada", "f1")] = "of the user"
    served.index.is_down = True
    first = await erase(served)
    assert (first["vectors_left"], first["not_checked"]) == (None, ["jobs", "vectors"])
    assert "vectors" in {one["where"] for one in first["remains"]}
    served.index.is_down = False
    assert (await erase(served))["vectors_left"] == 0
    assert served.index.facts == {}


async def test_a_user_of_the_same_name_of_another_tenant_sees_and_loses_nothing(redis_url: str, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(
        "".join(f"{name} {hashlib.sha256(f'key-of-{name}'.encode()).hexdigest()}\n" for name in ("ann", "bob"))
    )
    keys = KeyRing(path)
    keys.load()
    ann, bob = ({"authorization": f"Bearer key-of-{name}"} for name in ("ann", "bob"))
    async with served_gateway(redis_url, guard=KeyGuard(keys)) as served:
        await talk(served, "s1", **ann)
        await talk(served, "s1", **bob)
        made = (await served.client.post(f"{USER}/facts", json=LIVES, headers=ann)).json()
        for path_of in ("/facts?history=true", "/graph"):
            assert SECRET not in (await served.client.get(USER + path_of, headers=bob)).text
        for method, body in (("PUT", {"object": "x"}), ("DELETE", None)):
            refusal = await served.client.request(method, f"{USER}/facts/{made['id']}", json=body, headers=bob)
            assert (refusal.status_code, refusal.json()["code"]) == (404, "fact_not_found")
        assert (
            await served.client.put("/v1/sessions/s1/state", json={"goal": "of Bob"}, headers=bob)
        ).status_code == 200
        receipt = await erase(served, **bob)
        assert (receipt["sessions"], receipt["facts"]) == (["s1"], 0)
        assert (await served.client.get("/v1/sessions/s1/state", headers=ann)).json()["state"] == {"goal": SECRET}
        assert len((await served.client.get(f"{USER}/facts", headers=ann)).json()["facts"]) == 1
        for method, call in (("GET", f"{USER}/facts"), ("DELETE", USER), ("GET", "/v1/sessions/s1/state")):
            assert (await served.client.request(method, call)).status_code == 401


async def test_only_marks_are_left_of_an_erased_user(served: Served) -> None:
    await talk(served, "s1")
    await served.client.post(f"{USER}/facts", json=LIVES)
    await erase(served)
    names = {key.decode() async for key in served.sessions.client.scan_iter("pf1:*")}
    mine = {name for name in names if ":s:" in name or ":ada}" in name}
    assert mine == {UserKeys.of("default", "ada").meta, SessionKeys.of("default", "s1").tomb}
