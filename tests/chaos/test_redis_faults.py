"""What a gateway answers while its session store is ill, and that it recovers without anybody's help.

A real gateway, a real server and writers that repeat a turn until it is acknowledged. After each fault the log holds
every acknowledged turn once, in order.

./run test-long tests/chaos/test_redis_faults.py      frozen for 10 s
"""

import itertools
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from redis import Redis

from prefold.config.settings import Durability
from prefold.stack.redis_server import session_options
from tests.support.logged_roles import gateway_process
from tests.support.processes import is_running
from tests.support.redis import RunningRedis, running_redis
from tests.support.waiting import wait_until

WRITERS = 3
SETTINGS = {"request_timeout_ms": "1000", "store_check_ms": "200"}
NO_QUEUE = "redis://127.0.0.1:1/0"
UNBOUNDED = resource.RLIM_INFINITY
_sessions = itertools.count(1)


@dataclass
class Answered:
    """One answer to an append."""

    status: int
    code: str
    retry_after: str
    seconds: float


@dataclass
class Writer:
    """Publishes one turn after another, each until it is acknowledged."""

    url: str
    session: str
    answers: list[Answered] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        with httpx.Client(base_url=self.url, timeout=30) as client:
            for number in itertools.count():
                turn = {"id": f"t{number}", "role": "user", "content": f"{number}: where is my parcel?"}
                while not self.publish(client, turn):
                    time.sleep(0.05)
                if self.stop.is_set():
                    return

    def publish(self, client: httpx.Client, turn: dict[str, str]) -> bool:
        started = time.monotonic()
        answer = client.post(f"/v1/sessions/{self.session}/turns", json=turn)
        code = "" if answer.status_code == 201 else answer.json()["code"]
        retry_after = answer.headers.get("retry-after", "")
        self.answers.append(Answered(answer.status_code, code, retry_after, time.monotonic() - started))
        if answer.status_code == 201:
            self.acknowledged.append(turn["id"])
        return answer.status_code == 201


class Gateway:
    """A gateway process and the store behind it."""

    def __init__(self, url: str, store: RunningRedis, client: httpx.Client) -> None:
        self.url = url
        self.store = store
        self.client = client

    @contextmanager
    def written_to(self) -> Iterator[list[Writer]]:
        """Writers at work before, during and after what the test does; then the log is held against them."""
        writers = [Writer(self.url, f"s{next(_sessions)}") for _ in range(WRITERS)]
        threads = [threading.Thread(target=writer.run) for writer in writers]
        for thread in threads:
            thread.start()
        try:
            self.wait_for_more(writers)
            yield writers
            self.wait_for_more(writers)
        finally:
            for writer in writers:
                writer.stop.set()
            for thread in threads:
                thread.join(30)
        for writer in writers:
            log = self.log_of(writer.session)
            assert log == writer.acknowledged, "each acknowledged turn once, in order, and no other"

    def wait_for_more(self, writers: list[Writer]) -> None:
        """Each writer has got another three turns through."""
        before = [len(writer.acknowledged) for writer in writers]
        wait_until(
            "all writers get on",
            lambda: all(len(one.acknowledged) > then + 2 for one, then in zip(writers, before, strict=True)),
            timeout=30,
        )

    def log_of(self, session: str) -> list[str]:
        turns: list[str] = []
        while page := self.client.get(f"/v1/sessions/{session}/turns?after_seq={len(turns)}").json()["turns"]:
            turns += [turn["id"] for turn in page]
        return turns


def refusals(writers: list[Writer]) -> set[tuple[int, str, str]]:
    """What writers were told, but for acknowledgements."""
    found = (answer for writer in writers for answer in writer.answers if answer.status != 201)
    return {(answer.status, answer.code, answer.retry_after) for answer in found}


def until_refused(writers: list[Writer]) -> None:
    before = [len(refusals([writer])) for writer in writers]
    wait_until(
        "every writer is refused",
        lambda: all(len(refusals([one])) > then for one, then in zip(writers, before, strict=True)),
        timeout=20,
    )


@contextmanager
def running_gateway(folder: Path, durability: Durability) -> Iterator[Gateway]:
    """With a store as the embedded stack runs it."""
    with (
        running_redis(session_options(durability)) as store,
        gateway_process(folder, store.url, NO_QUEUE, durability=durability, **SETTINGS) as url,
        httpx.Client(base_url=url, timeout=30) as client,
    ):
        yield Gateway(url, store, client)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running_gateway(tmp_path_factory.mktemp("gateway"), "durable") as running:
        yield running


@pytest.mark.parametrize("seconds", [2.5, pytest.param(10.0, marks=pytest.mark.long)], ids=["short", "long"])
def test_a_frozen_store_gets_an_answer_in_time_and_turns_go_on_once_it_thaws(gateway: Gateway, seconds: float) -> None:
    with gateway.written_to() as writers:
        gateway.store.freeze()
        frozen = time.monotonic()
        try:
            until_refused(writers)
            assert gateway.client.get("/livez").status_code == 200
            assert gateway.client.get("/readyz").status_code == 503
            read = gateway.client.get(f"/v1/sessions/{writers[0].session}/context")
            assert (read.status_code, read.json()["code"], read.headers["retry-after"]) == (503, "timeout", "1")
            wait_until("the time is over", lambda: time.monotonic() - frozen > seconds, timeout=20)
        finally:
            gateway.store.thaw()
    assert refusals(writers) <= {(503, "timeout", "1"), (503, "unavailable", "1")}
    assert max(answer.seconds for writer in writers for answer in writer.answers) < 5, "1 s was the time for an answer"


def test_a_killed_store_is_ridden_through(gateway: Gateway) -> None:
    with gateway.written_to() as writers:
        gateway.store.kill()
        until_refused(writers)
        read = gateway.client.get(f"/v1/sessions/{writers[0].session}/context")
        assert (read.status_code, read.json()["code"], read.headers["retry-after"]) == (503, "unavailable", "1")
        gateway.store.start()
    assert refusals(writers) <= {(503, "timeout", "1"), (503, "unavailable", "1")}


def test_flushed_scripts_and_cut_connections_are_not_noticed(gateway: Gateway) -> None:
    with gateway.written_to() as writers, Redis.from_url(gateway.store.url) as admin:
        for _ in range(5):
            admin.script_flush("SYNC")
            gateway.wait_for_more(writers)
            admin.client_kill_filter(_type="normal", skipme=True)
            gateway.wait_for_more(writers)
    assert refusals(writers) == set()


def test_at_maxmemory_turns_are_refused_and_reads_and_erasures_go_on(gateway: Gateway) -> None:
    with Redis.from_url(gateway.store.url) as admin, gateway.written_to() as writers:
        gone = f"/v1/sessions/s{next(_sessions)}"
        assert gateway.client.post(f"{gone}/turns", json={"role": "user", "content": "hello"}).status_code == 201
        admin.config_set("maxmemory", 1)
        try:
            until_refused(writers)
            assert gateway.client.get(f"/v1/sessions/{writers[0].session}/context").status_code == 200
            wait_until("we refuse by ourselves", lambda: (503, "store_nearly_full", "5") in refusals(writers))
            assert gateway.client.post(f"{gone}/rewind", json={"to_seq": 0}).status_code == 200
            assert gateway.client.delete(gone).status_code == 200
        finally:
            admin.config_set("maxmemory", 0)
    assert refusals(writers) <= {(503, "store_nearly_full", "5"), (503, "store_full", "1")}


@contextmanager
def unwritable_log(store: RunningRedis) -> Iterator[None]:
    """The server's log cannot grow: what a full disk does."""
    assert store.process is not None
    (log,) = store.server.directory.glob("appendonlydir/*.incr.aof")
    resource.prlimit(store.process.pid, resource.RLIMIT_FSIZE, (log.stat().st_size + 100, UNBOUNDED))
    try:
        yield
    finally:
        if is_running(store.process.pid):
            resource.prlimit(store.process.pid, resource.RLIMIT_FSIZE, (UNBOUNDED, UNBOUNDED))


def test_a_durable_store_whose_log_cannot_be_written_stops_and_loses_no_acknowledged_turn(gateway: Gateway) -> None:
    with gateway.written_to() as writers:
        with unwritable_log(gateway.store):
            process = gateway.store.process
            assert process is not None
            wait_until("the server has given up", lambda: not is_running(process.pid))
            until_refused(writers)
        gateway.store.kill()
        gateway.store.start()
    assert refusals(writers) <= {(503, "timeout", "1"), (503, "unavailable", "1")}


def test_a_fast_store_whose_log_cannot_be_written_takes_no_turns_and_is_still_read(tmp_path: Path) -> None:
    with running_gateway(tmp_path, "fast") as gateway:
        with gateway.written_to() as writers, unwritable_log(gateway.store):
            until_refused(writers)
            session = f"/v1/sessions/{writers[0].session}"
            assert gateway.client.get(f"{session}/context").status_code == 200
            erased = gateway.client.delete(session)
            assert (erased.status_code, erased.json()["code"]) == (503, "store_cannot_write")
            assert erased.headers["retry-after"] == "1"
        assert refusals(writers) == {(503, "store_cannot_write", "1")}
