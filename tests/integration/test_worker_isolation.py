"""How a worker finds the session that kills or fails its jobs, on real servers."""

import threading
from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
from rq.timeouts import JobTimeoutException
from structlog.testing import capture_logs

from prefold.errors import ConfigurationError, InvalidInputError, TransientError, UnavailableError
from prefold.jobs import EMBED_JOB, queue_connection
from prefold.worker.runtime import HandedBackError, Runtime
from prefold.worker.settings import WorkerSettings
from prefold.worker.verdicts import Ended
from tests.support.isolation import Bench
from tests.support.storage import TENANT, turn

SAID = "my password is hunter2"


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    with capture_logs() as captured:
        yield captured


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def bench(redis_url: str, queue_url: str, stop: threading.Event) -> Iterator[Bench]:
    shared = Runtime(WorkerSettings(redis_url=redis_url), stop)
    with queue_connection(queue_url) as queue:
        yield Bench(shared, queue)
    shared.close()


def test_sessions_with_nothing_behind_them_run_together_and_leave_nothing(bench: Bench) -> None:
    refs = [bench.session(name) for name in "abc"]
    assert bench.run(*refs) == [["a", "b", "c"]]
    assert bench.queue.keys() == []


def test_after_a_crash_each_session_of_the_job_runs_alone(bench: Bench) -> None:
    refs = [bench.session(name) for name in "abc"]
    bench.kill_with("b")
    assert bench.killed_run(*refs) == [["a", "b", "c"]]
    assert bench.killed_run(*refs) == [["a"], ["b"]]
    assert bench.killed_run(*refs) == [["a"], ["c"], ["b"]]  # `c` need not wait any longer for what kills


def test_work_that_killed_three_workers_is_set_aside_and_the_job_goes_on_without_it(
    bench: Bench, logs: list[MutableMapping[str, Any]]
) -> None:
    refs = [bench.session(name) for name in "abc"]
    bench.kill_with("b")
    for _ in range(3):
        bench.killed_run(*refs)
    assert bench.set_aside() == []
    assert bench.run(*refs) == [["a", "c"]]
    (letter,) = bench.set_aside()
    assert (letter.kind, letter.tenant, letter.session, letter.incarnation) == (
        "embed",
        TENANT,
        "b",
        refs[1].incarnation,
    )
    assert (letter.reason, letter.starts, letter.from_seq, letter.to_seq) == ("worker_died", 3, 1, 1)
    assert 0 < letter.first_ms <= letter.at_ms
    assert "b" not in bench.due("embed")
    assert {"a", "c"} <= set(bench.due("embed"))
    assert [entry["session"] for entry in logs if entry["event"] == "work_set_aside"] == ["b"]


def test_what_is_set_aside_is_not_started_again_whatever_asks_for_it(bench: Bench) -> None:
    ref = bench.session("b")
    bench.kill_with("b")
    for _ in range(3):
        bench.killed_run(ref)
    assert [bench.run(ref) for _ in range(3)] == [[], [], []]
    bench.shared.run(bench.shared.sessions.append(TENANT, "b", [turn("user", "and more")]))
    assert bench.run(ref) == []
    assert bench.due("embed") == []


def test_a_new_life_of_a_session_is_not_held_to_what_the_old_one_did(bench: Bench) -> None:
    ref = bench.session("b")
    bench.kill_with("b")
    for _ in range(3):
        bench.killed_run(ref)
    bench.run(ref)
    bench.shared.run(bench.shared.sessions.erase(TENANT, "b"))
    reborn = bench.session("b", user="u")
    bench.kill_with()
    assert bench.run(reborn) == [["b"]]


def test_a_good_end_makes_up_for_the_crashes_before_it(bench: Bench) -> None:
    ref = bench.session("b")
    for _ in range(3):
        bench.kill_with("b")
        bench.killed_run(ref)
        bench.killed_run(ref)
        bench.kill_with()
        assert bench.run(ref) == [["b"]]
    assert bench.set_aside() == []


def test_three_permanent_errors_set_aside_with_the_reason_and_no_words(
    bench: Bench, logs: list[MutableMapping[str, Any]]
) -> None:
    ref, other = bench.session("b"), bench.session("a")

    def does(sessions: list[str]) -> None:
        if "b" in sessions:
            raise ValueError(SAID)

    bench.does = does
    assert bench.run(other, ref) == [["a", "b"], ["a"], ["b"]]  # whose fault it is shows at once
    assert bench.set_aside() == []
    assert bench.run(ref, other) == [["a"], ["b"]]
    (letter,) = bench.set_aside()
    assert (letter.session, letter.starts) == ("b", 3)
    assert letter.reason.startswith("ValueError in ")
    assert SAID not in str(logs) + str(letter)
    assert bench.due("embed") == ["a"]


def test_what_runs_alone_for_long_leaves_the_rest_to_others(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prefold.worker.isolation._ALONE_SECONDS", 0)
    refs = [bench.session(name) for name in "abc"]
    bench.kill_with("a")
    bench.killed_run(*refs)
    bench.kill_with()
    assert [bench.run(*refs) for _ in range(2)] == [[["a"]], [["a"]]]
    assert [bench.run(ref) for ref in refs[1:]] == [[["b"]], [["c"]]]


def test_errors_of_our_own_are_named_by_their_code(bench: Bench) -> None:
    ref = bench.session("b")

    def does(_sessions: list[str]) -> None:
        raise InvalidInputError("no", code="turn_conflict")

    bench.does = does
    for _ in range(3):
        bench.run(ref)
    assert [letter.reason for letter in bench.set_aside()] == ["turn_conflict"]


def test_what_a_job_says_of_single_sessions_counts_for_them_alone(bench: Bench) -> None:
    good, bad, busy = (bench.session(name) for name in ("good", "bad", "busy"))
    bench.kill_with("busy")
    bench.killed_run(busy, kind="compact")
    bench.does = lambda sessions: Ended({bad: "summary_empty"} if "bad" in sessions else {}, frozenset({busy}))
    for _ in range(3):
        bench.run(good, bad, busy, kind="compact")
    assert [(letter.session, letter.reason) for letter in bench.set_aside()] == [("bad", "summary_empty")]
    bench.kill_with("busy")
    bench.killed_run(busy, kind="compact")
    bench.killed_run(busy, kind="compact")
    bench.run(busy, kind="compact")
    assert [letter.starts for letter in bench.set_aside() if letter.session == "busy"] == [3]


@pytest.mark.parametrize("error", [UnavailableError("away"), HandedBackError("stops")])
def test_a_part_that_is_away_never_counts(bench: Bench, error: TransientError) -> None:
    ref = bench.session("b")

    def does(_sessions: list[str]) -> None:
        raise error

    bench.does = does
    for _ in range(10):
        with pytest.raises(TransientError):
            bench.run(ref)
    assert bench.queue.keys() == []
    bench.does = lambda _sessions: None
    assert bench.run(ref) == [["b"]]
    assert bench.set_aside() == []


def test_wrong_settings_never_count(bench: Bench) -> None:
    ref = bench.session("b")

    def does(_sessions: list[str]) -> None:
        raise ConfigurationError("no such summarizer")

    bench.does = does
    for _ in range(5):
        with pytest.raises(ConfigurationError):
            bench.run(ref)
    bench.does = lambda _sessions: None
    bench.run(ref)
    assert bench.set_aside() == []


def test_a_part_that_is_away_for_one_session_does_not_keep_the_others_from_running(bench: Bench) -> None:
    refs = [bench.session(name) for name in "abc"]
    bench.kill_with("a", "b", "c")
    bench.killed_run(*refs)

    def does(sessions: list[str]) -> None:
        if "a" in sessions:
            raise UnavailableError("away")

    bench.does = does
    with pytest.raises(UnavailableError):
        bench.run(*refs)
    assert bench.calls == [["a"], ["b"], ["c"]]


def test_a_job_that_takes_too_long_counts_and_ends(bench: Bench) -> None:
    ref, other = bench.session("b"), bench.session("a")

    def does(sessions: list[str]) -> None:
        if "b" in sessions:
            raise JobTimeoutException("too long")

    bench.does = does
    for _ in range(3):
        with pytest.raises(JobTimeoutException):
            bench.run(other, ref)
    assert bench.run(other, ref) == [["a"]]
    assert [(letter.session, letter.reason) for letter in bench.set_aside()] == [("b", "timeout")]


def test_starts_that_still_run_elsewhere_do_not_count(bench: Bench) -> None:
    ref = bench.session("b")
    bench.kill_with("b")
    for number in range(5):
        bench.killed_run(ref, job=f"other{number}")
        bench.queue.set(f"rq:execution:other{number}:run{number + 1}", 1, px=6_000)
    bench.kill_with()
    assert bench.run(ref) == [["b"]]
    assert bench.set_aside() == []


def test_a_start_whose_process_is_silent_counts_before_rq_gives_its_job_away(bench: Bench) -> None:
    refs = [bench.session(name) for name in "ab"]
    bench.kill_with("a", "b")
    bench.killed_run(*refs, job="other")
    bench.queue.set("rq:execution:other:run1", 1, px=2_000)
    bench.kill_with()
    assert bench.run(*refs) == [["a"], ["b"]]


def test_a_worker_that_is_told_to_stop_takes_its_start_back(bench: Bench) -> None:
    ref = bench.session("b")
    for _ in range(5):
        bench.let_go_while(ref)
    bench.kill_with()
    assert bench.run(ref) == [["b"]]
    assert bench.set_aside() == []


def test_a_stop_hands_the_job_back_though_nothing_failed(bench: Bench, stop: threading.Event) -> None:
    refs = [bench.session(name) for name in "ab"]
    bench.kill_with("a", "b")
    bench.killed_run(*refs)
    bench.does = lambda _sessions: stop.set()
    with pytest.raises(HandedBackError):
        bench.run(*refs)
    assert bench.calls == [["a"]]


def test_a_change_of_turns_gives_another_try(bench: Bench, logs: list[MutableMapping[str, Any]]) -> None:
    ref = bench.session("b")
    bench.kill_with("b")
    for _ in range(3):
        bench.killed_run(ref)
    bench.run(ref)
    bench.shared.run(bench.shared.sessions.rewind(TENANT, "b", 0))
    assert bench.due("embed") == ["b"]
    bench.kill_with()
    assert bench.run(ref) == [["b"]]
    assert bench.set_aside() == []
    assert "dead_letter_released" in [entry["event"] for entry in logs]


def test_another_prefold_gives_another_try(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ref, other = bench.session("b"), bench.session("a")
    bench.kill_with("b")
    for _ in range(3):
        bench.killed_run(ref)
    bench.run(ref)
    monkeypatch.setattr("prefold.worker.verdicts.running_version", lambda: "9.9.9")
    for _ in range(3):
        assert ["a", "b"] not in bench.killed_run(ref, other)  # alone from its first try on
    bench.run(ref, other)
    assert [letter.version for letter in bench.set_aside()] == ["9.9.9"]


def test_a_replay_gives_three_more_starts(bench: Bench) -> None:
    ref = bench.session("b")
    bench.kill_with("b")
    for _ in range(3):
        bench.killed_run(ref)
    bench.run(ref)
    (letter,) = bench.set_aside()
    bench.shared.run(bench.letters.release(letter))
    assert bench.due("embed") == ["b"]
    for _ in range(3):
        assert bench.killed_run(ref) == [["b"]]
    assert bench.run(ref) == []
    assert len(bench.set_aside()) == 1


def test_an_end_by_age_that_kills_is_put_off_and_never_given_up(bench: Bench) -> None:
    ref = bench.session("b")
    bench.shared.run(bench.shared.sessions.erase(TENANT, "b"))
    bench.kill_with("b")
    for _ in range(3):
        bench.killed_run(ref, kind="expire")
    assert bench.run(ref, kind="expire") == []
    assert [letter.kind for letter in bench.set_aside()] == ["expire"]
    assert bench.due("expire") == ["b"]
    in_an_hour = bench.shared.now_ms() + 3_600_000
    assert bench.shared.run(bench.shared.sessions.due_sets.due(in_an_hour, 10)) == []


def test_work_of_a_session_that_is_gone_is_not_kept(bench: Bench) -> None:
    ref = bench.session("b")
    bench.kill_with("b")
    for _ in range(3):
        bench.killed_run(ref)
    bench.shared.run(bench.shared.sessions.erase(TENANT, "b"))
    assert bench.run(ref) == []
    assert bench.set_aside() == []


def test_a_payload_that_cannot_be_read_is_the_jobs_own_affair(bench: Bench) -> None:
    seen: list[object] = []
    for arguments in (["no rows"], [[["acme"]]], [[["acme", "", "life"]]], []):
        bench.isolation.run(EMBED_JOB, arguments, lambda *given: seen.append(given), run="j:r")
    bench.isolation.run("tests.other_job", [1, 2], lambda *given: seen.append(given), run="j:r")
    assert len(seen) == 5
    assert bench.queue.keys() == []


def test_every_start_ends_by_itself(bench: Bench) -> None:
    ref = bench.session("b")
    bench.kill_with("b")
    bench.killed_run(ref)
    (key,) = bench.queue.keys()
    assert 0 < bench.queue.ttl(key) <= 86_400


def test_losing_the_queue_costs_three_more_starts_and_revives_nothing_that_is_set_aside(bench: Bench) -> None:
    dead, dying = bench.session("dead"), bench.session("dying")
    bench.kill_with("dead", "dying")
    for _ in range(3):
        bench.killed_run(dead)
    bench.run(dead)
    bench.killed_run(dying)
    bench.queue.flushall()
    assert bench.run(dead) == []
    for _ in range(3):
        bench.killed_run(dying)
    assert bench.run(dying) == []
    assert {letter.session for letter in bench.set_aside()} == {"dead", "dying"}
