"""Random histories through the real scripts on a real server, each step checked against a small oracle.

A failure prints the steps and Hypothesis's ``@reproduce_failure`` line, which repeats exactly this history. A run
begins from the seed in ``PREFOLD_SEED``, or from one that it prints.
"""

import asyncio
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.histories.machine import StorageMachine
from tests.property.histories.wire import Wire
from tests.property.histories.world import SMALL_STEPS
from tests.support.redis import IN_MEMORY, RunningRedis, running_redis

MUST_REACH = {
    *(f"append: {status}" for status in ("ok", "soft", "swapped", "degraded", "turn_conflict", "turn_rewound")),
    *("begin: ticket", "begin: not_due", "commit: standby", "commit: swapped", "commit: stale", "append swaps"),
    *("edit: changed", "edit: same", "edit: turn_shape", "remove: changed", "rewind: changed", "rewind: same"),
    *("fork: made", "fork: session_exists", "erased", "created again", "append: session_erased"),
    *("reply lost", "request lost", "between", "connections lost", "read: anthropic", "read: openai"),
}
MUST_REACH_IN_MANY = {
    *("begin: busy", "begin: backoff", "begin: no_cut", "head carries a turn", "calibrated"),
    *("commit: late", "commit: turn not carried", "commit: no_gain", "commit: of a former life"),
    *("round lost from view", "thinking holds a swap", "waited for another change", "ended by age", "crashed"),
    *("edit: done, nobody knows", "edit: left half done", "fork: made, nobody knows", "fork: the same again"),
    *("fork has a summary", "fork: then its source changed", "a summary fell back", "standby survived a change"),
    *("append: turn_removed", "edit: turn_removed", "edit: turn_rewound"),
}
"""Rare: a short run may miss one of them."""
PLAIN = (*IN_MEMORY, "--rdbcompression", "no")
"""What DUMP gives is then what is stored, byte for byte."""
WITH_LOG = (*PLAIN, "--appendonly", "yes", "--appendfsync", "always")


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as one:
        yield one


def bound_machine(
    server: RunningRedis, runner: asyncio.Runner, reached: Counter[str], wire: Wire, *, crashes: bool
) -> type[StorageMachine]:
    """The machine with the server and the loop of this test."""
    given = {"server": server, "runner": runner, "reached": reached, "wire": wire, "crashes": crashes}
    return type("BoundMachine", (StorageMachine,), given)


def histories(server: RunningRedis, runner: asyncio.Runner, examples: int, *, crashes: bool = False) -> Counter[str]:
    """So many, each of up to 30 steps; what they came through."""
    reached: Counter[str] = Counter()
    wire = Wire()
    number = int(os.environ.get("PREFOLD_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
    sys.stdout.write(f"PREFOLD_SEED={number}\n")
    with wire.installed(), SMALL_STEPS():
        run_state_machine_as_test(
            seed(number)(bound_machine(server, runner, reached, wire, crashes=crashes)),
            settings=settings(
                max_examples=examples,
                stateful_step_count=30,
                deadline=None,
                print_blob=True,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.generate, Phase.shrink),
            ),
        )
    sys.stdout.write(f"{examples} histories: {dict(sorted(reached.items()))}\n")
    return reached


def test_the_newest_user_turn_takes_the_place_of_one_that_a_build_carried(runner: asyncio.Runner) -> None:
    """In a long agent run the head carries the task; the next task must not be the one that is left out."""
    with running_redis(PLAIN) as server:
        machine = bound_machine(server, runner, Counter(), Wire(), crashes=False)()
        machine.set_limits(1500, 1, 0.4)
        machine.say_many([("user", 1), ("user", 1)])
        for words_of_user in (0, 8):
            if words_of_user:
                machine.build(20)
                machine.say("user", words_of_user)
            while not machine.state().deg:
                machine.answered_call(60)
                machine.everything_holds()
        assert machine.state().swaps == 1
        assert machine.reached["head carries a turn"]
        machine.teardown()


@pytest.mark.parametrize("text", [True, False])
def test_results_of_a_call_id_that_came_three_times_can_be_changed_and_removed(
    runner: asyncio.Runner, text: bool
) -> None:
    """The second result answers the third call of that name, not the second: so it must when it is said anew."""
    with running_redis(PLAIN) as server:
        machine = bound_machine(server, runner, Counter(), Wire(), crashes=False)()
        for _ in range(3):
            machine.call(["A"], 1, thinks=False)
        machine.answer(["A"], 1, text=False)
        machine.answer(["A"], 1, text=text)
        for seq in (4, 5):
            raw = machine.at.life.said[seq].raw
            new, mark = machine.author.reworded(raw, 8)
            machine.run(machine.backend.edit(machine.at, raw["id"], new, mark))
            machine.everything_holds()
            machine.run(machine.backend.remove(machine.at, raw["id"]))
            machine.everything_holds()
        assert (machine.reached["edit: changed"], machine.reached["remove: changed"]) == (2, 2)
        machine.teardown()


@pytest.mark.parametrize("what", ["edit", "remove", "rewind", "erase, create", "append"])
@pytest.mark.parametrize("dies", [True, False])
def test_a_fork_that_is_asked_for_again_is_no_older_than_its_answer(
    runner: asyncio.Runner, what: str, dies: bool
) -> None:
    """Published, and its maker heard nothing; its source changes; whoever asks for it then gets what the source is."""
    wire = Wire()
    with running_redis(PLAIN) as server, wire.installed(), SMALL_STEPS():
        machine = bound_machine(server, runner, Counter(), wire, crashes=False)()
        machine.say_many([("user", 1), ("assistant", 1), ("user", 1)])
        machine.lose(calls=2, how="reply lost", dies=True)
        machine.fork("f1", 2, whole=False)
        assert machine.reached["fork: made, nobody knows"]
        machine.everything_holds()
        machine.run(machine.meanwhile(machine.at, what, 1, 1))
        if what == "erase, create":
            machine.say_many([("user", 1), ("assistant", 1), ("user", 1)])
        machine.lose(calls=1, how="reply lost", dies=dies)
        machine.fork("f1", 2, whole=False)
        machine.everything_holds()
        machine.fork("f1", 2, whole=False)
        machine.everything_holds()
        machine.teardown()


@pytest.mark.timeout(600)
def test_200_histories_keep_every_promise(runner: asyncio.Runner) -> None:
    with running_redis(PLAIN) as server:
        reached = histories(server, runner, 200)
    assert {name for name in MUST_REACH if not reached[name]} == set(), "the histories are too tame"


@pytest.mark.long
@pytest.mark.timeout(4 * 3600)
def test_10000_histories_keep_every_promise(runner: asyncio.Runner) -> None:
    with running_redis(WITH_LOG) as server:
        reached = histories(server, runner, 10_000, crashes=True)
    expected = MUST_REACH | MUST_REACH_IN_MANY
    assert {name for name in expected if not reached[name]} == set(), "the histories are too tame"
