"""The supervisor with real Redis servers and stand-ins for the roles."""

import importlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from redis import Redis
from redis.exceptions import RedisError

from prefold.config.flags import load_settings
from prefold.errors import ConfigurationError, UnavailableError
from prefold.serving import listening
from prefold.stack import places, supervisor
from prefold.stack.embedded import EmbeddedStack, temporary_stack, temporary_stack_async
from prefold.stack.parts import role_command
from prefold.stack.places import free_port
from prefold.stack.settings import StackSettings
from tests.support.processes import is_running
from tests.support.redis import RunningRedis
from tests.support.waiting import wait_until

STUB = Path(__file__).resolve().parent.parent / "support" / "stub_role.py"
PARTS = {
    "redis sessions",
    "redis queue",
    "vectors",
    "gateway",
    "dispatcher",
    "worker embed",
    "worker compact",
    "worker memory",
}


def stub(role: str) -> list[str]:
    return [sys.executable, str(STUB), *role.split()]


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("PREFOLD_"):
            monkeypatch.delenv(name)


@pytest.fixture
def reports() -> list[str]:
    return []


@pytest.fixture
def make_stack(tmp_path: Path, reports: list[str]) -> Iterator[Callable[..., EmbeddedStack]]:
    made: list[EmbeddedStack] = []

    def make(**settings: object) -> EmbeddedStack:
        fields: dict[str, object] = {"data_dir": tmp_path / "data", "port": 0} | settings
        stack = EmbeddedStack(StackSettings(**fields), report=reports.append, command=stub)  # type: ignore[arg-type]
        made.append(stack)
        return stack

    yield make
    for stack in made:
        stack.stop()


def test_all_parts_run_and_answer_once_it_is_started(make_stack: Callable[..., EmbeddedStack]) -> None:
    with make_stack() as stack:
        assert set(stack.pids()) == PARTS
        assert httpx.get(stack.gateway_url).status_code == 200
        for url in (stack.redis_url, stack.queue_url):
            with Redis.from_url(url) as client:
                assert client.ping()


def test_a_stop_leaves_no_process_no_socket_and_no_lock(make_stack: Callable[..., EmbeddedStack]) -> None:
    with make_stack() as stack:
        pids = stack.pids()
        sockets = stack.folder.sockets
    assert [name for name, pid in pids.items() if is_running(pid)] == []
    assert not sockets.exists()
    with make_stack() as again:
        assert set(again.pids()) == PARTS


def test_stopping_twice_and_before_the_start_is_legal(make_stack: Callable[..., EmbeddedStack]) -> None:
    stack = make_stack()
    stack.stop()
    stack.stop()


def test_the_session_server_is_as_promised_and_the_queue_keeps_nothing(
    make_stack: Callable[..., EmbeddedStack],
) -> None:
    with make_stack() as stack, Redis.from_url(stack.redis_url) as sessions, Redis.from_url(stack.queue_url) as queue:
        promised = {
            "appendonly": "yes",
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
            "save": "",
            "port": "0",
            "lazyfree-lazy-server-del": "yes",
            "lazyfree-lazy-expire": "yes",
            "lazyfree-lazy-user-del": "yes",
            "stream-node-max-bytes": "8192",
        }
        assert sessions.config_get(*promised) == promised
        assert queue.config_get("appendonly", "save") == {"appendonly": "no", "save": ""}


def test_a_second_start_finds_the_data_of_the_first(make_stack: Callable[..., EmbeddedStack]) -> None:
    with make_stack() as stack, Redis.from_url(stack.redis_url) as client:
        client.set("turn", "kept")
    with make_stack() as stack, Redis.from_url(stack.redis_url) as client:
        assert client.get("turn") == b"kept"


def test_a_second_stack_on_the_same_folder_is_refused_at_once(
    make_stack: Callable[..., EmbeddedStack], tmp_path: Path
) -> None:
    with make_stack():
        asked_at = time.monotonic()
        with pytest.raises(
            ConfigurationError, match=f"in use by another Prefold \\(process {os.getpid()}\\)"
        ) as refusal:
            make_stack()
        assert time.monotonic() - asked_at < 1
    assert refusal.value.field == "PREFOLD_DATA_DIR"


def test_a_taken_port_is_refused_and_the_folder_given_free(make_stack: Callable[..., EmbeddedStack]) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with pytest.raises(ConfigurationError) as refusal:
            make_stack(port=listener.getsockname()[1])
    assert refusal.value.field == "PREFOLD_PORT"
    with make_stack() as stack:
        assert stack.pids()


def test_a_port_that_was_chosen_is_given_to_nobody_else_before_it_is_listened_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(places, "_PORTS", range(20_000, 20_100))
    chosen = [free_port("127.0.0.1") for _ in range(40)]
    assert len(set(chosen)) == 40
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", chosen[0]))
    with listening("127.0.0.1", chosen[0]) as listener:
        assert listener.getsockname()[1] == chosen[0]


def test_a_part_that_dies_is_started_again_and_that_is_said(
    make_stack: Callable[..., EmbeddedStack], reports: list[str]
) -> None:
    with make_stack() as stack:
        killed = stack.pids()["gateway"]
        os.kill(killed, signal.SIGKILL)
        wait_until("the gateway runs again", lambda: stack.pids().get("gateway", killed) != killed)
        wait_until("it answers", lambda: _answers(stack.gateway_url))
    assert [report.partition(";")[0] for report in reports] == ["gateway ended (SIGKILL)"]


def test_a_redis_that_dies_comes_back_with_its_data(make_stack: Callable[..., EmbeddedStack]) -> None:
    with make_stack() as stack, Redis.from_url(stack.redis_url) as client:
        client.set("turn", "kept")
        os.kill(stack.pids()["redis sessions"], signal.SIGKILL)
        wait_until("it has gone", lambda: "redis sessions" not in stack.pids())
        wait_until("it answers", lambda: _pings(stack.redis_url))
        assert client.get("turn") == b"kept"


def test_a_part_that_dies_again_and_again_is_started_ever_later_but_never_given_up(
    make_stack: Callable[..., EmbeddedStack], reports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(supervisor, "_LONGEST_PAUSE_SECONDS", 0.4)
    monkeypatch.setattr(supervisor, "_LOOK_EVERY_SECONDS", 0.02)
    with make_stack() as stack:
        killed = 0

        def another() -> int:
            pid = stack.pids().get("dispatcher", killed)
            return 0 if pid == killed else pid

        for deaths in range(1, 5):
            killed = wait_until("the dispatcher runs", another)
            os.kill(killed, signal.SIGKILL)
            wait_until("its end is said", lambda deaths=deaths: len(reports) == deaths)  # type: ignore[misc]
        wait_until("the dispatcher runs", another)
    pauses = [float(report.partition("again in ")[2].partition(" s")[0]) for report in reports]
    assert pauses == [0.1, 0.2, 0.4, 0.4]


def test_a_part_that_ran_well_for_a_while_is_started_again_at_once(
    make_stack: Callable[..., EmbeddedStack], reports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(supervisor, "_STABLE_AFTER_SECONDS", 0.5)
    monkeypatch.setattr(supervisor, "_LOOK_EVERY_SECONDS", 0.02)
    with make_stack() as stack:
        killed = 0

        def another() -> int:
            pid = stack.pids().get("dispatcher", killed)
            return 0 if pid == killed else pid

        for runs_for in (0.0, 0.0, 0.6):
            killed = wait_until("the dispatcher runs", another)
            until = time.monotonic() + runs_for
            wait_until("it has run for a while", lambda until=until: time.monotonic() > until)  # type: ignore[misc]
            os.kill(killed, signal.SIGKILL)
        wait_until("its end is said", lambda: len(reports) == 3)
    pauses = [float(report.partition("again in ")[2].partition(" s")[0]) for report in reports]
    assert pauses[-1] == 0.1


def test_a_part_that_cannot_start_is_an_error_with_its_last_words_and_nothing_is_left(
    make_stack: Callable[..., EmbeddedStack], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_VECTORS", "broken")
    stack = make_stack()
    with pytest.raises(
        UnavailableError, match=r"vectors ended at its start \(exit code 1\):\n.*\n  cannot work like this"
    ):
        stack.start()
    assert stack.pids() == {}


def test_parts_that_do_not_listen_to_the_request_are_killed_in_time(
    make_stack: Callable[..., EmbeddedStack], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_GATEWAY", "deaf")
    monkeypatch.setenv("STUB_VECTORS", "deaf")
    stack = make_stack()
    stack.start()
    pids = stack.pids()
    asked_at = time.monotonic()
    stack.stop()
    assert time.monotonic() - asked_at < 5
    assert [name for name, pid in pids.items() if is_running(pid)] == []


def test_a_start_can_be_interrupted(make_stack: Callable[..., EmbeddedStack], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_VECTORS", "mute")
    stack = make_stack()
    interrupted = threading.Event()
    started = threading.Thread(target=lambda: results.append(stack.start(interrupted)))
    results: list[bool] = []
    started.start()
    wait_until("it waits for the vectors", lambda: "vectors" in stack.pids())
    interrupted.set()
    started.join(10)
    assert results == [False]
    assert stack.pids() == {}


def test_an_address_replaces_the_embedded_part(
    make_stack: Callable[..., EmbeddedStack], redis_server: RunningRedis, queue_server: RunningRedis
) -> None:
    replaced = {"redis_url": redis_server.url, "queue_url": queue_server.url, "qdrant_url": "http://127.0.0.1:9"}
    with make_stack(**replaced) as stack:
        assert set(stack.pids()) == PARTS - {"redis sessions", "redis queue", "vectors"}
        assert {name: getattr(stack, name) for name in replaced} == replaced
        environment = _environment_of(stack.pids()["dispatcher"])
    assert {name: environment[f"PREFOLD_{name.upper()}"] for name in replaced} == replaced


def test_one_address_replaces_one_part_only(
    make_stack: Callable[..., EmbeddedStack], redis_server: RunningRedis
) -> None:
    with make_stack(redis_url=redis_server.url) as stack:
        assert set(stack.pids()) == PARTS - {"redis sessions"}


def test_more_workers_are_more_processes(make_stack: Callable[..., EmbeddedStack]) -> None:
    with make_stack(embed_workers=2, compact_workers=0, memory_workers=2) as stack:
        pids = stack.pids()
        assert set(pids) == PARTS - {"worker compact"} | {"worker embed 2", "worker memory 2"}
        yields = {name: os.getpriority(os.PRIO_PROCESS, pid) for name, pid in pids.items()}
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    assert {name for name in pids if yields[name] != ours} == {"worker memory", "worker memory 2"}
    assert yields["worker memory"] == min(19, ours + 10)


def test_settings_reach_the_processes_and_the_environment_adds_what_the_stack_does_not_know(
    make_stack: Callable[..., EmbeddedStack], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFOLD_EMBED_BATCH_TURNS", "7")
    monkeypatch.setenv("PREFOLD_REDIS_MAX_CONNECTIONS", "9")
    with make_stack(summarizer_model="a-model") as stack:
        environment = _environment_of(stack.pids()["worker compact"])
    assert environment["PREFOLD_SUMMARIZER_MODEL"] == "a-model"
    assert environment["PREFOLD_EMBED_BATCH_TURNS"] == "7"
    assert environment["PREFOLD_REDIS_MAX_CONNECTIONS"] == "9"


def test_a_log_that_is_too_long_begins_anew_and_keeps_one_older(
    make_stack: Callable[..., EmbeddedStack], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "LOG_LIMIT_BYTES", 10)
    with make_stack() as stack:
        log = stack.folder.logs / "dispatcher.log"
        older = stack.folder.logs / "dispatcher.log.1"
        wait_until("the log has moved", lambda: older.exists() and log.stat().st_size <= 10)
    assert older.read_text() == "dispatcher starts\n"


def test_a_temporary_stack_is_gone_with_its_data_and_takes_no_address_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PREFOLD_REDIS_URL", "redis://127.0.0.1:1")
    monkeypatch.setenv("PREFOLD_API_KEYS_FILE", "/no/such/file")
    with temporary_stack(command=stub) as stack:
        folder = stack.folder.path
        environment = _environment_of(stack.pids()["gateway"])
        assert environment["PREFOLD_REDIS_URL"] == stack.redis_url != "redis://127.0.0.1:1"
        assert "PREFOLD_API_KEYS_FILE" not in environment
        assert environment["PREFOLD_DURABILITY"] == "fast"
    assert not folder.exists()


def test_only_the_gateway_is_given_the_secret_of_the_keys(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    with temporary_stack(command=stub, api_keys_secret_file=secret, audit_file=tmp_path / "audit") as stack:
        given = {name: _environment_of(pid) for name, pid in stack.pids().items()}
    assert given.pop("gateway")["PREFOLD_API_KEYS_SECRET_FILE"] == str(secret)
    assert [name for name, one in given.items() if "PREFOLD_API_KEYS_SECRET_FILE" in one] == []


async def test_a_temporary_stack_serves_an_event_loop_too() -> None:
    async with temporary_stack_async(command=stub) as stack:
        pids = stack.pids()
        async with httpx.AsyncClient() as client:
            assert (await client.get(stack.gateway_url)).status_code == 200
    assert [name for name, pid in pids.items() if is_running(pid)] == []


def test_a_role_names_itself_in_its_command_line() -> None:
    assert " ".join(role_command("worker embed")).endswith("/prefold worker embed")


def _environment_of(pid: int) -> dict[str, str]:
    entries = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.HTTPError:
        return False


def _pings(url: str) -> bool:
    try:
        with Redis.from_url(url, socket_connect_timeout=1, retry=None) as client:
            return bool(client.ping())
    except RedisError:
        return False


def test_the_embedded_vector_store_has_a_new_key_at_each_start_and_its_users_know_it(
    make_stack: Callable[..., EmbeddedStack], tmp_path: Path
) -> None:
    with make_stack() as stack:
        known = {
            _environment_of(pid).get("PREFOLD_QDRANT_API_KEY")
            for name, pid in stack.pids().items()
            if "redis" not in name
        }
    assert known == {stack.qdrant_api_key}
    key = stack.qdrant_api_key or ""
    assert len(key) >= 32
    assert key not in repr(stack.plan)
    assert make_stack(data_dir=tmp_path / "other").qdrant_api_key != stack.qdrant_api_key


def test_a_configured_key_is_used_and_a_server_of_yours_gets_none_made_up(
    make_stack: Callable[..., EmbeddedStack], tmp_path: Path
) -> None:
    assert make_stack(qdrant_api_key="mine").qdrant_api_key == "mine"
    assert make_stack(qdrant_url="http://127.0.0.1:9", data_dir=tmp_path / "other").qdrant_api_key is None


def test_a_summarizer_without_its_key_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="ANTHROPIC_API_KEY: PREFOLD_SUMMARIZER=anthropic needs a key"):
        load_settings(StackSettings, ["--summarizer", "anthropic"], prog="prefold up")


@pytest.mark.parametrize("role", ["up", "worker compact"])
@pytest.mark.parametrize("variable", ["PREFOLD_PRICES_FILE", "PREFOLD_SUMMARIZER_BUDGETS_FILE"])
def test_what_a_summarizer_cannot_start_with_is_refused_at_once_by_name(
    role: str, variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "odd.json").write_text("{", "utf-8")
    monkeypatch.setenv("PREFOLD_SUMMARIZER", "anthropic")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    monkeypatch.setenv(variable, str(tmp_path / "odd.json"))
    entry = importlib.import_module("prefold.stack.main" if role == "up" else "prefold.worker.main").main
    with pytest.raises(ConfigurationError, match=variable):
        entry([*role.split()[1:], "--check-config"])


def test_a_worker_that_embeds_needs_no_key_of_a_summarizer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PREFOLD_SUMMARIZER", "anthropic")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(SystemExit):
        importlib.import_module("prefold.worker.main").main(["embed", "--check-config"])
    assert "PREFOLD_SUMMARIZER=anthropic" in capsys.readouterr().out
