"""``prefold up --check-config``: what the stack itself needs, and what each of its processes says of its settings."""

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from prefold.config.checking import check_folder
from prefold.errors import ConfigurationError
from prefold.stack.parts import RoleCommand, environment_of_parts, role_command, roles_of
from prefold.stack.redis_server import find_redis_server
from prefold.stack.settings import StackSettings

__all__ = ["check_parts"]

_WITHIN_SECONDS = 60.0


def check_parts(settings: StackSettings, command: RoleCommand = role_command) -> None:
    """``ConfigurationError`` with what is wrong: the folder, no Redis program, or a process's own complaint.

    Starts nothing that serves, and does not mind a stack that runs on the folder. Takes a second or two.
    """
    check_folder(settings.data_dir, "PREFOLD_DATA_DIR")
    if settings.redis_url is None or settings.queue_url is None:
        find_redis_server()
    roles = dict.fromkeys((*_servers(settings), *roles_of(settings)))
    with ThreadPoolExecutor(2) as threads:
        complaints = [told for told in threads.map(lambda role: _complaint(role, settings, command), roles) if told]
    if complaints:
        raise ConfigurationError("; ".join(dict.fromkeys(complaints)))


def _servers(settings: StackSettings) -> Iterator[str]:
    yield "gateway"
    if settings.qdrant_url is None:
        yield "vectors"


def _complaint(role: str, settings: StackSettings, command: RoleCommand) -> str:
    """What the process says is wrong; empty: nothing."""
    environment = {**os.environ, **environment_of_parts(settings)}
    done = subprocess.run(
        [*command(role), "--check-config"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_WITHIN_SECONDS,
        check=False,
    )
    if done.returncode == 0:
        return ""
    said = done.stderr.strip().splitlines() or [f"prefold {role}: exit code {done.returncode}"]
    return said[-1].partition(": ")[2] or said[-1]
