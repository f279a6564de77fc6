"""The gateway as a process: real sockets, real servers, the bounds of the wire, its end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from prefold.stack.redis_server import session_options
from tests.support.gateway_process import RunningGateway, running_gateway
from tests.support.redis import RunningRedis, running_redis
from tests.support.vectors import RunningVectors, python_environment, running_vectors
from tests.support.waiting import wait_until

TURN = {"id": "a", "role": "user", "content": "Where is my parcel?"}


@pytest.fixture(scope="module")
def store() -> Iterator[RunningRedis]:
    """As the embedded stack runs it."""
    with running_redis(session_options("durable")) as server:
        yield server


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path_factory.mktemp("vectors")) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(
    store: RunningRedis, vectors: RunningVectors, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RunningGateway, str]]:
    folder = tmp_path_factory.mktemp("gateway")
    flags = ("--redis-url", store.url, "--qdrant-url", vectors.url, "--body-timeout-ms", "500")
    with running_gateway(folder, *flags) as (running, url):
        wait_until("it takes turns", lambda: httpx.get(f"{url}/readyz").status_code == 200)
        yield running, url


def raw(url: str, request: bytes, *, then: bytes = b"") -> bytes:
    """What the server answers to these bytes until it closes the connection or is silent for long."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=12) as connection:
        connection.sendall(request)
        if then:
            connection.sendall(then)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received


def test_a_durable_store_is_named_as_such_and_turns_come_back(gateway: tuple[RunningGateway, str]) -> None:
    _, url = gateway
    answer = httpx.post(f"{url}/v1/sessions/p1/turns", json=TURN)
    assert (answer.status_code, answer.json()["durability"]) == (201, "durable")
    context = httpx.get(f"{url}/v1/sessions/p1/context")
    assert context.json()["messages"][0]["content"][0]["text"] == TURN["content"]
    assert "server" not in context.headers


def test_a_search_over_an_empty_store_of_vectors_finds_nothing(gateway: tuple[RunningGateway, str]) -> None:
    _, url = gateway
    answer = httpx.post(f"{url}/v1/search", json={"query": "parcel"}, timeout=20)
    assert (answer.status_code, answer.json()) == (200, {"results": []})


def test_a_fact_is_found_by_its_vector_until_its_user_is_erased(gateway: tuple[RunningGateway, str]) -> None:
    _, url = gateway
    facts = f"{url}/v1/users/p9/facts"

    def found() -> list[str]:
        answer = httpx.post(f"{url}/v1/search", json={"query": "Lisbon", "kinds": ["fact"], "user": "p9"}, timeout=20)
        return [one["text"].partition(" (said")[0] for one in answer.json()["results"]]

    def answers() -> bool:
        return httpx.post(f"{url}/v1/search", json={"query": "Lisbon"}, timeout=20).status_code == 200

    wait_until("the embedder is loaded, for which a write does not wait", answers, timeout=40)
    assert found() == []
    made = httpx.post(
        facts, json={"relation": "lives_in", "object": "Lisbon", "category": "location"}, timeout=20
    ).json()
    assert found() == ["User lives in Lisbon"]
    assert httpx.delete(f"{facts}/{made['id']}", timeout=20).json()["vectors_left"] == 0
    assert found() == []
    httpx.post(facts, json={"relation": "lives_in", "object": "Lisbon", "category": "location"}, timeout=20)
    receipt = httpx.delete(f"{url}/v1/users/p9", timeout=60).json()
    assert (receipt["facts"], receipt["facts_left"], receipt["vectors_left"]) == (1, 0, 0)
    assert found() == []


def test_listeners_do_not_hold_up_the_end_of_the_process(store: RunningRedis, tmp_path: Path) -> None:
    flags = ("--redis-url", store.url, "--qdrant-url", "http://127.0.0.1:9")
    with running_gateway(tmp_path, *flags) as (running, url):
        httpx.put(f"{url}/v1/sessions/e1", json={}, timeout=20)
        with httpx.stream("GET", f"{url}/v1/sessions/e1/events", timeout=20) as stream:
            pieces = stream.iter_raw()
            assert next(pieces).startswith(b"retry: ")
            running.process.send_signal(signal.SIGTERM)
            assert b"".join(pieces) == b""  # ended as an answer ends, not broken off
        assert running.process.wait(20) == 0
        assert not [event for event in running.events() if event.get("level") in ("error", "critical")], running.text()


def test_a_context_with_a_query_is_served_whatever_recall_does(gateway: tuple[RunningGateway, str]) -> None:
    _, url = gateway
    httpx.post(f"{url}/v1/sessions/p2/turns", json=TURN)
    answer = httpx.get(f"{url}/v1/sessions/p2/context?query=parcel")
    assert answer.status_code == 200
    assert answer.json()["recalled"] == []


def test_a_head_without_end_is_refused(gateway: tuple[RunningGateway, str]) -> None:
    _, url = gateway
    for head in (
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 200_000,
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: a\r\n" * 5000 + b"\r\n",
    ):
        answer = raw(url, head)
        assert answer.startswith(b"HTTP/1.1 431 ")
        assert b'"code":"head_too_large"' in answer


def test_what_is_no_http_gets_a_problem_too(gateway: tuple[RunningGateway, str]) -> None:
    _, url = gateway
    answer = raw(url, b"\x16\x03\x01 hello\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in answer


def test_a_body_that_does_not_arrive_ends_in_time(gateway: tuple[RunningGateway, str]) -> None:
    _, url = gateway
    head = (
        b"POST /v1/sessions/slow/turns HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\nConnection: close\r\n\r\n"
    )
    started = time.monotonic()
    answer = raw(url, head, then=b'{"role":')
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - started < 5
    assert httpx.get(f"{url}/v1/sessions/slow").status_code == 404


def test_a_body_in_chunks_without_end_is_refused(gateway: tuple[RunningGateway, str]) -> None:
    _, url = gateway
    head = (
        b"POST /v1/sessions/big/turns HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(head)
        for _ in range(80):
            try:
                connection.sendall(chunk)
            except OSError:
                break
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_the_log_never_holds_the_text_of_a_conversation(gateway: tuple[RunningGateway, str]) -> None:
    running, url = gateway
    secret = "my-very-secret-word"
    httpx.post(f"{url}/v1/sessions/p3/turns", json={"role": "user", "content": secret})
    httpx.post(f"{url}/v1/sessions/p3/turns", json={"role": "user", "content": [secret]})
    httpx.get(f"{url}/v1/sessions/p3/context?query={secret}")
    assert secret not in running.text()


def test_a_stop_lets_the_call_under_way_finish_and_ends_in_time(store: RunningRedis, tmp_path: Path) -> None:
    with running_gateway(tmp_path, "--redis-url", store.url) as (running, url):
        host, port = url.removeprefix("http://").split(":")
        body = json.dumps(TURN).encode()
        head = (
            f"POST /v1/sessions/stop/turns HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode()
        with socket.create_connection((host, int(port)), timeout=10) as connection, httpx.Client() as idle:
            idle.get(f"{url}/livez")
            connection.sendall(head + body[:10])
            wait_until("the call is under way", lambda: "in_flight 2" in httpx.get(f"{url}/metrics").text)
            started = time.monotonic()
            running.process.send_signal(signal.SIGTERM)
            connection.sendall(body[10:])
            assert connection.recv(65536).startswith(b"HTTP/1.1 201 ")
            assert running.process.wait(5) == 0
        assert time.monotonic() - started < 3


def test_a_stop_does_not_wait_for_ever_for_a_client(store: RunningRedis, tmp_path: Path) -> None:
    with running_gateway(tmp_path, "--redis-url", store.url) as (running, url):
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
            connection.sendall(b"Content-Length: 100\r\n\r\n{")
            wait_until("the call is under way", lambda: "in_flight 2" in httpx.get(f"{url}/metrics").text)
            started = time.monotonic()
            running.process.send_signal(signal.SIGINT)
            running.process.wait(8)
        assert time.monotonic() - started < 5


def test_other_machines_are_not_served_without_keys(store: RunningRedis, tmp_path: Path) -> None:
    refused = RunningGateway(tmp_path, "--redis-url", store.url, "--host", "0.0.0.0")
    assert refused.process.wait(20) == 2
    assert "PREFOLD_API_KEYS_FILE" in refused.text()
    refused.end()


def test_a_port_in_use_is_said(store: RunningRedis, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused = RunningGateway(tmp_path, "--redis-url", store.url, "--port", port)
        assert refused.process.wait(20) == 2
        assert "cannot listen on" in refused.text()
        refused.end()


def test_a_frozen_or_killed_store_is_answered_with_a_time_to_retry_and_recovers(tmp_path: Path) -> None:
    flags = ("--durability", "fast", "--request-timeout-ms", "500")
    with running_redis() as store, running_gateway(tmp_path, "--redis-url", store.url, *flags) as (_, url):
        turns = f"{url}/v1/sessions/f/turns"
        assert httpx.post(turns, json=TURN, timeout=20).status_code == 201
        store.freeze()
        started = time.monotonic()
        frozen = httpx.post(turns, json={**TURN, "id": "b"}, timeout=20)
        assert (frozen.status_code, frozen.headers["retry-after"]) == (503, "1")
        assert time.monotonic() - started < 3
        assert httpx.get(f"{url}/readyz", timeout=20).status_code == 503
        assert httpx.get(f"{url}/livez", timeout=20).status_code == 200
        store.thaw()
        again = httpx.post(turns, json={**TURN, "id": "b"}, timeout=20)
        assert again.status_code == 201
        assert [turn["id"] for turn in httpx.get(turns).json()["turns"]] == ["a", "b"]
        store.kill()
        assert httpx.get(turns, timeout=20).status_code == 503
        store.start()
        wait_until("it recovers", lambda: httpx.get(f"{url}/readyz", timeout=20).status_code == 200)
        assert httpx.post(turns, json=TURN, timeout=20).status_code == 201


def test_the_process_takes_its_settings_from_the_environment_too(store: RunningRedis, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "prefold.cli.main", "gateway", "--check-config"]
    environment = {**python_environment(), "PREFOLD_PORT": "7099", "PREFOLD_TURNS_PER_REQUEST": "7"}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=os.sep)
    assert "PREFOLD_PORT=7099" in answer.stdout
    assert "PREFOLD_TURNS_PER_REQUEST=7" in answer.stdout
