"""A deployment of real processes as an operator sees it: metrics, traces, status; and that none of it holds a word."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from redis import Redis

from prefold.deadletters.main import main as dead_letters
from prefold.status.main import main as status
from prefold.storage.keys import TenantKeys
from tests.support.observed import Observed, observed_deployment, until
from tests.support.otlp import SeenSpan

pytestmark = pytest.mark.timeout(240)

CANARY = re.compile(r"canar[a-z]*-?[a-z0-9-]*", re.IGNORECASE)
CALLER = "00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01"
LIMIT = 6_000
TURNS = 11
WORDS = "We have moved the parcel of order ZQ4711KX to the depot in Lyon, and the driver brings it on Monday at nine. "


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    """After one conversation that went over its limit, with a word that can be found in everything that was said."""
    with observed_deployment(tmp_path_factory.mktemp("observed"), "canary-api-key") as running:
        talk(running)
        yield running


def talk(town: Observed) -> None:
    client, path = town.client, "/v1/sessions/talk"
    opened = {
        "hard_limit_tokens": LIMIT,
        "soft_ratio": 0.4,
        "user": "ann",
        "system": "Say canary-system.",
        "tools": [{"name": "look", "description": "canary-tool", "input_schema": {"type": "object"}}],
        "metadata": {"note": "canary-metadata"},
    }
    done(client.put(path, json=opened))
    done(client.put(f"{path}/state", json={"goal": "canary-goal"}))
    for number in range(TURNS):
        role = "user" if number % 2 == 0 else "assistant"
        said = f"My name is canary-name-{number}. {WORDS * 28}"
        headers = {"traceparent": CALLER} if number == 0 else {}
        done(client.post(f"{path}/turns", json={"id": f"t{number}", "role": role, "content": said}, headers=headers))
        if number >= 5:
            until("a summary stands by, or none is wanted", lambda: is_ready(done(client.get(path))))
    until(
        "all turns are embedded",
        lambda: town.count("worker embed", "prefold_embedded_turns_total") >= TURNS,
        timeout=60,
    )
    ask(town)
    provoke(town)


def is_ready(session: dict[str, Any]) -> bool:
    """The next turn meets a standby if it meets the limit."""
    return bool(session["standby"]) or session["status"] == "ok"


def ask(town: Observed) -> None:
    client, path = town.client, "/v1/sessions/talk"
    for query in ({}, {"query": "canary-query where is the parcel?"}, {"format": "openai", "budget_tokens": "2000"}):
        done(client.get(f"{path}/context", params=query))
    done(client.post("/v1/search", json={"query": "canary-search parcel"}))
    done(client.post("/v1/users/ann/facts", json={"relation": "likes", "object": "canary-fact"}))
    done(client.get("/v1/users/ann/facts"))
    done(client.put(f"{path}/turns/t10", json={"role": "user", "content": "canary-edited"}))
    done(client.post(f"{path}/rewind", json={"to_seq": 10}))


def provoke(town: Observed) -> None:
    """Everything that is refused, and a published turn that can never be stored."""
    client, turns = town.client, "/v1/sessions/talk/turns"
    refused = [
        client.post(turns, json={"role": "user", "content": [{"type": "canary-block"}]}),
        client.post(turns, json={"role": "canary-role", "content": "canary-text"}),
        client.post(turns, json={"id": "t0", "role": "user", "content": "canary-other-content"}),
        client.post(turns, content=b'{"canary-broken', headers={"content-type": "application/json"}),
        client.post("/v1/search", json={"query": "canary-search", "canary-member": 1}),
        client.get("/v1/canary-path?canary-parameter=1"),
        httpx.get(f"{town.gateway_url}/v1/sessions/talk", headers={"authorization": "Bearer canary-wrong-key"}),
    ]
    assert {one.status_code for one in refused} <= {400, 401, 404, 409, 422}
    with Redis.from_url(town.redis_url) as redis:
        entry: Any = {
            "session": "talk",
            "turn": json.dumps({"id": "bad", "role": "canary-role", "content": "canary"}),
            "v": "1",
        }
        redis.xadd(TenantKeys.of("acme").ingest, entry)
    until(
        "the bad entry is counted",
        lambda: town.count("dispatcher", "prefold_ingested_turns_total", result="bad"),
        timeout=30,
    )


def done(answer: httpx.Response) -> Any:
    assert answer.is_success, f"{answer.status_code} {answer.text[:300]}"
    return answer.json()


def test_every_process_counts_what_it_did(town: Observed) -> None:
    assert town.total("prefold_append_turns_total", result="stored") == TURNS
    assert town.total("prefold_limit_crossings_total", standby="ready") >= 1
    assert town.total("prefold_swaps_total") >= 1
    assert town.total("prefold_over_limit_reads_total") == 0
    assert town.total("prefold_context_read_seconds_count", query="yes") == 1
    assert town.total("prefold_search_seconds_count") == 1
    assert town.total("prefold_builds_total", engine="anthropic", result="standby") >= 1
    assert town.total("prefold_build_seconds_count", engine="anthropic") >= 1
    for direction in ("input", "output"):
        assert town.total("prefold_build_tokens_total", engine="anthropic", direction=direction) > 0
    assert town.total("prefold_build_cost_usd_total") > 0
    assert town.total("prefold_model_call_seconds_count", result="ok") >= 1
    assert town.total("prefold_jobs_total", queue="embed", result="done") >= 1
    assert town.total("prefold_events_total") >= TURNS
    assert town.total("prefold_vectors_request_seconds_count") > 0
    assert {dict(labels)["role"] for one in town.metrics().values() for name, labels, _ in one.samples() if name == "prefold_process_info"} == {
        "gateway", "dispatcher", "vectors", "worker-embed", "worker-compact", "worker-memory",
    }  # fmt: skip


def test_a_dispatcher_tells_how_far_behind_the_work_is(town: Observed) -> None:
    until(
        "the letters are read", lambda: town.count("dispatcher", "prefold_dead_letters", kind="ingest") == 1, timeout=60
    )
    until("nothing is left to do", lambda: town.count("dispatcher", "prefold_events_pending") == 0, timeout=30)
    for queue in ("embed", "compact", "memory"):
        assert town.total("prefold_queue_workers", queue=queue) == 1


def test_a_probe_serves_its_own_process_and_nothing_else(town: Observed) -> None:
    for url in town.probes.values():
        assert httpx.get(f"{url}/livez").json()["status"] == "ok"
        assert httpx.get(f"{url}/readyz").json()["status"] == "ok"
        assert httpx.get(f"{url}/v1/sessions/talk").status_code == 404
        assert httpx.post(f"{url}/metrics").status_code == 405


def test_one_turn_is_followed_from_its_append_to_vectors_and_summary(town: Observed) -> None:
    def followed() -> dict[str, SeenSpan] | None:
        return chain(town)

    found = until("the spans of the first turn have arrived", followed, timeout=30)
    assert found is not None
    assert found["request"].trace == CALLER[3:35]
    assert (found["stored"].trace, found["stored"].id) in found["request"].links
    assert (found["request"].trace, found["request"].id) in found["stored"].links
    assert found["embed"].trace == found["dispatch"].trace == found["qdrant"].trace
    assert {one.service for one in found.values()} >= {"prefold-gateway", "prefold-dispatcher", "prefold-worker-embed"}
    builds = town.collector.spans("build", session="talk")
    roots = {(one.trace, one.id) for one in town.collector.spans("turns stored")}
    assert builds
    assert all(set(build.links) & roots for build in builds), "a build is linked to the newest turn it found"
    calls = [call for call in town.collector.spans("model call") if call.trace in {build.trace for build in builds}]
    assert calls
    assert {call.service for call in calls} == {"prefold-worker-compact"}


def chain(town: Observed) -> dict[str, SeenSpan] | None:
    """The first turn's way; None while a part of it has not arrived."""
    request = next(
        iter(town.collector.spans("POST /v1/sessions/{session}/turns", **{"http.response.status_code": 201})), None
    )
    first = town.collector.spans("turns stored", session="talk", last_seq=1)
    dispatches = [
        one
        for one in town.collector.spans("dispatch", kind="embed")
        if first and (first[0].trace, first[0].id) in one.links
    ]
    jobs = [one for one in town.collector.spans("job embed") if dispatches and one.trace == dispatches[0].trace]
    written = [one for one in town.collector.spans("qdrant PUT") if jobs and one.trace == jobs[0].trace]
    requests = [one for one in town.collector.spans() if one.trace == CALLER[3:35]]
    if not (request and first and dispatches and jobs and written and requests):
        return None
    return {
        "request": requests[0],
        "stored": first[0],
        "dispatch": dispatches[0],
        "embed": jobs[0],
        "qdrant": written[0],
    }


def test_status_tells_it_in_one_shot_and_by_its_exit_code(town: Observed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prefold.status.main.configure_logging", lambda *_: None)
    code, shown = town.command(status, "--json", "--gateway-url", town.probes["gateway"])
    told = json.loads(shown)
    assert code == 1
    assert told["troubles"] == ["1 pieces of work were set aside: prefold dead-letters lists them"]
    assert told["gateways"]["turns"] == TURNS
    assert (told["sessions"]["looked_at"], told["sessions"]["all"]) == (1, True)
    assert told["sessions"]["standby_ready_ratio"] == told["gateways"]["standby_ready_ratio"] == 1
    assert {name: state["workers"] for name, state in told["queues"].items()} == {"embed": 1, "compact": 1, "memory": 1}


def test_no_word_and_no_secret_is_in_anything_that_the_processes_write(
    town: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prefold.deadletters.main.configure_logging", lambda *_: None)
    assert town.command(dead_letters, "show")[0] == town.command(dead_letters, "list")[0] == 0
    until("spans have arrived", lambda: town.collector.spans("model call"), timeout=30)
    outputs = {
        **{f"log of {role}": text for role, text in town.logs().items()},
        **{f"metrics of {role}": one.text for role, one in town.metrics().items()},
        **{f"output {number}": text for number, text in enumerate(town.commands)},
        "traces": b"".join(town.collector.bodies).decode("latin-1"),
    }
    assert all(len(text) > 50 for text in outputs.values()), {name: len(text) for name, text in outputs.items()}
    assert any(re.search('"level": ?"debug"', text) for text in town.logs().values())
    found = {name: sorted(set(CANARY.findall(text))) for name, text in outputs.items() if CANARY.search(text)}
    assert found == {}
    assert not [name for name, text in outputs.items() if "ZQ4711KX" in text or "parcel" in text]
