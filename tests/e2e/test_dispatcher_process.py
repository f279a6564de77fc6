"""``prefold dispatcher`` as a process: stopped, killed, and with its servers away."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest
from redis import Redis

from prefold.jobs import EMBED_QUEUE, hint_queue, queue_connection
from prefold.storage.keys import PartitionKeys, SessionKeys
from tests.support.redis import running_redis
from tests.support.waiting import wait_until
from tests.support.worker_jobs import COMMAND, environment, role_process


@pytest.fixture
def store(redis_url: str) -> Iterator[Redis]:
    with Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture
def queue(queue_url: str) -> Iterator[Redis]:
    with queue_connection(queue_url) as client:
        yield client


def publish(store: Redis, session: str) -> None:
    """A turn's event, as the append script writes it."""
    keys = SessionKeys.of("acme", session)
    store.xadd(keys.events, {"turns": f"{keys.label}:life 1 1 0"})


def is_ready(store: Redis) -> bool:
    return bool(store.exists(PartitionKeys.of(255).events))


def jobs(queue: Redis) -> int:
    return int(hint_queue(EMBED_QUEUE, queue).count)


def test_a_dispatcher_stops_within_three_seconds_and_says_so(
    redis_url: str, queue_url: str, store: Redis, queue: Redis
) -> None:
    with role_process("dispatcher", **environment(queue_url, redis_url)) as process:
        wait_until("it reads", lambda: is_ready(store), timeout=30)
        publish(store, "s")
        wait_until("the job is there", lambda: jobs(queue) == 1)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    assert process.returncode == 0
    assert time.monotonic() - began < 3
    said = [json.loads(line)["event"] for line in log.splitlines()]
    assert (said[0], said[-1]) == ("dispatcher_started", "dispatcher_stopped")


def test_nothing_is_lost_when_it_is_killed_again_and_again(
    redis_url: str, queue_url: str, store: Redis, queue: Redis
) -> None:
    wanted = set()
    for life in range(3):
        with role_process("dispatcher", **environment(queue_url, redis_url)) as process:
            wait_until("it reads", lambda: is_ready(store), timeout=30)
            for number in range(50):
                wanted.add(f"s{life}-{number}")
                publish(store, f"s{life}-{number}")
            process.kill()
            process.wait()
    with role_process("dispatcher", **environment(queue_url, redis_url)):
        wait_until("every session has its job", lambda: wanted <= asked_for(queue), timeout=20)


def asked_for(queue: Redis) -> set[str]:
    return {row[1] for job in hint_queue(EMBED_QUEUE, queue).get_jobs() for row in job.args[0]}


def says_that_a_server_is_away(process: subprocess.Popen[bytes]) -> bool:
    assert process.stderr is not None
    return b"dispatcher_unavailable" in process.stderr.readline()


def test_it_starts_without_the_sessions_and_works_as_soon_as_they_are_there(queue_url: str, queue: Redis) -> None:
    with running_redis() as sessions:
        sessions.kill()
        with role_process("dispatcher", **environment(queue_url, sessions.url)) as process:
            wait_until("it says so", lambda: says_that_a_server_is_away(process))
            sessions.start()
            with Redis.from_url(sessions.url) as store:
                wait_until("it reads", lambda: is_ready(store))
                publish(store, "s")
            wait_until("the job is there", lambda: jobs(queue) == 1)


def test_it_starts_without_the_queue_and_works_as_soon_as_it_is_there(redis_url: str, store: Redis) -> None:
    with running_redis() as server:
        server.kill()
        with role_process("dispatcher", **environment(server.url, redis_url)) as process:
            wait_until("it reads", lambda: is_ready(store), timeout=30)
            publish(store, "s")
            wait_until("it says so", lambda: says_that_a_server_is_away(process))
            server.start()
            with queue_connection(server.url) as queue:
                wait_until("the job is there", lambda: jobs(queue) == 1)


@pytest.mark.parametrize("frozen", ["sessions", "queue"])
def test_a_server_that_hangs_does_not_keep_it_from_stopping(frozen: str) -> None:
    with (
        running_redis() as store_server,
        running_redis() as queue_server,
        role_process("dispatcher", **environment(queue_server.url, store_server.url)) as process,
        Redis.from_url(store_server.url) as store,
    ):
        wait_until("it reads", lambda: is_ready(store), timeout=30)
        hanging = store_server if frozen == "sessions" else queue_server
        publish(store, "s")
        hanging.freeze()
        try:
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            process.wait(10)
        finally:
            hanging.thaw()
    assert time.monotonic() - began < 5
    assert process.returncode == 0


def test_check_config_hides_passwords() -> None:
    done = subprocess.run(
        [*COMMAND, "dispatcher", "--check-config"],
        env=environment("redis://:secret@example.org:6380/0", "unix:///tmp/a.sock", dispatcher_name="d7"),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0
    assert "PREFOLD_DISPATCHER_NAME=d7" in done.stdout.splitlines()
    assert "secret" not in done.stdout


def test_a_setting_out_of_bounds_is_named() -> None:
    done = subprocess.run(
        [*COMMAND, "dispatcher", "--embed-batch-turns", "0"],
        env=environment("unix:///tmp/a.sock", "unix:///tmp/a.sock"),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert "PREFOLD_EMBED_BATCH_TURNS" in done.stderr
