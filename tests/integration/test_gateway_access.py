"""Who may pass: tenants by their keys, or this machine alone."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from prefold.gateway.composition import guard_of
from prefold.gateway.credentials import KeyRing
from prefold.gateway.finding import Hit
from prefold.gateway.guard import KeyGuard, LoopbackGuard
from tests.support.gateway import Served, gateway_settings, served_gateway

TURN = {"id": "a", "role": "user", "content": "Hello"}
ANN = {"authorization": "Bearer key-of-ann"}
BOB = {"authorization": "Bearer key-of-bob"}


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    names = ("ann", "bob")
    path.write_text("".join(f"{name} {hashlib.sha256(f'key-of-{name}'.encode()).hexdigest()}\n" for name in names))
    return path


@pytest.fixture
async def keyed(redis_url: str, key_file: Path) -> AsyncIterator[Served]:
    keys = KeyRing(key_file)
    keys.load()
    async with served_gateway(redis_url, guard=KeyGuard(keys)) as served:
        yield served


@pytest.fixture
async def local(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as served:
        yield served


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer nothing"}, {"authorization": "Basic a2V5"}])
@pytest.mark.parametrize("path", ["/v1/sessions/s1/context", "/v1/users/u/facts", "/v1/nothing", "/", "/v1/search"])
async def test_without_a_key_nothing_is_told_not_even_what_exists(
    keyed: Served, path: str, headers: dict[str, str]
) -> None:
    answer = await keyed.client.get(path, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_two_authorization_headers_are_none(keyed: Served) -> None:
    answer = await keyed.client.get("/v1/sessions/s", headers=[*ANN.items(), *BOB.items()])
    assert answer.status_code == 401


async def test_operations_need_no_key(keyed: Served) -> None:
    for path in ("/livez", "/readyz", "/openapi.json"):
        assert (await keyed.client.get(path)).status_code == 200


async def test_one_tenant_never_sees_the_session_of_another(keyed: Served) -> None:
    await keyed.client.post("/v1/sessions/s1/turns", json=TURN, headers=ANN)
    for path in ("", "/turns", "/context"):
        assert (await keyed.client.get(f"/v1/sessions/s1{path}", headers=BOB)).status_code == 404
    await keyed.client.post("/v1/sessions/s1/turns", json={**TURN, "content": "of Bob"}, headers=BOB)
    log = (await keyed.client.get("/v1/sessions/s1/turns", headers=ANN)).json()["turns"]
    assert [turn["content"] for turn in log] == ["Hello"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/rewind", {"to_seq": 0}),
        ("POST", "/fork", {"session": "mine"}),
        ("PUT", "/turns/a", {"role": "user", "content": "of Bob"}),
        ("DELETE", "/turns/a", None),
        ("DELETE", "", None),
    ],
)
async def test_one_tenant_never_changes_the_session_of_another(
    keyed: Served, method: str, path: str, body: dict[str, object] | None
) -> None:
    await keyed.client.post("/v1/sessions/s1/turns", json=TURN, headers=ANN)
    answer = await keyed.client.request(method, f"/v1/sessions/s1{path}", json=body, headers=BOB)
    assert (answer.status_code, answer.json()["code"]) == (404, "session_not_found")
    log = (await keyed.client.get("/v1/sessions/s1/turns", headers=ANN)).json()["turns"]
    assert [turn["content"] for turn in log] == ["Hello"]


async def test_a_search_asks_for_the_tenant_of_the_key_and_checks_what_it_gets(keyed: Served) -> None:
    await keyed.client.post("/v1/sessions/s1/turns", json=TURN, headers=ANN)
    life = (await keyed.sessions.view("ann", "s1")).ref.incarnation
    # An index gone wrong: it gives Ann's turn to Bob.
    keyed.index.hits = [("bob", Hit("s1", life, 1, 0, 0.9))]
    answer = await keyed.client.post("/v1/search", json={"query": "Hello"}, headers=BOB)
    assert answer.json() == {"results": []}
    assert keyed.index.asked[0]["tenant"] == "bob"


@pytest.mark.parametrize("host", ["127.0.0.1:7077", "localhost", "LOCALHOST:80", "[::1]:7077", "127.0.0.2"])
async def test_without_keys_this_machine_is_served_by_its_loopback_names(local: Served, host: str) -> None:
    assert (await local.client.get("/v1/sessions/s", headers={"host": host})).status_code == 404


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:7077",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        "192.168.1.2",
        "0.0.0.0",
    ],
)
@pytest.mark.parametrize("path", ["/v1/sessions/s", "/livez", "/metrics", "/openapi.json"])
async def test_without_keys_no_other_host_is_served(local: Served, host: str, path: str) -> None:
    answer = await local.client.get(path, headers={"host": host})
    assert (answer.status_code, answer.json()["code"]) == (403, "host_refused")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://localhost:3000"}, 404),
        ({"origin": "https://127.0.0.1"}, 404),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"origin": "http://localhost.evil.example"}, 403),
        ({"origin": "http://localhost@evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 404),
    ],
)
async def test_without_keys_a_web_page_of_elsewhere_is_refused(
    local: Served, headers: dict[str, str], status: int
) -> None:
    assert (await local.client.get("/v1/sessions/s", headers=headers)).status_code == status


async def test_without_keys_the_tenant_is_the_default_one(local: Served) -> None:
    await local.client.post("/v1/sessions/s1/turns", json=TURN)
    assert (await local.sessions.view("default", "s1")).head_seq == 1


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org"])
def test_other_machines_are_not_served_without_keys(host: str) -> None:
    with pytest.raises(ValidationError, match="PREFOLD_API_KEYS_FILE"):
        gateway_settings(host=host)


def test_other_machines_are_served_with_keys(key_file: Path) -> None:
    assert isinstance(guard_of(gateway_settings(host="0.0.0.0", api_keys_file=key_file)), KeyGuard)
    assert isinstance(guard_of(gateway_settings(host="::1")), LoopbackGuard)
