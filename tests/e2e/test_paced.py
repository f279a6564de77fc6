"""Summaries are ready before they are needed: sessions that talk at a pace, and a model that takes its time.

    ./run test tests/e2e/test_paced.py -rP          20 sessions, with their figures
    ./run test-long tests/e2e/test_paced.py -rP     1,000 sessions twice, about twenty and thirty minutes
    ./run bench paced --help                        at other scales

Every process is real: both Redis servers, gateway, dispatcher, compact workers, and a stand-in for the Messages API
whose answers take 20 s in the median and 60 s in the 95th percentile, while no session comes from 0.7 of its limit to
the limit in less than 180 s. Both are scaled by the same factor; what the product does by its own clock (leases, pauses
after a failure, the time that a rate limit asks for) is not, so that a run gives it less room than the story would.
"""

from dataclasses import replace

import pytest

from bench.paced.plan import Scale
from bench.paced.report import told
from bench.paced.run import run
from tests.support.seeds import seed_of_run, tell

SHORT = Scale(
    sessions=20,
    time_factor=1 / 50,
    spread_seconds=50,
    workers=1,
    hard_limit=4_000,
    turn_tokens=(80, 160),
    slowest=1.1,
    swaps=(1.0, 0.0, 0.0),
)
LONG = Scale(sessions=1_000, time_factor=1 / 4, spread_seconds=2_160)
FAILING = replace(LONG, time_factor=1 / 2, spread_seconds=1_200, fail_share=0.2)
"""Milder, because what follows a failure is not scaled: its pauses would weigh four times as much."""


async def keep_their_promises(scale: Scale) -> None:
    outcome = await run(scale, seed_of_run("these paces, words and latencies"))
    tell(told(outcome))
    assert outcome.misses() == []
    assert outcome.builds.by_engine.get("anthropic", 0) > 0.8 * outcome.builds.made


@pytest.mark.timeout(90)
async def test_twenty_sessions_find_their_summary_ready_at_the_limit() -> None:
    await keep_their_promises(SHORT)


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_a_thousand_sessions_find_their_summary_ready_at_the_limit() -> None:
    await keep_their_promises(LONG)


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_a_thousand_sessions_find_it_ready_although_a_fifth_of_the_calls_fail() -> None:
    await keep_their_promises(FAILING)
