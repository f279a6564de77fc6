"""SIGTERM under load: intake stops within a second, what is in hand is finished or handed back, and the process ends."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from redis import Redis

from prefold.stack.places import free_port
from prefold.storage.keys import SessionKeys
from tests.e2e.test_stack import running
from tests.support.logged_roles import logged_role
from tests.support.processes import descendants, is_running
from tests.support.seeds import tell
from tests.support.vectors import running_vectors
from tests.support.waiting import wait_until

INTAKE_SECONDS = 1
STOP_SECONDS = 25


@contextmanager
def gateway(folder: Path, redis_url: str, queue_url: str) -> Iterator[tuple[str, int]]:
    # A port that nobody is given by chance once it is closed, or another would seem to let callers in.
    port = str(free_port("127.0.0.1"))
    with logged_role(folder, "gateway", redis_url, queue_url, port=port, durability="fast") as role:
        ready = wait_until("the gateway is ready", lambda: role.said("gateway_ready"), timeout=30)
        assert ready is not None
        yield str(ready["url"]), role.process.pid


@contextmanager
def vectors(folder: Path, _redis_url: str, _queue_url: str) -> Iterator[tuple[str, int]]:
    with running_vectors(folder, "--vectors-port", str(free_port("127.0.0.1"))) as store:
        assert store.process is not None
        yield store.url, store.process.pid


CALLS = {
    gateway: b'POST /v1/sessions/s/turns HTTP/1.1|{"id":"t1","role":"user","content":"hello"}',
    vectors: b"PUT /collections/c HTTP/1.1|" + b'{"vectors":{"size":4,"distance":"Cosine"}}',
}


@pytest.mark.parametrize("started", CALLS)
def test_a_server_that_is_told_to_stop_takes_no_more_callers_and_finishes_the_call_under_way(
    tmp_path: Path, redis_url: str, queue_url: str, started: Callable[..., Iterator[tuple[str, int]]]
) -> None:
    line, body = CALLS[started].split(b"|")  # type: ignore[index]
    head = line + b"\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    with started(tmp_path, redis_url, queue_url) as (url, pid):  # type: ignore[attr-defined]
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(head + body[:5])
            httpx.get(f"{url}/livez")  # what came before it has been read by then
            began = time.monotonic()
            os.kill(pid, signal.SIGTERM)
            wait_until("nobody is let in", lambda: _is_refused(host, int(port)), timeout=INTAKE_SECONDS)
            refused = time.monotonic() - began
            connection.sendall(body[5:])
            assert connection.recv(65536).split(b" ", 2)[1] in (b"200", b"201")
            wait_until("it ends", lambda: not is_running(pid), timeout=STOP_SECONDS)
        tell(f"{started.__name__}: closed after {refused:.2f} s, ended after {time.monotonic() - began:.2f} s")


def _is_refused(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return False
    except OSError:
        return True


PUBLISHERS = 4


def test_a_gateway_that_is_told_to_stop_under_load_keeps_all_that_it_acknowledged(
    tmp_path: Path, redis_url: str, queue_url: str
) -> None:
    acknowledged: list[tuple[str, str]] = []
    odd: list[str] = []
    with logged_role(tmp_path, "gateway", redis_url, queue_url, port="0", durability="fast") as role:
        url = str((wait_until("the gateway is ready", lambda: role.said("gateway_ready"), timeout=30) or {})["url"])
        publishers = [
            threading.Thread(target=_publish_to, args=(url, f"s{number}", acknowledged, odd))
            for number in range(PUBLISHERS)
        ]
        for one in publishers:
            one.start()
        wait_until("it is busy", lambda: len(acknowledged) > 100, timeout=30)
        began = time.monotonic()
        role.process.send_signal(signal.SIGTERM)
        assert role.process.wait(STOP_SECONDS) == 0
        tell(
            f"gateway under load: ended after {time.monotonic() - began:.2f} s, {len(acknowledged)} turns acknowledged"
        )
        for one in publishers:
            one.join()
        assert odd == []
        assert not [line for line in role.text().splitlines() if '"level": "error"' in line or "Traceback" in line]
    with Redis.from_url(redis_url) as client:
        for session in {session for session, _ in acknowledged}:
            entries = client.xrange(SessionKeys.of("default", session).turns)
            stored = [fields[b"r"].split(b"\n")[0].split(b" ")[-1].decode() for _, fields in entries]
            assert len(stored) == len(set(stored))
            assert {turn for owner, turn in acknowledged if owner == session} <= set(stored)


def _publish_to(url: str, session: str, acknowledged: list[tuple[str, str]], odd: list[str]) -> None:
    """Until nobody listens any more. A call that was taken is answered; one that was not is cut off before its answer."""
    with httpx.Client(base_url=url, timeout=10) as client:
        for number in range(20_000):
            turn = {"id": f"t{number}", "role": "user", "content": "The harbour is full of gulls."}
            try:
                answer = client.post(f"/v1/sessions/{session}/turns", json=turn)
            except (httpx.ConnectError, httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                return
            if answer.status_code != 201:
                odd.append(f"{answer.status_code} {answer.text[:200]}")
                return
            acknowledged.append((session, turn["id"]))


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_stack_that_is_told_to_stop_under_load_ends_in_time_and_does_the_rest_when_it_is_back(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    with running(tmp_path) as (process, url):
        everything = descendants(process.pid)
        publisher = threading.Thread(target=_publish, args=(url, acknowledged))
        publisher.start()
        wait_until("there is work in hand", lambda: len(acknowledged) > 100, timeout=60)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=STOP_SECONDS)
        tell(f"the stack under load ended after {time.monotonic() - began:.1f} s")
        publisher.join()
        assert process.returncode == 0
        assert not any(is_running(pid) for pid in everything)
    with running(tmp_path) as (_process, url):
        stored = [
            turn["id"]
            for session in range(8)
            for turn in httpx.get(f"{url}/v1/sessions/s{session}/turns?limit=500").raise_for_status().json()["turns"]
        ]
        assert set(acknowledged) <= set(stored)
        assert len(stored) == len(set(stored))
        wait_until("all is embedded", lambda: all(_is_embedded(url, f"s{n}") for n in range(8)), timeout=60)


def _publish(url: str, acknowledged: list[str]) -> None:
    """Until the gateway is gone; each session passes its soft threshold now and then."""
    with httpx.Client(base_url=url, timeout=5) as client:
        for session in range(8):
            client.put(f"/v1/sessions/s{session}", json={"hard_limit_tokens": 2_000})
        for number in range(3_900):
            turn = {"id": f"t{number}", "role": "user", "content": f"{number} " + "The harbour is full of gulls. " * 9}
            try:
                answer = client.post(f"/v1/sessions/s{number % 8}/turns", json=turn)
            except httpx.HTTPError:
                return
            if answer.status_code == 201:
                acknowledged.append(turn["id"])


def _is_embedded(url: str, session: str) -> bool:
    answer = httpx.get(f"{url}/v1/sessions/{session}").raise_for_status().json()
    return bool(answer["embedded_to"] >= answer["head_seq"])
