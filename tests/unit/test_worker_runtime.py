"""The loop that jobs run on."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from prefold.errors import ConfigurationError, TransientError, UnavailableError
from prefold.worker import runtime as runtime_module
from prefold.worker.runtime import HandedBackError, Runtime, close_runtime, install, prepare, runtime
from prefold.worker.settings import WorkerSettings


class InterruptedJobError(Exception):
    """As the exception by which RQ ends a job that takes too long."""


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def shared(stop: threading.Event) -> Iterator[Runtime]:
    built = Runtime(WorkerSettings(worker_stop_seconds=0.2), stop)
    yield built
    built.close()


@pytest.fixture
def interrupt_soon() -> Iterator[threading.Timer]:
    def raise_it(*_: object) -> None:
        raise InterruptedJobError

    before = signal.signal(signal.SIGUSR1, raise_it)
    yield threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))
    signal.signal(signal.SIGUSR1, before)


def test_a_job_gets_what_its_coroutine_returns(shared: Runtime) -> None:
    async def work() -> str:
        return threading.current_thread().name

    assert shared.run(work()) == "jobs"


def test_a_job_gets_what_its_coroutine_raises(shared: Runtime) -> None:
    async def work() -> None:
        raise UnavailableError("away")

    with pytest.raises(UnavailableError):
        shared.run(work())


def test_a_timeout_inside_a_coroutine_is_the_coroutines(shared: Runtime) -> None:
    async def work() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        shared.run(work())


def test_all_jobs_run_on_one_loop(shared: Runtime) -> None:
    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    assert shared.run(loop()) is shared.run(loop())


def test_an_interrupted_job_has_ended_when_the_interruption_is_passed_on(
    shared: Runtime, interrupt_soon: threading.Timer
) -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.1)
            ended.append("cleaned up")

    interrupt_soon.start()
    with pytest.raises(InterruptedJobError):
        shared.run(work())
    assert ended == ["cleaned up"]


def test_the_loop_still_serves_after_an_interruption(shared: Runtime, interrupt_soon: threading.Timer) -> None:
    interrupt_soon.start()
    with pytest.raises(InterruptedJobError):
        shared.run(asyncio.sleep(60))
    assert shared.run(asyncio.sleep(0, "still here")) == "still here"


def test_a_job_that_goes_on_after_a_stop_is_handed_back_when_its_time_is_up(
    shared: Runtime, stop: threading.Event
) -> None:
    stop.set()
    with pytest.raises(HandedBackError) as caught:
        shared.run(asyncio.sleep(60))
    assert isinstance(caught.value, TransientError)


def test_a_job_that_ends_in_time_after_a_stop_is_not_disturbed(shared: Runtime, stop: threading.Event) -> None:
    stop.set()
    assert shared.run(asyncio.sleep(0.05, "done")) == "done"


def test_a_job_that_blocks_the_loop_for_ever_takes_the_process_with_it(
    shared: Runtime, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime_module, "_CANCEL_SECONDS", 0.2)
    asked: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    release = threading.Event()

    async def work() -> None:
        release.wait(30)

    try:
        stop.set()
        with pytest.raises(HandedBackError):
            shared.run(work())
        assert asked == [signal.SIGTERM]
    finally:
        release.set()
        signal.signal(signal.SIGTERM, before)


def test_a_closed_runtime_may_be_closed_again(shared: Runtime) -> None:
    shared.close()
    shared.close()


def test_closing_closes_what_was_built(shared: Runtime) -> None:
    assert shared.sessions is shared.sessions
    client = shared.sessions.client
    closed: list[bool] = []

    async def aclose() -> None:
        closed.append(True)

    client.aclose = aclose  # type: ignore[method-assign, assignment]
    shared.close()
    assert closed == [True]


def test_settling_waits_for_work_that_outlives_its_jobs(shared: Runtime) -> None:
    ended: list[str] = []

    async def settle() -> None:
        await asyncio.sleep(0)
        ended.append("settled")

    async def cancel() -> None:
        ended.append("cancelled")

    shared.outlives_jobs(settle, cancel)
    shared.settle()
    assert ended == ["settled"]
    shared.close()
    assert ended == ["settled", "cancelled"]


def test_work_that_outlives_the_time_of_a_stop_as_well_is_ended(shared: Runtime, stop: threading.Event) -> None:
    ended: list[str] = []

    async def settle() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("given back")

    async def cancel() -> None: ...

    shared.outlives_jobs(settle, cancel)
    stop.set()
    shared.settle()
    assert ended == ["given back"]


def test_a_process_that_is_no_worker_has_no_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_module, "_prepared", None)
    with pytest.raises(ConfigurationError):
        runtime()


def test_a_process_has_one_runtime_until_it_is_closed(stop: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_module, "_prepared", None)
    prepare(WorkerSettings(), stop)
    first = runtime()
    try:
        assert runtime() is first
    finally:
        close_runtime()
    close_runtime()
    second = runtime()
    try:
        assert second is not first
    finally:
        close_runtime()


def test_a_test_can_put_its_own_in(shared: Runtime) -> None:
    install(shared)
    assert runtime() is shared
    close_runtime()


def test_the_http_embedder_without_its_address_is_refused(stop: threading.Event) -> None:
    built = Runtime(WorkerSettings(embedder="http"), stop)
    try:
        with pytest.raises(ConfigurationError, match="PREFOLD_EMBEDDER_URL"):
            _ = built.embedder
    finally:
        built.close()


def test_the_counter_counts(shared: Runtime) -> None:
    assert shared.counter.count("one two three") == 3


def test_work_that_waits_for_its_own_loop_is_an_error_and_no_deadlock(shared: Runtime) -> None:
    async def work() -> None:
        shared.run(asyncio.sleep(0))

    with pytest.raises(RuntimeError, match="run\\(\\) waits for the loop"):
        shared.run(work())
