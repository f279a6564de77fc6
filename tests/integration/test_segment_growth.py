"""A conversation that grows turn by turn, built at the rhythm at which the storage asks for it: what the model reads."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
import structlog

from prefold.compaction.build import SessionBuilder
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.storage import Sessions, connect_sessions
from prefold.storage.types import SessionOptions
from prefold.tokens import load_counter
from tests.support.compaction import DATA, new_cache, small_talk
from tests.support.seeds import tell
from tests.support.segmenting import BrainMessages, segmented
from tests.support.storage import TENANT, append, turn

COUNTER = load_counter()


@dataclass
class Reading:
    """What was read when the conversation had so many tokens."""

    tokens: int
    source: int
    """Source turns, as sent."""
    merges: int
    instructions: int
    builds: int
    merged: int
    swaps: int

    @property
    def total(self) -> int:
        return self.source + self.merges + self.instructions


@dataclass
class Growth:
    """One session, its builder, and the model that counts."""

    sessions: Sessions
    messages: BrainMessages = field(default_factory=BrainMessages)
    builds: int = 0
    outcomes: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        cache = new_cache()
        engine = segmented(self.messages, self.sessions)
        fallback = ExtractiveSummarizer(cache, COUNTER)
        self.builder = SessionBuilder(self.sessions, engine, cache, COUNTER, fallback=fallback)

    async def grow(self, said: list[tuple[str, Any]], hard_limit: int, marks: list[int]) -> list[Reading]:
        """A reading at each of ``marks`` tokens, and at the end. Every turn may begin a build, as the dispatcher would."""
        await self.sessions.open(TENANT, "long", SessionOptions(hard_limit_tokens=hard_limit, soft_ratio=0.7))
        readings: list[Reading] = []
        tokens = swaps = 0
        for role, content in said:
            result = await append(self.sessions, turn(role, content), session="long")
            assert result.tokens <= hard_limit
            if result.status != "ok" or self.builds:
                await self._build(result.ref)
            swaps = result.swaps
            tokens = (await self.sessions.view(TENANT, "long")).log_tokens
            if len(readings) < len(marks) and tokens >= marks[len(readings)]:
                readings.append(self._reading(tokens, swaps))
        return [*readings, self._reading(tokens, swaps)]

    async def _build(self, ref: Any) -> None:
        outcome = await self.builder.build(ref)
        if outcome in ("standby", "swapped"):
            self.builds += 1
            view = await self.sessions.view(TENANT, "long")
            shown = view.standby or view.active
            assert shown is not None
            record = orjson.loads(shown.record)
            self.outcomes.add(record["engine"] + record.get("because", ""))

    def _reading(self, tokens: int, swaps: int) -> Reading:
        merge, segment = self.messages.of("merge"), self.messages.of("segment")
        texts = {True: 0, False: 0}
        for ask in self.messages.asked:
            shown = str(ask.messages[0]["content"]).split("\n\nThat was all of the data", 1)[0]
            texts[ask.purpose == "merge"] += COUNTER.count(shown)
        instructions = self.messages.sent_tokens - texts[True] - texts[False]
        assert len(merge) + len(segment) == len(self.messages.asked)
        return Reading(tokens, texts[False], texts[True], instructions, self.builds, len(merge), swaps)


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


def report(readings: list[Reading]) -> None:
    tell("tokens    read  per token  (source  merges  instructions)  builds  merges  swaps")
    for one in readings:
        shares = "  ".join(f"{part / one.tokens:.3f}" for part in (one.source, one.merges, one.instructions))
        tell(
            f"{one.tokens:>6} {one.total:>7}  {one.total / one.tokens:.3f}      ({shares})  "
            f"{one.builds}  {one.merged}  {one.swaps}"
        )


def said_in(name: str) -> list[tuple[str, Any]]:
    path = DATA / f"{name}.jsonl"
    if not path.exists():
        pytest.skip(f"no development data: {path} (set PREFOLD_DATA)")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [(line["role"], line["content"]) for line in lines]


def plain_talk(turns: int) -> list[tuple[str, Any]]:
    """Turns of about 130 tokens."""
    said = []
    for one in small_talk(1, turns):
        place = f"town{one.seq % 23}"
        text = (
            f"In {place} the harbour has a blue crane and a red one, and the ferry leaves at noon from pier {one.seq}. "
        )
        said.append((one.role, text * 5))
    return said


async def test_what_the_model_reads_grows_as_the_conversation(sessions: Sessions) -> None:
    with structlog.testing.capture_logs():
        growth = Growth(sessions)
        readings = await growth.grow(plain_talk(150), 6_000, [7_000, 14_000])
    report(readings)
    assert growth.outcomes == {"anthropic"}
    first, _, last = readings
    assert last.source <= 2 * last.tokens
    assert last.total / last.tokens <= 1.5 * first.total / first.tokens
    assert last.swaps >= 3


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("names", "marks"),
    [(["beam-100k-1"], [50_000, 100_000]), (["beam-500k-1", "beam-100k-4"], [50_000, 100_000, 250_000, 500_000])],
)
async def test_input_per_token_of_a_real_conversation_at_a_32k_limit(
    sessions: Sessions, names: list[str], marks: list[int]
) -> None:
    with structlog.testing.capture_logs():
        growth = Growth(sessions)
        readings = await growth.grow([one for name in names for one in said_in(name)], 32_000, marks)
    tell(" + ".join(names))
    report(readings)
    tell(f"{growth.outcomes}")
    ratios = [one.total / one.tokens for one in readings]
    assert max(one.source / one.tokens for one in readings) <= 2
    assert max(ratios) <= 1.5 * ratios[0]
    assert max(ratios) <= 2.5
