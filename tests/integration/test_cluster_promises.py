"""Durability and the doctor on a real cluster: each primary has settings and replicas of its own."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx import Response

from prefold.doctor.main import examine
from prefold.doctor.settings import DoctorSettings
from prefold.stack.redis_server import session_options
from prefold.storage.keys import SessionKeys
from tests.support.cluster import Node, RunningCluster, running_cluster
from tests.support.gateway import Served, served_gateway
from tests.support.waiting import wait_until_async


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    """Two primaries, each with a replica."""
    with running_cluster(2, 2, options=session_options("durable")) as running:
        yield running


def session_on(cluster: RunningCluster, primary: Node) -> str:
    names = (f"s{number}" for number in range(1000))
    return next(name for name in names if cluster.owner_of(SessionKeys.of("default", name).meta) is primary)


async def publish(served: Served, turn_id: str, session: str) -> Response:
    turn = {"id": turn_id, "role": "user", "content": "Where is my parcel?"}
    return await served.client.post(f"/v1/sessions/{session}/turns", json=turn)


async def test_a_primary_whose_replica_is_mute_refuses_its_own_turns_and_no_others(cluster: RunningCluster) -> None:
    ill, well = cluster.primaries()
    (replica,) = cluster.replicas_of(ill)
    given: dict[str, Any] = {"store_check_ms": 50, "replicas_within_ms": 300}
    async with served_gateway(cluster.url, durability="durable", watched=True, **given) as served:
        assert served.sessions.replicated is not None
        for number, primary in enumerate((ill, well)):
            assert (await publish(served, f"t{number}", session_on(cluster, primary))).json()["durability"] == "durable"

        async def must_confirm() -> bool:
            return served.sessions.replicated is not None and served.sessions.replicated.needed == 1

        await wait_until_async("replicas have to confirm", must_confirm)
        replica.freeze()
        refused, taken = await asyncio.gather(
            publish(served, "a", session_on(cluster, ill)), publish(served, "a", session_on(cluster, well))
        )
        replica.thaw()
        assert (refused.status_code, refused.json()["code"]) == (503, "not_replicated")
        assert (taken.status_code, taken.json()["durability"]) == (201, "durable")
        again = await publish(served, "a", session_on(cluster, ill))
        assert (again.status_code, again.json()["turns"][0]["duplicate"]) == (201, True)


async def test_the_doctor_looks_at_every_primary(cluster: RunningCluster, tmp_path: Path) -> None:
    one, other = cluster.primaries()
    one.ask("CONFIG", "SET", "appendfsync", "everysec")
    settings = DoctorSettings(redis_url=cluster.url, queue_url="redis://127.0.0.1:1/0", data_dir=tmp_path)
    try:
        findings = {(found.part, found.name): found.state for found in await examine(settings)}
    finally:
        one.ask("CONFIG", "SET", "appendfsync", "always")
    assert findings[f"sessions {one.address}", "appendfsync"] == "wrong"
    assert findings[f"sessions {other.address}", "appendfsync"] == "ok"
    assert {findings[f"sessions {node.address}", "cluster"] for node in (one, other)} == {"ok"}
    assert {findings["machine", f"clock {node.address}"] for node in (one, other)} == {"ok"}
    assert findings["work", "due"] == findings["work", "events"] == "ok"
