"""What a gateway notes of what was removed, and by whose key."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from prefold.audit import AuditEntry, read_audit
from prefold.gateway.credentials import KeyRing
from prefold.gateway.guard import KeyGuard
from tests.support.gateway import Served, served_gateway

FACT = {"relation": "lives_in", "object": "Bern"}
ANN = {"authorization": "Bearer key-of-ann"}
SAID = "words that nobody else may read"


@pytest.fixture
async def served(redis_url: str, tmp_path: Path) -> AsyncIterator[Served]:
    (tmp_path / "keys").write_text(f"ann {hashlib.sha256(b'key-of-ann').hexdigest()}\n")
    keys = KeyRing(tmp_path / "keys")
    keys.load()
    async with served_gateway(redis_url, guard=KeyGuard(keys), audit_file=tmp_path / "audit") as served:
        served.client.headers.update(ANN)
        yield served


def noted(folder: Path) -> list[AuditEntry]:
    return [one for one in read_audit(folder / "audit") if isinstance(one, AuditEntry)]


async def talk(served: Served, session: str, user: str | None = None) -> str:
    """The session's incarnation."""
    if user:
        await served.client.put(f"/v1/sessions/{session}", json={"user": user})
    turn = {"id": "a", "role": "user", "content": SAID}
    assert (await served.client.post(f"/v1/sessions/{session}/turns", json=turn)).status_code == 201
    return (await served.sessions.view("ann", session)).ref.incarnation


async def test_what_was_removed_is_noted_with_its_key_and_life_and_without_a_word(
    served: Served, tmp_path: Path
) -> None:
    life, other = await talk(served, "s1"), await talk(served, "s2", "ada")
    fact = (await served.client.post("/v1/users/ada/facts", json=FACT)).json()["id"]
    for path in ("/v1/sessions/s1/turns/a", "/v1/sessions/s1", f"/v1/users/ada/facts/{fact}", "/v1/users/ada"):
        assert (await served.client.delete(path)).status_code == 200, path
    entries = noted(tmp_path)
    assert [(one.action, dict(one.subject)) for one in entries] == [
        ("turn_removed", {"session": "s1", "incarnation": life, "turn": "a"}),
        ("session_erased", {"session": "s1", "incarnation": life}),
        ("fact_deleted", {"user": "ada", "fact": fact}),
        ("session_erased", {"session": "s2", "incarnation": other}),
        ("user_erased", {"user": "ada"}),
    ]
    assert {(one.tenant, one.role) for one in entries} == {("ann", "gateway")}
    assert all(one.key_id.startswith("old-") for one in entries)
    assert SAID not in (tmp_path / "audit").read_text() and "Bern" not in (tmp_path / "audit").read_text()


async def test_what_was_refused_is_not_noted(served: Served, tmp_path: Path) -> None:
    for path in ("/v1/sessions/nobody", "/v1/users/ada/facts/none"):
        assert (await served.client.delete(path)).status_code == 404
    assert not (tmp_path / "audit").exists()
