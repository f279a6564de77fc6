"""The fake Messages API as a process of its own, steered and watched over its control doors."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.support.sources import ROOT

HELLO = {"model": "claude-haiku-5-5", "max_tokens": 500, "messages": [{"role": "user", "content": "Hello."}]}
HEADERS = {"authorization": "Bearer sk-ant-test", "anthropic-version": "2026-10-21"}


@pytest.fixture(scope="module")
def server() -> Iterator[httpx2.Client]:
    command = [sys.executable, "-m", "tests.support.messages_api", "--port", "0", "--brain", "drops_facts"]
    command += ["--fail-share", "0.2", "--seed", "3", "--latency-median", "0.001", "--latency-p95", "0.002"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with httpx2.Client(base_url=url, headers=HEADERS, trust_env=False) as client:
            yield client
        process.terminate()
        assert process.wait(5) == 0


@pytest.fixture(autouse=True)
def cleared(server: httpx2.Client) -> None:
    steer(server, clear=True)


def steer(server: httpx2.Client, **wanted: Any) -> dict[str, Any]:
    reply = server.post("/_control", json=wanted)
    assert reply.status_code == 200, reply.text
    told: dict[str, Any] = reply.json()
    return told


def journal(server: httpx2.Client, **asked: Any) -> dict[str, Any]:
    told: dict[str, Any] = server.get("/_journal", params=asked).json()
    return told


def test_it_answers_as_it_was_told_to(server: httpx2.Client) -> None:
    steer(server, brain="error_sentence")
    reply = server.post("/v1/messages", json=HELLO)
    assert reply.json()["content"][-1]["text"].startswith("Error:")
    assert journal(server)["statuses"] == {"200": 1}


def test_faults_can_be_set_from_outside(server: httpx2.Client) -> None:
    told = steer(server, faults=[{"kind": "status", "status": 529}, {"kind": "reset"}, {"kind": "none"}])
    assert told["left"] == 3
    assert server.post("/v1/messages", json=HELLO).status_code == 529
    with pytest.raises(httpx2.TransportError):
        server.post("/v1/messages", json=HELLO)
    assert server.post("/v1/messages", json=HELLO).status_code == 200
    assert journal(server)["faults"] == {"status 529": 1, "reset": 1}


def test_a_share_of_the_calls_fails(server: httpx2.Client) -> None:
    share = {"share": 0.2, "seed": 3, "faults": [{"kind": "status", "status": 500}]}
    steer(server, fail_share=share)
    statuses = [server.post("/v1/messages", json=HELLO).status_code for _ in range(60)]
    assert 4 <= statuses.count(500) <= 24
    assert statuses.count(500) + statuses.count(200) == 60


def test_the_journal_shows_requests_without_their_key_and_a_verdict(server: httpx2.Client) -> None:
    server.post("/v1/messages", json={**HELLO, "messages": []})
    server.post("/v1/messages", json={**HELLO, "messages": []})
    told = journal(server, last=1, floor=0.1)
    assert told["last"][0]["json"] == {**HELLO, "messages": []}
    assert "sk-ant-test" not in str(told)
    assert len(told["verdict"]) == 1
    assert "repeats what got a 400" in told["verdict"][0]


def test_a_wrong_order_is_told_so(server: httpx2.Client) -> None:
    reply = server.post("/_control", json={"brian": "faithful"})
    assert (reply.status_code, reply.json()["error"]) == (400, "ValueError: unknown: brian")
    assert server.post("/_control", json={"faults": [{"kind": "status", "colour": 1}]}).status_code == 400
    assert server.post("/_control", json={"brain": "none such"}).status_code == 400
