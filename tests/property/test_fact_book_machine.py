"""Random histories of a user's book on a real server, each step checked against a plain list of what was said.

A run begins from the seed in ``PREFOLD_SEED``, or from one that it prints.
"""

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.fact_book_world import FactBookMachine
from tests.support.redis import IN_MEMORY, RunningRedis, running_redis
from tests.support.seeds import seed_of_run, tell

MUST_REACH = {"learnt", "superseded", "refused", "corrected", "deleted", "dropped", "weakened", "restored", "erased"}


@pytest.fixture
def plain_server() -> Iterator[RunningRedis]:
    """What DUMP gives is what is stored, byte for byte."""
    with running_redis((*IN_MEMORY, "--rdbcompression", "no")) as server:
        yield server


def histories(server: RunningRedis, examples: int) -> set[str]:
    """So many, each of up to 20 steps; what they came through."""
    reached: set[str] = set()
    with asyncio.Runner() as runner:
        bound = type("Bound", (FactBookMachine,), {"server": server, "runner": runner, "reached": reached})
        run_state_machine_as_test(
            seed(seed_of_run("the histories"))(bound),
            settings=settings(
                max_examples=examples,
                stateful_step_count=20,
                deadline=None,
                print_blob=True,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.generate, Phase.shrink),
            ),
        )
    tell(f"{examples} histories came through {sorted(reached)}")
    return reached


def test_a_books_facts_follow_from_what_was_said_and_not_taken_back(plain_server: RunningRedis) -> None:
    histories(plain_server, 10)


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_so_they_do_in_many_histories_that_come_through_everything(plain_server: RunningRedis) -> None:
    assert histories(plain_server, 200) == MUST_REACH
