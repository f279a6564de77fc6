"""What the gateway counts of contexts and limits, and who may read it."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prefold.access import keyed_hash
from prefold.gateway.credentials import KeyRing
from prefold.gateway.guard import KeyGuard
from prefold.gateway.metrics import note_served
from prefold.storage.counting import note_append
from prefold.storage.types import AppendedTurn, AppendResult, SessionRef
from prefold.telemetry.metrics import exposition
from tests.support.gateway import Served, served_gateway
from tests.support.metrics import Scrape

SESSION = "/v1/sessions/s"


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as one:
        yield one


class Since:
    """What has been counted since it was made: the counters are the process's."""

    def __init__(self) -> None:
        self._before = self._now()

    def __call__(self, name: str, **labels: str) -> float:
        return self._now().value(name, **labels) - self._before.value(name, **labels)

    @staticmethod
    def _now() -> Scrape:
        return Scrape(exposition().decode())


async def publish(served: Served, number: int, words: int) -> dict[str, Any]:
    turn = {"id": f"t{number}", "role": "user", "content": "word " * words}
    answer = await served.client.post(f"{SESSION}/turns", json=turn)
    assert answer.status_code == 201, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def test_a_limit_that_is_met_without_a_summary_is_a_missing_standby_and_contexts_are_degraded(
    served: Served,
) -> None:
    since = Since()
    await served.client.put(SESSION, json={"hard_limit_tokens": 1_000})
    statuses = [(await publish(served, number, 180))["context"]["status"] for number in range(8)]
    view = await served.sessions.view("default", "s")
    assert "degraded" in statuses
    assert since("prefold_append_turns_total", result="stored") == 8
    assert since("prefold_limit_crossings_total", standby="missing") == view.limit_crossings > 0
    assert since("prefold_limit_crossings_total", standby="ready") == view.ready_crossings == 0
    assert since("prefold_swaps_total") == 0
    for query in ({}, {"budget_tokens": "400"}, {"query": "word"}):
        assert (await served.client.get(f"{SESSION}/context", params=query)).status_code == 200
    assert since("prefold_degraded_contexts_total") == 3
    assert since("prefold_over_limit_reads_total") == 0
    assert since("prefold_context_read_seconds_count", query="yes") == 1
    assert since("prefold_context_read_seconds_count", query="no") == 2


async def test_a_turn_that_is_repeated_is_counted_as_a_duplicate(served: Served) -> None:
    since = Since()
    for _ in range(2):
        await publish(served, 1, 5)
    assert since("prefold_append_turns_total", result="stored") == 1
    assert since("prefold_append_turns_total", result="duplicate") == 1


async def test_a_read_that_the_client_has_already_is_not_counted_as_served(served: Served) -> None:
    await publish(served, 1, 5)
    tag = (await served.client.get(f"{SESSION}/context")).headers["etag"]
    since = Since()
    again = await served.client.get(f"{SESSION}/context", headers={"if-none-match": tag})
    assert again.status_code == 304
    assert since("prefold_context_read_seconds_count") == 0


@pytest.mark.parametrize(
    ("total", "budget", "over"), [(1_000, None, 0), (1_001, None, 1), (900, 800, 1), (800, 800, 0)]
)
async def test_a_context_over_its_limit_or_budget_would_be_counted(
    served: Served, total: int, budget: int | None, over: int
) -> None:
    from prefold.assembly import assemble
    from prefold.tokens import load_counter

    await served.client.put(SESSION, json={"hard_limit_tokens": 1_000})
    await publish(served, 1, 5)
    stored = await served.sessions.read_context("default", "s")
    since = Since()
    note_served(stored, replace(assemble(stored, load_counter()), total_tokens=total), budget)
    assert since("prefold_over_limit_reads_total") == over


@pytest.mark.parametrize(("crossed", "swapped", "standby"), [(True, True, "ready"), (True, False, "missing")])
def test_a_crossing_is_counted_by_what_it_met(crossed: bool, swapped: bool, standby: str) -> None:
    since = Since()
    ref = SessionRef("t", "s", "0123456789ab")
    note_append(AppendResult(ref, (AppendedTurn("a", 1, 9, False),), 1, 0, 9, 9, 1_000, "ok", swapped, crossed=crossed))
    assert since("prefold_limit_crossings_total", standby=standby) == since("prefold_limit_crossings_total") == 1
    assert since("prefold_swaps_total", result="ready") == swapped


def keyed(folder: Path, *keys: tuple[str, tuple[str, ...]]) -> tuple[KeyRing, Path]:
    file, secret = folder / "keys", b"a secret of thirty-two bytes, say"
    records = [
        {"id": name, "tenant": "acme", "scopes": scopes, "hash": keyed_hash(secret, text_of(name).encode()).hex()}
        for name, scopes in keys
    ]
    file.write_text(json.dumps({"version": 2, "keys": [{**one, "created": ""} for one in records], "quotas": {}}))
    ring = KeyRing(file, secret=secret)
    ring.load()
    return ring, file


def text_of(name: str) -> str:
    return f"pf_{name}_" + "x" * 43


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
async def test_where_there_are_keys_metrics_want_one_of_the_scope_admin_wherever_the_gateway_listens(
    redis_url: str, tmp_path: Path, host: str
) -> None:
    keys, file = keyed(tmp_path, ("whole", ("admin",)), ("most", ("append", "read", "erase")))
    async with served_gateway(redis_url, guard=KeyGuard(keys), host=host, api_keys_file=file) as served:
        for foreign in ({}, {"host": "evil.example"}):  # as through a proxy on this machine
            assert (await served.client.get("/metrics", headers=foreign)).status_code == 401
        statuses = {
            name: (
                await served.client.get("/metrics", headers={"authorization": f"Bearer {text_of(name)}"})
            ).status_code
            for name in ("most", "whole")
        }
        assert statuses == {"most": 403, "whole": 200}
        assert (await served.client.get("/livez")).status_code == 200


async def test_without_keys_metrics_are_this_machines(served: Served) -> None:
    assert (await served.client.get("/metrics")).status_code == 200
    refused = await served.client.get("/metrics", headers={"host": "evil.example"})
    assert refused.json()["code"] == "host_refused"
