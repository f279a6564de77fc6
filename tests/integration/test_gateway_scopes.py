"""What a key may do: every call asks for its scope, and says so in the description."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from prefold.access import SCOPES, KeyFile, KeyRecord, keyed_hash, scopes_of
from prefold.gateway.credentials import KeyRing
from prefold.gateway.guard import KeyGuard
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
        if method == "GET" and path != "/v1/usage":
            assert scope == "read", path


async def test_a_refusal_names_the_scope_and_tells_no_stranger_anything(served: Served) -> None:
    headers = {"authorization": f"Bearer {key_of('append')}"}
    refused = await served.client.get("/v1/sessions/x1/context", headers=headers)
    assert "`read`" in refused.json()["detail"]
    assert (await served.client.get("/v1/sessions/x1/context")).json()["code"] == "unauthenticated"


async def test_a_path_that_does_not_exist_is_404_for_any_key(served: Served) -> None:
    for scope in SCOPES:
        assert await ask(served, "GET", "/v1/nothing", scope) == (404, "no_such_path")
