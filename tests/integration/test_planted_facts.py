"""What a user states once, early, is in every context that is served later, whatever the summarizer writes.

All of it, with the table of figures (about ten minutes of one core):
``PREFOLD_SEED=1 pytest -m long tests/integration/test_planted_facts.py -s -p no:randomly``
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

import pytest

from prefold.compaction.build import SessionBuilder
from prefold.compaction.engine import Summarizer
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.compaction.reading.turns import TurnCache
from prefold.storage import Sessions, connect_sessions
from tests.support.compaction import new_cache
from tests.support.planted.dropping import DroppingSummarizer
from tests.support.planted.serving import COUNTER, is_shown, is_shown_as_current, serve
from tests.support.planted.talks import talk_with
from tests.support.planted.wordings import HELD_OUT, KNOWN, Planted
from tests.support.seeds import seed_of_run, tell

Engine = Callable[[TurnCache], Summarizer]
ENGINES: dict[str, Engine] = {
    "dropping": lambda _: DroppingSummarizer(),
    "extractive": lambda cache: ExtractiveSummarizer(cache, COUNTER),
}
SETS = {"known": KNOWN, "held out": HELD_OUT}
LOOKS = (1, 3, 10, 30)
_SEED = 1
"""Of the short form; the long one takes ``PREFOLD_SEED``."""


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


@dataclass
class Table:
    """How many of the planted statements were in the context, by kind and number of swaps."""

    asked: Counter[tuple[str, int]] = field(default_factory=Counter)
    shown: Counter[tuple[str, int]] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    told_as_current: list[str] = field(default_factory=list)
    over_limit: int = 0

    def add(self, planted: Planted, swaps: int, text: str) -> None:
        for kind in (planted.kind, "all"):
            self.asked[kind, swaps] += 1
            self.shown[kind, swaps] += is_shown(planted, text)
        if not is_shown(planted, text):
            self.lost.append(f"{swaps}: {planted.shown}")
        if is_shown_as_current(planted, text):
            self.told_as_current.append(f"{swaps}: {planted.gone}")

    def share(self) -> float:
        kinds = [key for key in self.asked if key[0] == "all"]
        return sum(self.shown[key] for key in kinds) / sum(self.asked[key] for key in kinds)

    def rows(self, looks: Sequence[int]) -> list[str]:
        kinds = sorted({kind for kind, _ in self.asked}, key=lambda kind: (kind == "all", kind))
        return [
            f"| {kind} | "
            + " | ".join(f"{self.shown[kind, look]} of {self.asked[kind, look]}" for look in looks)
            + " |"
            for kind in kinds
        ]


async def measured(
    sessions: Sessions, engine: Engine, planted: Sequence[Planted], *, talks: int, each: int, limit: int, looks: Sequence[int], seed: int
) -> Table:  # fmt: skip
    """``talks`` conversations with ``each`` statements of the set, by turns."""
    table = Table()
    for number in range(talks):
        own = [planted[(number * each + at) % len(planted)] for at in range(each)]
        cache = new_cache()
        builder = SessionBuilder(sessions, engine(cache), cache, COUNTER)
        served = await serve(sessions, builder, f"talk-{number}", talk_with(own, seed + number), limit, looks)
        table.over_limit += served.over_limit
        for swaps, text in served.texts.items():
            for one in own:
                table.add(one, swaps, text)
    return table


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_was_stated_early_is_in_the_context_after_three_swaps(sessions: Sessions, engine: str) -> None:
    table = await measured(sessions, ENGINES[engine], KNOWN, talks=2, each=25, limit=6000, looks=(1, 3), seed=_SEED)
    assert table.lost == []
    assert table.told_as_current == []
    assert table.over_limit == 0
    assert table.asked["all", 3] == 50


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("each", "limit"), [(5, 8000), (50, 16_000)])
@pytest.mark.parametrize("which", SETS)
@pytest.mark.parametrize("engine", ENGINES)
async def test_it_is_there_after_thirty_swaps(
    sessions: Sessions, engine: str, which: str, each: int, limit: int
) -> None:
    seed = seed_of_run("the planted statements")
    table = await measured(
        sessions, ENGINES[engine], SETS[which], talks=10, each=each, limit=limit, looks=LOOKS, seed=seed
    )
    tell(f"\n{engine}, {which}, {each} in each of 10 conversations, limit {limit}: {table.share():.4f}")
    for line in (*table.rows(LOOKS), *table.lost, *table.told_as_current):
        tell(line)
    assert table.over_limit == 0
    assert table.asked["all", 30] == 10 * each
    if which == "known":
        assert table.told_as_current == []
        assert table.share() >= (1.0 if engine == "dropping" else 0.98)
