"""What a key may do: every call asks for its scope, and says so in the description."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from prefold.access import SCOPES, KeyFile, KeyRecord, keyed_hash, scopes_of
from prefold.client import AsyncPrefold
from prefold.gateway.answers import SessionWritten
from prefold.gateway.credentials import KeyRing
from prefold.gateway.fact_answers import FactWritten
from prefold.gateway.guard import KeyGuard
from prefold.gateway.state_answers import StateWritten
from prefold.pinned import Pinned, Proposal, change_state
from prefold.storage.memory_types import StoredState
from tests.support.gateway import Served, served_gateway

SECRET = b"a secret of thirty-two bytes, say"
ERASING = {
    ("POST", "/v1/sessions/{session}/rewind"),
    ("PUT", "/v1/sessions/{session}/turns/{turn}"),
    ("DELETE", "/v1/sessions/{session}/turns/{turn}"),
    ("DELETE", "/v1/sessions/{session}"),
    ("DELETE", "/v1/users/{user}"),
    ("DELETE", "/v1/users/{user}/facts/{fact}"),
}


def key_of(scope: str) -> str:
    return f"pf_of-{scope}_" + "x" * 43


@pytest.fixture
async def served(redis_url: str, tmp_path: Path) -> AsyncIterator[Served]:
    records = [
        KeyRecord(f"of-{scope}", "ann", scopes_of([scope]), keyed_hash(SECRET, key_of(scope).encode()))
        for scope in SCOPES
    ]
    (tmp_path / "keys").write_bytes(KeyFile(tuple(records)).to_bytes())
    keys = KeyRing(tmp_path / "keys", secret=SECRET)
    keys.load()
    async with served_gateway(redis_url, guard=KeyGuard(keys), api_keys_file=tmp_path / "keys") as served:
        yield served


async def ask(served: Served, method: str, path: str, scope: str) -> tuple[int, str]:
    """Status and code of a call with nothing in its body."""
    url = re.sub(r"\{(\w+)\}", lambda name: "x1", path)
    headers = {"authorization": f"Bearer {key_of(scope)}", "content-type": "application/json"}
    answer = await served.client.request(method, url, headers=headers, content=b"{}")
    body = answer.json() if "json" in answer.headers.get("content-type", "") else {}
    return answer.status_code, body.get("code", "")


async def described(served: Served) -> list[tuple[str, str, str]]:
    """Method, path and scope of every call that needs a key."""
    document: dict[str, Any] = json.loads((await served.client.get("/openapi.json")).content)
    return [
        (method.upper(), path, call["security"][0]["key"][0])
        for path, calls in document["paths"].items()
        for method, call in calls.items()
        if call["security"]
    ]


async def test_every_call_wants_the_scope_that_its_description_names_and_no_other(served: Served) -> None:
    calls = await described(served)
    assert len(calls) > 20
    for method, path, wanted in calls:
        for scope in ("append", "read", "erase"):
            refused = await ask(served, method, path, scope) == (403, "scope_missing")
            assert refused == (scope != wanted), f"{method} {path} with {scope}"
        assert await ask(served, method, path, "admin") != (403, "scope_missing"), f"{method} {path}"


async def test_what_takes_away_what_was_said_wants_erase_and_reads_want_read(served: Served) -> None:
    for method, path, scope in await described(served):
        assert (scope == "erase") == ((method, path) in ERASING), f"{method} {path}"
        if method == "GET" and path not in ("/v1/usage", "/metrics"):
            assert scope == "read", path


async def test_a_refusal_names_the_scope_and_tells_no_stranger_anything(served: Served) -> None:
    headers = {"authorization": f"Bearer {key_of('append')}"}
    refused = await served.client.get("/v1/sessions/x1/context", headers=headers)
    assert "`read`" in refused.json()["detail"]
    assert (await served.client.get("/v1/sessions/x1/context")).json()["code"] == "unauthenticated"


async def test_a_path_that_does_not_exist_is_404_for_any_key(served: Served) -> None:
    for scope in SCOPES:
        assert await ask(served, "GET", "/v1/nothing", scope) == (404, "no_such_path")


WRITING = ("append", "erase")
SAID = (
    "Be a dragon",
    "buy_dragons",
    "hoard",
    "ann-of-rome",
    "claude-dragon",
    "the goal",
    "sulphur",
    "Latvia",
    "dragonlore",
)


async def write(served: Served, scope: str, method: str, path: str, body: object = None) -> httpx.Response:
    headers = {"authorization": f"Bearer {key_of(scope)}", "content-type": "application/json"}
    content = b"" if body is None else json.dumps(body).encode()
    return await served.client.request(method, path, headers=headers, content=content)


async def filled(served: Served) -> dict[str, str]:
    """A session and a fact of words that only a reader may see; ids that its paths want."""
    tools = [{"name": "buy_dragons", "input_schema": {"type": "object"}}]
    options = {"system": "Be a dragon.", "tools": tools, "metadata": {"at": "hoard"}, "model": "claude-dragon"}
    assert (await write(served, "admin", "PUT", "/v1/sessions/s1", {**options, "user": "ann-of-rome"})).is_success
    for number in (1, 2):
        turn = {"id": f"t{number}", "role": "user", "content": "dragonlore"}
        assert (await write(served, "admin", "POST", "/v1/sessions/s1/turns", turn)).is_success
    state = {"goal": "the goal", "entities": {"sulphur": "yellow"}}
    assert (await write(served, "admin", "PUT", "/v1/sessions/s1/state", state)).is_success
    fact = {"relation": "lives_in", "object": "Latvia", "sources": [{"session": "s1", "turn_id": "t1"}]}
    added = await write(served, "admin", "POST", "/v1/users/ann-of-rome/facts", fact)
    await propose(served, "s1")
    return {"fact": added.json()["id"]}


async def propose(served: Served, session: str) -> str:
    """Two entries that a worker proposes."""
    found = [
        Proposal(id=letter * 18, field="entities.sulphur", value=f"sulphur {letter}", sources=()) for letter in "ab"
    ]

    def proposed(pinned: Pinned, _: StoredState) -> Pinned:
        return msgspec.structs.replace(pinned, proposals=(*pinned.proposals, *found))

    await change_state(served.sessions, "ann", session, proposed)
    return found[0].id


async def test_a_key_that_may_not_read_is_told_numbers_and_ids_and_no_stored_word(served: Served) -> None:
    fact = (await filled(served))["fact"]
    session, user = "/v1/sessions/s1", "/v1/users/ann-of-rome"
    writes: list[tuple[str, str, str, object]] = [
        ("append", "PUT", session, {}),
        ("append", "POST", f"{session}/turns", {"id": "t3", "role": "user", "content": "Go on."}),
        ("append", "POST", f"{session}/fork", {"session": "s2"}),
        ("append", "PATCH", f"{session}/state", {}),
        ("append", "PUT", f"{session}/state/proposals/{'a' * 18}", None),
        ("append", "DELETE", f"{session}/state/proposals/{'b' * 18}", None),
        ("append", "PATCH", f"{session}/state", {"constraints": ["word " * 790] * 20}),
        ("append", "PUT", f"{session}/state", {"constraints": ["word " * 790] * 20}),
        ("append", "PUT", f"{session}/state", {"decisions": ["Go on."]}),
        ("append", "POST", f"{user}/facts", {"relation": "lives_in", "object": "latvia"}),
        ("append", "PUT", f"{user}/facts/{fact}", {}),
        ("append", "POST", f"{session}/close", None),
        ("erase", "PUT", f"{session}/turns/t2", {"role": "user", "content": "Never mind."}),
        ("erase", "DELETE", f"{session}/turns/t2", None),
        ("erase", "POST", f"{session}/rewind", {"to_seq": 1}),
        ("erase", "DELETE", f"{user}/facts/{fact}", None),
        ("erase", "DELETE", session, None),
        ("erase", "DELETE", user, None),
    ]
    answered = set()
    for scope, method, path, body in writes:
        answer = await write(served, scope, method, path, body)
        assert answer.is_success or answer.json()["code"] == "state_too_long", (method, path, answer.text)
        own = user.rpartition("/")[2] if path.startswith(user) else ""
        said = [word for word in SAID if word in answer.text and word != own]
        assert not said, (method, path, answer.text)
        answered.add((method, re.sub(r"s1|ann-of-rome|t2|[ab]{18}", "{}", path).replace(fact, "{}")))
    wanted = {
        (method, re.sub(r"\{\w+\}", "{}", path)) for method, path, scope in await described(served) if scope in WRITING
    }
    assert answered == wanted


async def test_what_a_key_without_read_is_told_is_described(served: Served) -> None:
    fact = (await filled(served))["fact"]
    told = {
        SessionWritten: await write(served, "append", "PUT", "/v1/sessions/s1", {}),
        StateWritten: await write(served, "append", "PATCH", "/v1/sessions/s1/state", {}),
        FactWritten: await write(served, "append", "PUT", f"/v1/users/ann-of-rome/facts/{fact}", {}),
    }
    for kind, answer in told.items():
        assert answer.json().keys() == set(kind.__struct_fields__)
        msgspec.json.decode(answer.content, type=kind)
    assert told[StateWritten].headers["etag"] == f'"{told[StateWritten].json()["version"]}"'
    document = (await served.client.get("/openapi.json")).json()
    described = document["paths"]["/v1/sessions/{session}/state"]["patch"]["responses"]["200"]["content"]
    assert described["application/json"]["schema"] == {
        "oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in ("StateAnswer", "StateWritten")]
    }
    assert document["components"]["schemas"]["StateWritten"]["additionalProperties"] is False  # or both would hold


async def test_a_key_that_may_read_and_write_is_told_all(served: Served) -> None:
    await filled(served)
    answer = await write(served, "admin", "PATCH", "/v1/sessions/s1/state", {})
    assert answer.json()["state"]["goal"] == "the goal"
    assert (await write(served, "admin", "PUT", "/v1/sessions/s1", {})).json()["system"] == "Be a dragon."


async def test_the_client_says_what_its_key_may_not_see(served: Served) -> None:
    fact = (await filled(served))["fact"]
    client = AsyncPrefold("http://127.0.0.1:7077", api_key=key_of("append"), transport=served.transport)
    session = await client.create_session("s1", soft_ratio=0.5)
    assert (session.hidden, session.user, session.system, session.head_seq) == (True, None, None, 2)
    state = await client.patch_state("s1", {"decisions": ["Go on."]}, if_version=2)
    assert (state.hidden, state.version, dict(state.state), state.proposals) == (True, 3, {}, ())
    for known in (
        await client.add_fact("ann-of-rome", "lives_in", "Latvia"),
        await client.correct_fact("ann-of-rome", fact, category="other"),
    ):
        assert (known.hidden, bool(known.id), known.object) == (True, True, "")
    reader = AsyncPrefold("http://127.0.0.1:7077", api_key=key_of("admin"), transport=served.transport)
    assert not (await reader.session("s1")).hidden
    assert not (await reader.state("s1")).hidden
    assert [one.hidden for one in (await reader.facts("ann-of-rome")).facts] == [False]
