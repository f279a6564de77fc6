"""``prefold worker`` as a process: killed, stopped, and with its queue away."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from redis import Redis

from prefold.jobs import EMBED_QUEUE, hint_queue, queue_connection
from tests.support import worker_jobs
from tests.support.redis import running_redis
from tests.support.waiting import wait_until
from tests.support.worker_jobs import enqueue, pids, worker_process


@pytest.fixture
def connection(queue_url: str) -> Iterator[Redis]:
    with queue_connection(queue_url) as client:
        yield client


def workers(connection: Redis) -> int:
    return int(connection.scard("rq:workers"))


def events(log: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.splitlines() if line.startswith(b"{")]


def stopped(process: subprocess.Popen[bytes], number: signal.Signals) -> tuple[float, list[dict[str, Any]]]:
    """Seconds from the signal to the end, and what the process logged."""
    began = time.monotonic()
    process.send_signal(number)
    _, log = process.communicate(timeout=30)
    return time.monotonic() - began, events(log)


def test_the_jobs_of_killed_workers_run_on_another_or_a_new_one_within_fifteen_seconds(queue_url: str) -> None:
    """On two queues' servers at once: both wait for the same six seconds."""
    with running_redis() as lonely, ExitStack() as living:
        both, alone = (living.enter_context(queue_connection(url)) for url in (queue_url, lonely.url))
        for url in (queue_url, queue_url):
            living.enter_context(worker_process(url))
        only = living.enter_context(worker_process(lonely.url))
        wait_until("all workers are there", lambda: (workers(both), workers(alone)) == (2, 1), timeout=30)
        enqueue(both, worker_jobs.hold, queue_url, 60)
        enqueue(alone, worker_jobs.hold, lonely.url, 60)
        (victim,) = wait_until("the one job runs", lambda: pids(both, "runs"))
        assert wait_until("the other job runs", lambda: pids(alone, "runs")) == [only.pid]
        began = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        only.kill()
        only.wait()
        new = living.enter_context(worker_process(lonely.url))
        ran = partial(pids, key="runs")
        wait_until("both run again", lambda: len(ran(both)) == len(ran(alone)) == 2, timeout=15)
        assert time.monotonic() - began < 15
        heir = ran(both)[1]
        assert heir != victim
        assert ran(alone)[1] == new.pid
        for connection in (both, alone):
            connection.rpush("go", "now")
        wait_until("they end", lambda: (pids(both, "ends"), pids(alone, "ends")) == ([heir], [new.pid]))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_worker_stops_within_three_seconds(queue_url: str, connection: Redis, number: signal.Signals) -> None:
    with worker_process(queue_url) as process:
        wait_until("the worker is there", lambda: workers(connection) == 1, timeout=30)
        seconds, log = stopped(process, number)
    assert process.returncode == 0
    assert seconds < 3
    assert log[-1]["event"] == "worker_stopped"
    assert workers(connection) == 0


def test_a_job_that_looks_at_the_stop_ends_in_order_and_the_next_one_stays_on_the_queue(
    queue_url: str, connection: Redis
) -> None:
    with worker_process(queue_url) as process:
        enqueue(connection, worker_jobs.hold_until_stop, queue_url)
        enqueue(connection, worker_jobs.note, queue_url)
        wait_until("the job runs", lambda: pids(connection, "runs"), timeout=30)
        seconds, _ = stopped(process, signal.SIGTERM)
    assert process.returncode == 0
    assert seconds < 3
    assert pids(connection, "ends") == [process.pid]
    assert hint_queue(EMBED_QUEUE, connection).count == 1


def test_a_job_that_does_not_look_at_the_stop_goes_back_to_the_queue(queue_url: str, connection: Redis) -> None:
    with worker_process(queue_url, worker_stop_seconds="0.5") as process:
        job_id = enqueue(connection, worker_jobs.hang_on_the_loop, queue_url)
        wait_until("the job runs", lambda: pids(connection, "runs"), timeout=30)
        seconds, log = stopped(process, signal.SIGTERM)
    assert process.returncode == 0
    assert seconds < 5
    assert hint_queue(EMBED_QUEUE, connection).get_job_ids() == [job_id]
    assert "the worker stops" in [entry.get("error") for entry in log]


def test_a_worker_outlives_an_outage_of_its_queue_at_start_and_later(queue_url: str) -> None:
    with running_redis() as server, queue_connection(server.url) as connection:
        server.kill()
        with worker_process(server.url) as process:
            said = iter(process.stderr or ())
            assert wait_until("it says so", lambda: b"queue_unavailable" in next(said))
            server.start()
            enqueue(connection, worker_jobs.note, server.url)
            wait_until("the job runs", lambda: pids(connection, "runs"))
            server.kill()
            assert wait_until("it says so again", lambda: b"queue_unavailable" in next(said))
            server.start()
            enqueue(connection, worker_jobs.note, server.url)
            wait_until("the job runs on the empty server", lambda: pids(connection, "runs") == [process.pid])


def test_a_worker_stops_while_its_queue_is_away() -> None:
    with running_redis() as server:
        with worker_process(server.url) as process, queue_connection(server.url) as connection:
            wait_until("the worker is there", lambda: workers(connection) == 1, timeout=30)
            server.kill()
            seconds, _ = stopped(process, signal.SIGTERM)
        assert process.returncode == 0
        assert seconds < 3
        server.start()


def test_check_config_prints_the_settings_and_leaves(queue_url: str) -> None:
    done = subprocess.run(
        [*worker_jobs.COMMAND, "worker", "embed", "--check-config", "--worker-stop-seconds", "7"],
        env=worker_jobs.environment(queue_url, queue_url),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0
    assert "PREFOLD_WORKER_STOP_SECONDS=7.0" in done.stdout.splitlines()


def test_a_queue_that_does_not_exist_is_refused(queue_url: str) -> None:
    done = subprocess.run(
        [*worker_jobs.COMMAND, "worker", "everything"],
        env=worker_jobs.environment(queue_url, queue_url),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert "everything" in done.stderr
