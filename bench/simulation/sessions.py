"""One session: the append script's arithmetic on tokens, without text and without Redis."""

import math
import random
from collections import deque

from bench.simulation.scenario import Scenario
from prefold.storage import limits

_PACE_SECONDS = limits.PACE_MEMORY.total_seconds()
_PACE_LEAST_SECONDS = limits.PACE_LEAST.total_seconds()


class Session:
    """Counts what ``append.lua`` and ``commit_build.lua`` count, by the same rules."""

    def __init__(self, scenario: Scenario, source: random.Random, born: float, time_factor: float) -> None:
        self._scenario = scenario
        self._time_factor = time_factor
        self.pace = scenario.seconds_per_token * source.uniform(1.0, scenario.slowest)
        self.swaps_wanted = source.choices(range(1, len(scenario.swaps) + 1), scenario.swaps)[0]
        self.born = self.updated = born
        self.log = self.tokens = 0
        self.window: deque[int] = deque()
        """Tokens of the turns after what the active head covers."""
        self.standby: int | None = None
        """Tokens of next: None, there is none."""
        self.standby_began = 0
        """The same when the standby was committed."""
        self.standby_turns = 0
        """Turns of the window that stand after the standby's cut."""
        self.is_building = self.is_degraded = False
        self.ratio = limits.SOFT_RATIO_BOUNDS[1] if scenario.soft_ratio is None else scenario.soft_ratio
        self._flow = 0.0
        self.ready = self.missed = self.swaps = 0

    @property
    def crossings(self) -> int:
        return self.ready + self.missed

    def append(self, tokens: int, now: float, lead_seconds: float) -> None:
        """A turn. A limit that is passed swaps, or degrades the context where no standby is ready."""
        self.log += tokens
        self.tokens += tokens
        self.window.append(tokens)
        if self.standby is not None:
            self.standby += tokens
            self.standby_turns += 1
        self._note_pace(tokens, now, lead_seconds)
        if self.tokens > self._scenario.limit_tokens:
            self._cross()

    def wants_build(self) -> bool:
        """As ``build_wanted`` has it."""
        if self.is_building or (not self.is_degraded and self.tokens < self.ratio * self._scenario.limit_tokens):
            return False
        if self.standby is None:
            return True
        return self.standby - self.standby_began >= limits.REFRESH_STEP * self._scenario.limit_tokens

    def begin_build(self) -> int | None:
        """How many of the newest turns the build leaves verbatim; None: there is nothing to cover."""
        turns = tokens = 0
        least = limits.TAIL_SHARE * self._scenario.limit_tokens
        for size in reversed(self.window):
            if turns >= self._scenario.keep_turns or tokens >= least:
                break
            turns, tokens = turns + 1, tokens + size
        if len(self.window) <= turns:
            return None
        self.is_building = True
        return turns

    def commit(self, kept_turns: int, appended_since: int) -> None:
        """The build's summary becomes the standby; of a degraded context it becomes the head at once."""
        turns = kept_turns + appended_since
        tail = sum(list(self.window)[len(self.window) - turns :]) if turns else 0
        self.standby = self.standby_began = round(self._scenario.head_share * self._scenario.limit_tokens) + tail
        self.standby_turns = turns
        self.is_building = False
        if self.is_degraded:
            self._swap()

    def _cross(self) -> None:
        if self.standby is not None:
            self.ready += 1
            self._swap()
            return
        self.missed += 1
        self.is_degraded = True
        self.tokens = round(limits.LOW_MARK * self._scenario.limit_tokens)

    def _swap(self) -> None:
        assert self.standby is not None
        self.swaps += 1
        while len(self.window) > self.standby_turns:
            self.window.popleft()
        self.tokens, self.standby, self.is_degraded = self.standby, None, False

    def _note_pace(self, tokens: int, now: float, lead_seconds: float) -> None:
        """The product's clock is the run's, which goes ``time_factor`` times as fast as the story."""
        if self._scenario.soft_ratio is not None:
            return
        passed = (now - self.updated) * self._time_factor
        self._flow = self._flow * math.exp(-passed / _PACE_SECONDS) + tokens
        self.updated = now
        age = max(_PACE_LEAST_SECONDS, (now - self.born) * self._time_factor)
        span = _PACE_SECONDS * (1 - math.exp(-age / _PACE_SECONDS))
        needed = self._flow / span * lead_seconds * self._time_factor * limits.LEAD_FACTOR
        least, most = limits.SOFT_RATIO_BOUNDS
        self.ratio = max(least, min(most, 1 - needed / self._scenario.limit_tokens))
