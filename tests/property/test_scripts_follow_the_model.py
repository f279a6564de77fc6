"""The real scripts decide as the protocol's model does, in every state that random walks come through.

A failure names the walk: ``PREFOLD_SEED`` set to its number, one walk, repeats it.
"""

import asyncio
import os
import random
import sys
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from prefold.storage import connect_sessions
from tests.property.following.mutations import MUTATIONS, Mutation, mutated
from tests.property.following.walker import Walker
from tests.property.histories.machine import StorageMachine
from tests.property.histories.wire import Wire
from tests.property.histories.world import SMALL_STEPS, START_MS
from tests.support.redis import IN_MEMORY, RunningRedis, running_redis

STEPS = 50
MUST_REACH = {
    *("append u", "append c", "append r", "append l", "begin: ticket", "begin: not_due", "begin: no_cut"),
    *("commit: standby", "commit: swapped", "commit: stale", "edit", "remove", "rewind", "fork"),
    *("a change raised the epoch", "a change left the epoch alone", "a summary stayed", "renew: False"),
}
MUST_REACH_IN_MANY = {
    *("commit: no_gain", "begin: busy", "begin: gone", "renew: True", "a summary fell back", "fork with a summary"),
    *("a standby survived a change", "edit refused: turn_rewound", "edit refused: session_not_found"),
    *("fork refused: seq_ahead", *(f"append {kind}, swaps" for kind in "uacrl")),
}


async def walk(server: RunningRedis, wire: Wire, first: int, walks: int, reached: Counter[str]) -> None:
    async with connect_sessions(server.url) as sessions:
        for number in range(first, first + walks):
            server.flush()
            sessions.now_ms = START_MS
            try:
                await Walker(sessions, wire, number, reached).walk(STEPS)
            except Exception as error:
                error.add_note(f"PREFOLD_SEED={number}")
                raise


def walks(count: int) -> Counter[str]:
    """From a seed that is printed; what they came through."""
    first = int(os.environ.get("PREFOLD_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
    sys.stdout.write(f"PREFOLD_SEED={first}\n")
    reached: Counter[str] = Counter()
    wire = Wire()
    with running_redis(IN_MEMORY) as server, wire.installed(), SMALL_STEPS():
        asyncio.run(walk(server, wire, first, count, reached))
    sys.stdout.write(f"{count} walks: {dict(sorted(reached.items()))}\n")
    return reached


@pytest.mark.timeout(300)
def test_the_scripts_decide_as_the_model_does() -> None:
    reached = walks(24)
    assert {name for name in MUST_REACH if not reached[name]} == set(), "the walks are too tame"


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_scripts_decide_as_the_model_does_in_a_thousand_walks() -> None:
    reached = walks(1_000)
    expected = MUST_REACH | MUST_REACH_IN_MANY
    assert {name for name in expected if not reached[name]} == set(), "the walks are too tame"


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_a_script_without_one_guard_is_found_out(mutation: Mutation) -> None:
    found = by_walks(mutation) or by_histories(mutation)
    assert found, f"nothing notices that the scripts lack: {mutation}"
    sys.stdout.write(f"without '{mutation}': {found}\n")


def by_walks(mutation: Mutation) -> str:
    """How many walks it took, and what they saw; empty: nothing."""
    wire = Wire()
    with running_redis(IN_MEMORY) as server, wire.installed(), SMALL_STEPS(), mutated(mutation):
        for number in range(1, 121):
            try:
                asyncio.run(walk(server, wire, number, 1, Counter()))
            except Exception as error:  # noqa: BLE001 (whatever goes wrong is the finding)
                return f"{number} walks: {_first_line(error)}"
            finally:
                wire.disarm()
    return ""


def by_histories(mutation: Mutation) -> str:
    """The same with the histories of ``test_storage_machine``."""
    wire = Wire()
    with (
        running_redis(IN_MEMORY) as server,
        asyncio.Runner() as runner,
        wire.installed(),
        SMALL_STEPS(),
        mutated(mutation),
    ):
        given = {"server": server, "runner": runner, "reached": Counter(), "wire": wire, "crashes": False}
        machine = seed(1)(type("BoundMachine", (StorageMachine,), given))
        only = settings(
            max_examples=400,
            stateful_step_count=30,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate,),
        )
        try:
            run_state_machine_as_test(machine, settings=only)
        except Exception as error:  # noqa: BLE001 (whatever goes wrong is the finding)
            return f"histories: {_first_line(error)}"
    return ""


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
