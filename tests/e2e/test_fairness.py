"""One tenant floods a real gateway at a hundred times the rate of twenty quiet ones: they hardly notice."""

import pytest

from bench.flood import Found, measure

_TRIES = 3


@pytest.mark.long
@pytest.mark.timeout(280)
def test_a_flood_leaves_the_p95_of_quiet_tenants_within_twice_their_baseline() -> None:
    """Other work of the machine only makes it worse, so the best of three tells. Without turns it is twenty times."""
    found = [measure(rounds=8, seconds=3.0)]
    while worst(found[-1]) > 2.0 and len(found) < _TRIES:
        found.append(measure(rounds=8, seconds=3.0))
    if min(map(worst, found)) > 2.0 and all(one.during.starved > one.during.worked / 2 for one in found):
        pytest.skip("the machine has other work: the gateway waited for a core for much of the time")
    assert min(map(worst, found)) <= 2.0


def worst(found: Found) -> float:
    return max(found.append, found.read)
