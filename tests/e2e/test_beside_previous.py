"""A rolling upgrade: processes of the commit before this one and ours, on one store and one queue at once."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.logged_roles import LoggedRole
from tests.support.previous import previous_tree, python_path
from tests.support.redis import running_redis
from tests.support.vectors import ROOT
from tests.support.waiting import wait_until
from tests.support.worker_jobs import COMMAND, environment

pytestmark = pytest.mark.timeout(120)

LIMIT_TOKENS = 1_000
TURNS = 44


@dataclass
class Upgrade:
    """Both versions' gateways; dispatchers and workers are started as a test wants them."""

    start: Callable[[str, str], LoggedRole]
    """Version and role to a running process."""
    gateways: tuple[httpx.Client, httpx.Client]


@pytest.fixture(scope="module")
def upgrade(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgrade]:
    trees = {"previous": previous_tree(tmp_path_factory.mktemp("previous")), "ours": ROOT}
    folder = tmp_path_factory.mktemp("logs")
    with ExitStack() as stack:
        store, queue = (stack.enter_context(running_redis()) for _ in range(2))

        def start(version: str, role: str) -> LoggedRole:
            given = environment(queue.url, store.url, log_format="json", port="0", durability="fast")
            given["PYTHONPATH"] = python_path(trees[version])
            given["PREFOLD_DISPATCHER_NAME"] = version
            log = folder / f"{version}-{role.replace(' ', '-')}.log"
            running = LoggedRole([*COMMAND, *role.split()], log, given)
            stack.callback(running.end)
            return running

        servers = [start(version, "gateway") for version in trees]
        urls = [_url(server) for server in servers]
        clients = [stack.enter_context(httpx.Client(base_url=url, timeout=20)) for url in urls]
        yield Upgrade(start, (clients[0], clients[1]))
        for version in trees:
            for path in folder.glob(f"{version}-*.log"):
                assert '"level":"critical"' not in path.read_text("utf-8").replace('": "', '":"'), path


def _url(gateway: LoggedRole) -> str:
    ready = wait_until("the gateway is ready", lambda: gateway.said("gateway_ready"), timeout=30)
    return str((ready or {})["url"])


def turn(session: str, number: int) -> dict[str, str]:
    role = "assistant" if number % 2 else "user"
    return {"id": f"t{number}", "role": role, "content": f"{session} {number}: " + "The parcel waits in Leipzig. " * 6}


def publish(upgrade: Upgrade, session: str, numbers: range) -> list[dict[str, Any]]:
    """Turn by turn, by one gateway and the other."""
    path = f"/v1/sessions/{session}"
    upgrade.gateways[len(session) % 2].put(path, json={"hard_limit_tokens": LIMIT_TOKENS}).raise_for_status()
    answers = []
    for number in numbers:
        answer = upgrade.gateways[number % 2].post(f"{path}/turns", json=turn(session, number))
        assert answer.status_code == 201, answer.text
        answers.append(answer.json())
    return answers


def read(gateway: httpx.Client, path: str) -> dict[str, Any]:
    return dict(gateway.get(path).raise_for_status().json())


def has_standby(upgrade: Upgrade, session: str) -> bool:
    return read(upgrade.gateways[1], f"/v1/sessions/{session}")["standby"] is not None


def to_soft(upgrade: Upgrade, session: str) -> int:
    """Publishes until the session wants a summary; the number of the next turn."""
    for number in range(TURNS):
        (answer,) = publish(upgrade, session, range(number, number + 1))
        if answer["context"]["status"] == "soft":
            return number + 1
    raise AssertionError("it never passed its soft threshold")


def swaps_of(answers: list[dict[str, Any]]) -> int:
    return int(answers[-1]["context"]["swaps"])


@pytest.mark.long
def test_sessions_go_on_over_both_versions_of_gateway_dispatcher_and_worker(upgrade: Upgrade) -> None:
    dispatchers = [upgrade.start(version, "dispatcher") for version in ("previous", "ours")]
    for one in dispatchers:
        wait_until("the dispatcher runs", one.has_started, timeout=30)
    older = upgrade.start("previous", "worker compact")
    at = to_soft(upgrade, "theirs")
    wait_until("the previous version's worker has a summary ready", lambda: has_standby(upgrade, "theirs"), timeout=40)
    newer = upgrade.start("ours", "worker compact")
    wait_until("our worker runs", newer.has_started, timeout=30)
    both = [f"both{number}" for number in range(3)]
    for session in both:
        to_soft(upgrade, session)
    wait_until("all have one", lambda: all(has_standby(upgrade, session) for session in both), timeout=40)
    older.process.send_signal(signal.SIGTERM)
    assert older.process.wait(30) == 0
    assert swaps_of(publish(upgrade, "theirs", range(at, TURNS))) >= 1, (
        "a standby of theirs did not come to the context"
    )
    at = to_soft(upgrade, "ours")
    wait_until("our worker has a summary ready", lambda: has_standby(upgrade, "ours"), timeout=40)
    assert swaps_of(publish(upgrade, "ours", range(at, TURNS))) >= 1
    assert newer.events("build_committed"), newer.text()[-2000:]
    assert older.events("build_committed"), older.text()[-2000:]
    for session in ("theirs", "ours"):
        check_whole(upgrade, session)


def check_whole(upgrade: Upgrade, session: str) -> None:
    """Every turn once and in order, the same to both gateways; and what one took the other knows."""
    path = f"/v1/sessions/{session}"
    for suffix in ("", "/turns?limit=500", "/context?format=anthropic"):

        def is_same(address: str = path + suffix) -> bool:  # sooner or later: a build may begin between two reads
            before, now = (read(gateway, address) for gateway in upgrade.gateways)
            return {name: value for name, value in now.items() if name in before} == before

        wait_until(f"both gateways tell the same of {path}{suffix}", is_same, timeout=10)
    stored = read(upgrade.gateways[1], f"{path}/turns?limit=500")["turns"]
    assert [one["id"] for one in stored] == [f"t{number}" for number in range(TURNS)]
    assert read(upgrade.gateways[1], f"{path}/context")["tokens"]["total"] <= LIMIT_TOKENS
    for gateway in upgrade.gateways:
        for number in (0, TURNS - 1):
            again = gateway.post(f"{path}/turns", json=turn(session, number)).json()["turns"][0]
            assert (again["seq"], again["duplicate"]) == (number + 1, True)


def test_turns_of_one_version_are_read_and_known_by_the_other(upgrade: Upgrade) -> None:
    publish(upgrade, "both", range(TURNS))
    check_whole(upgrade, "both")


def test_changes_and_an_erasure_of_one_version_hold_in_the_other(upgrade: Upgrade) -> None:
    first, second = upgrade.gateways
    path = "/v1/sessions/changed"
    publish(upgrade, "changed", range(6))
    first.put(f"{path}/turns/t5", json={"role": "assistant", "content": "Mended."}).raise_for_status()
    second.post(f"{path}/rewind", json={"to_seq": 4}).raise_for_status()
    assert [one["id"] for one in read(first, f"{path}/turns")["turns"]] == ["t0", "t1", "t2", "t3"]
    first.post(f"{path}/turns", json=turn("changed", 7)).raise_for_status()
    assert read(first, f"{path}/context")["messages"] == read(second, f"{path}/context")["messages"]
    first.delete(path).raise_for_status()
    assert second.get(path).status_code == 410
    assert second.post(f"{path}/turns", json=turn("changed", 8)).status_code == 410


def test_the_previous_version_is_really_another_tree(upgrade: Upgrade, tmp_path: Path) -> None:
    import subprocess
    import sys

    tree = previous_tree(tmp_path)
    code = "import prefold.gateway as one, prefold.storage as two; print(one.__file__, two.__file__)"
    env = {**environment("redis://127.0.0.1:1", "redis://127.0.0.1:1"), "PYTHONPATH": python_path(tree)}
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    assert all(Path(path).is_relative_to(tree) for path in said.split()), said
