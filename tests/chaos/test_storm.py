"""Nothing acknowledged is lost or doubled, whatever process dies.

    ./run test tests/chaos/test_storm.py -rP          about a minute, with its figures
    ./run test-long tests/chaos/test_storm.py -rP     20,000 turns and 200 kills, about ten minutes
    PREFOLD_SEED=7 ./run test tests/chaos/test_storm.py     the storm of that seed once more

The whole stack of ``prefold up`` runs under its own supervisor, with a second gateway. Publishers use our own
client, and make a call again with the same ids until it is answered. Meanwhile gateways, dispatcher, workers,
both Redis servers and the vector store are killed with SIGKILL: alone, two at once, twice in a row before
they are up, in the middle of a rewrite. Readers check every context. Afterwards all that is owed must be done,
and every store is compared with what was published.
"""

import pytest

from tests.chaos.storm import Scale, storm
from tests.support.seeds import seed_of_run

SHORT = Scale(turns=600, sessions=24, kills=12, limits=(1_000, 1_500))
LONG = Scale(turns=20_000, sessions=200, kills=200, erasures=20)


@pytest.mark.timeout(240)
async def test_what_was_acknowledged_stays_whatever_is_killed() -> None:
    await storm(SHORT, seed_of_run("this storm"))


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_what_was_acknowledged_stays_through_two_hundred_kills() -> None:
    await storm(LONG, seed_of_run("this storm"))
