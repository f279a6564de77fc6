"""One conversation at its pace: turns, builds that take their time, swaps."""

import math
import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

from bench.reduction.clock import VirtualClock
from bench.reduction.engines import MakeBuilder
from bench.reduction.figures import SwapSizes, TalkFigures
from bench.reduction.sources import Conversation
from prefold.compaction.engine import Summarizer, Summary, SummaryInput
from prefold.conversation.project import parse_lines
from prefold.errors import PrefoldError
from prefold.storage import Sessions
from prefold.storage.types import AppendResult, SessionOptions, SessionRef

TENANT = "bench"
START_MS = 1_800_000_000_000
LEASE = timedelta(hours=1)
"""Renewed by the machine's clock, so it must outlast any build of the virtual one."""
NEVER_BEGAN = frozenset({"not_due", "no_cut", "busy", "backoff", "gone"})


class SlowEngine:
    """Takes the clock's time as a model would."""

    def __init__(
        self, engine: Summarizer, clock: VirtualClock, seconds: Callable[[], float], outcomes: Counter[str]
    ) -> None:
        """``outcomes`` counts the engine's summaries, and the codes of its failures."""
        self._engine = engine
        self._clock = clock
        self._seconds = seconds
        self._outcomes = outcomes
        self.name = engine.name
        self.prompt_version = engine.prompt_version

    async def summarize(self, wanted: SummaryInput) -> Summary:
        try:
            summary = await self._engine.summarize(wanted)
        except PrefoldError as error:
            self._outcomes[error.code] += 1
            raise
        finally:
            await self._clock.sleep(self._seconds())
        self._outcomes[self.name] += 1
        return summary


class Talk:
    """Plays one conversation into one session."""

    def __init__(
        self,
        sessions: Sessions,
        make_builder: MakeBuilder,
        conversation: Conversation,
        hard_limit: int,
        *,
        tokens_per_second: float,
        seconds: Callable[[], float],
        soft_ratio: float | None = None,
    ) -> None:
        self._sessions = sessions
        self._clock = VirtualClock(self._set_time)
        self._conversation = conversation
        self._hard_limit = hard_limit
        self._pace = tokens_per_second
        self._soft_ratio = soft_ratio
        self._session = f"{conversation.name}-{hard_limit}"
        self._waits = False
        """A standby waits."""
        self._served = 0
        """Tokens of the context as it was served last."""
        self.figures = TalkFigures(conversation.name, conversation.tokens, len(conversation.turns), hard_limit)
        self._builder = make_builder(lambda engine: SlowEngine(engine, self._clock, seconds, self.figures.engine))

    def _set_time(self, now: float) -> None:
        self._sessions.now_ms = START_MS + int(now * 1000)

    async def play(self) -> TalkFigures:
        self._set_time(0)
        await self._sessions.open(
            TENANT, self._session, SessionOptions(hard_limit_tokens=self._hard_limit, soft_ratio=self._soft_ratio)
        )
        for turn in self._conversation.turns:
            await self._clock.advance(self._clock.now + turn.tokens / self._pace)
            result = await self._sessions.append(TENANT, self._session, [turn])
            await self._note(result)
            await self._clock.start(self._build(result.ref))
        await self._clock.finish()
        self.figures.builds.waiting += self._waits
        view = await self._sessions.view(TENANT, self._session)
        self.figures.crossings, self.figures.ready = view.limit_crossings, view.ready_crossings
        usage = view.usage
        self.figures.read_tokens = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        self.figures.written_tokens = usage.output_tokens
        return self.figures

    async def _note(self, result: AppendResult) -> None:
        self.figures.over_limit += result.tokens > result.hard_limit_tokens
        if result.swapped_now:
            self._waits = False
            self.figures.builds.used += 1
            await self._note_swap(result.tokens)
        self._served = result.tokens

    async def _note_swap(self, after: int) -> None:
        parts: Counter[str] = Counter()
        _, lines = parse_lines((await self._sessions.read_context(TENANT, self._session)).body)
        for line in lines:
            parts[line.part or "window"] += line.tokens
        self.figures.swaps.append(
            SwapSizes(self._served, after, dict(parts), len({line.seq for line in lines if line.seq}))
        )

    async def _build(self, ref: SessionRef) -> None:
        outcome = str(await self._builder.build(ref))
        builds = self.figures.builds
        if outcome == "standby":
            builds.replaced += self._waits
            self._waits = True
        elif outcome == "swapped":
            builds.replaced += self._waits
            self._waits = False
            builds.used += 1
            after = (await self._sessions.view(TENANT, self._session)).tokens
            await self._note_swap(after)
            self._served = after
        elif outcome not in NEVER_BEGAN:
            builds.failed[outcome] += 1


def log_normal(source: random.Random, median: float, p95: float) -> Callable[[], float]:
    """Draws of a log-normal distribution with this median and 95th percentile, in seconds."""
    sigma = math.log(p95 / median) / 1.6449
    return lambda: source.lognormvariate(math.log(median), sigma)
