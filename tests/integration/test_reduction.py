"""What a swap leaves of a context, and what becomes of the builds: conversations played at a pace on a virtual clock.

./run bench reduction       all conversations of the development data, and its tables
"""

import pytest

from bench.paced.words import turns_of
from bench.reduction.engines import ENGINES
from bench.reduction.figures import summed
from bench.reduction.main import LONG_LIMIT, MOST_MEDIAN_SHARE, MOST_UNUSED, play_all
from bench.reduction.sources import Conversation, data_folder, read
from prefold.conversation import prepare_turn
from prefold.tokens import load_counter
from tests.support.seeds import seed_of_run, tell

SAMPLE = "beam-100k-6"


def woven(seed: int, tokens: int) -> Conversation:
    """A talk of that length from the sentences of the project's own sample."""
    counter, left = load_counter(), tokens
    turns = []
    for published in turns_of(str(seed), (40, 250)):
        turn = prepare_turn(published, 0, counter, lambda: "")
        left -= turn.tokens
        if left < 0:
            break
        turns.append(turn)
    return Conversation("woven", tuple(turns))


def conversation(seed: int) -> Conversation:
    folder = data_folder()
    return read(folder / f"{SAMPLE}.jsonl") if folder else woven(seed, 110_000)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("engine", ENGINES)
async def test_a_swap_leaves_three_tenths_and_few_builds_are_for_nothing(engine: str) -> None:
    seed = seed_of_run("these build times")
    talks = await play_all([conversation(seed)], LONG_LIMIT, seed=seed, engine=engine)
    total = summed(LONG_LIMIT, talks)
    tell(f"{engine}: {total.swaps} swaps, median {total.median:.1%}, p90 {total.p90:.1%}; {dict(total.engine)}")
    tell(f"builds: {total.builds}, unused {total.unused_share:.1%}")
    assert total.swaps >= 3
    assert total.crossings == total.ready
    assert total.median <= MOST_MEDIAN_SHARE + 0.02  # one talk of a few swaps; the bench holds the promise over many
    assert total.unused_share <= MOST_UNUSED
    assert total.over_limit == 0
