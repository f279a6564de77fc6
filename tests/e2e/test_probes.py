"""``/livez`` and ``/readyz`` of the processes that serve nobody else: alive all along, ready while what they need is there."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import pytest

from prefold.stack.places import free_port
from tests.support.logged_roles import LoggedRole, logged_role
from tests.support.redis import RunningRedis, running_redis
from tests.support.vectors import running_vectors
from tests.support.waiting import wait_until

ROLES = ("dispatcher",)


@dataclass
class Town:
    """A dispatcher and a worker, each with its probe, and what they need."""

    store: RunningRedis
    queue: RunningRedis
    probes: dict[str, str]
    roles: dict[str, LoggedRole]

    def is_ready(self, role: str) -> bool:
        return httpx.get(f"{self.probes[role]}/readyz", timeout=5).status_code == 200

    def lacks_only(self, role: str, name: str) -> bool:
        """Of the checks this one alone is not ok."""
        checks = httpx.get(f"{self.probes[role]}/readyz", timeout=5).json()["checks"]
        return {one for one, state in checks.items() if state != "ok"} == {name}


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    folder = tmp_path_factory.mktemp("probes")
    with ExitStack() as stack:
        store, queue = (stack.enter_context(running_redis()) for _ in range(2))
        probes, roles = {}, {}
        for role in ROLES:
            port = str(free_port("127.0.0.1"))
            roles[role] = stack.enter_context(logged_role(folder, role, store.url, queue.url, probe_port=port))
            probes[role] = f"http://127.0.0.1:{port}"
        for role, process in roles.items():
            wait_until(f"the {role}'s probe answers", partial(process.said, "probe_ready"), timeout=30)
        found = Town(store, queue, probes, roles)
        for role in probes:
            wait_until(f"the {role} is ready", partial(found.is_ready, role), timeout=30)
        yield found


@pytest.mark.parametrize("part", ["sessions", "queue"])
def test_a_process_whose_store_is_away_says_so_lives_on_and_is_ready_again(town: Town, part: str) -> None:
    away = town.store if part == "sessions" else town.queue
    away.kill()
    for role in ROLES:
        wait_until(f"the {role} misses it", partial(town.lacks_only, role, part))
        assert httpx.get(f"{town.probes[role]}/livez", timeout=5).status_code == 200
    away.start()
    for role in ROLES:
        wait_until(f"the {role} is ready again", partial(town.is_ready, role), timeout=20)
        assert town.roles[role].process.poll() is None


def test_the_probe_of_each_has_the_metrics_too(town: Town) -> None:
    for role in ROLES:
        answer = httpx.get(f"{town.probes[role]}/metrics", timeout=5)
        assert answer.status_code == 200
        assert "# TYPE" in answer.text


def test_the_vector_store_tells_the_same_on_its_probe_and_on_its_own_port(tmp_path: Path) -> None:
    port = free_port("127.0.0.1")
    with running_vectors(tmp_path, "--probe-port", str(port)) as vectors:
        checks = httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).json()["checks"]
        assert checks == {"folder": "ok", "upkeep": "ok"}
        assert httpx.get(f"{vectors.url}/readyz", timeout=5).status_code == 200
        (tmp_path / "vectors").rename(tmp_path / "gone")
        try:
            assert httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 503
            answer = httpx.get(f"{vectors.url}/readyz", timeout=5)
            assert (answer.status_code, answer.text) == (503, "folder: No such file or directory")
            assert httpx.get(f"{vectors.url}/livez", timeout=5).status_code == 200
        finally:
            (tmp_path / "gone").rename(tmp_path / "vectors")
