"""How long a start takes: of everything on this machine, and of each role's imports."""

import statistics
import subprocess
import sys
import time

from bench.measure import Row
from prefold.stack.embedded import temporary_stack

_ROUNDS = 3
_ROLES = ("gateway", "dispatcher", "worker embed", "vectors", "up")


def startup_rows(rounds: int = _ROUNDS) -> list[Row]:
    """``prefold up`` until it is ready, and what each role imports before it tells its flags."""
    taken: dict[str, list[float]] = {name: [] for name in ("bare", "ready", *_ROLES)}
    for _ in range(rounds):
        taken["bare"].append(_run_ms("-c", "pass"))
        for role in _ROLES:
            taken[role].append(_run_ms("-m", "prefold.cli.main", *role.split(), "--help"))
        taken["ready"].append(_ready_ms())
    of = {name: statistics.median(values) for name, values in taken.items()}
    imports = [Row(f"prefold {role} --help", "a bare interpreter", "ms", of[role], of["bare"]) for role in _ROLES]
    return [Row("prefold up, until it is ready", "prefold gateway --help", "ms", of["ready"], of["gateway"]), *imports]


def _run_ms(*arguments: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return 1000 * (time.perf_counter() - start)


def _ready_ms() -> float:
    """Without the imports of ``up`` itself, which are done here already."""
    start = time.perf_counter()
    with temporary_stack(durability="fast"):
        return 1000 * (time.perf_counter() - start)
