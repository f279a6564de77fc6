"""The town: sessions talk, builds wait for workers and their models, and it is counted who was ready."""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import ceil

from bench.simulation.events import Clock
from bench.simulation.scenario import Scenario
from bench.simulation.sessions import Session
from prefold.storage import limits

_LEAST_MEASURED = 20
_LEAD_SHARE = 0.95
_MOST_TURNS = 400


@dataclass(slots=True)
class Outcome:
    """What came of a run."""

    crossings: int = 0
    ready: int = 0
    builds: int = 0
    build_seconds: list[float] = field(default_factory=list)
    """From the wish to the commit."""
    waited_seconds: list[float] = field(default_factory=list)
    """Of that until a worker took it."""
    most_under_way: int = 0

    @property
    def ready_ratio(self) -> float | None:
        """Crossings that found a standby; None: there were none."""
        return self.ready / self.crossings if self.crossings else None


@dataclass(slots=True)
class _Build:
    """One that is under way."""

    session: Session
    kept: int
    """Newest turns that it leaves verbatim."""
    turns: int
    """Of the session when it began."""
    wished: float
    worker: "_Worker"
    has_ended: bool = False


@dataclass(slots=True)
class _Worker:
    """One process: so many builds at once, one core."""

    under_way: int = 0
    cpu_free_at: float = 0.0


class Town:
    """One simulated run. ``time_factor``: how many seconds of the product's own clock pass in one of the story."""

    def __init__(self, scenario: Scenario, seed: int, *, time_factor: float = 1.0) -> None:
        self.outcome = Outcome()
        self._scenario = scenario
        self._time_factor = time_factor
        self._clock = Clock()
        self._source = random.Random(f"simulation {seed}")
        self._workers = [_Worker() for _ in range(scenario.workers)]
        self._waiting: deque[tuple[float, Callable[[_Worker], None]]] = deque()
        self._under_way: dict[int, _Build] = {}
        self._times: deque[float] = deque(maxlen=limits.BUILD_TIMES_KEPT)
        self._turns: dict[int, int] = {}

    def run(self) -> Outcome:
        """Until every session has had its swaps."""
        for number in range(self._scenario.sessions):
            start = self._scenario.spread_seconds * number / self._scenario.sessions
            self._clock.after(start, partial(self._begin, number))
        self._clock.run()
        return self.outcome

    def _begin(self, number: int) -> None:
        session = Session(self._scenario, self._source, self._clock.now, self._time_factor)
        self._turns[id(session)] = 0
        self._next_turn(session, random.Random(f"{number} {self._source.random()}"), 2)

    def _next_turn(self, session: Session, source: random.Random, left: int) -> None:
        tokens = source.randint(*self._scenario.turn_tokens)
        self._clock.after(tokens * session.pace, partial(self._say, session, source, tokens, left))

    def _say(self, session: Session, source: random.Random, tokens: int, left: int) -> None:
        before, ready = session.crossings, session.ready
        session.append(tokens, self._clock.now, self._lead())
        self.outcome.crossings += session.crossings - before
        self.outcome.ready += session.ready - ready
        if session.is_degraded:
            self._give_up_model(session)
        self._turns[id(session)] += 1
        self._wish(session)
        left -= session.crossings >= session.swaps_wanted
        if left and self._turns[id(session)] < _MOST_TURNS:
            self._next_turn(session, source, left)

    def _lead(self) -> float:
        """As ``BuildTimes`` tells it."""
        prior = [self._scenario.prior_seconds] * max(0, _LEAST_MEASURED - len(self._times))
        times = sorted([*self._times, *prior])
        return times[ceil(_LEAD_SHARE * len(times)) - 1]

    def _wish(self, session: Session) -> None:
        kept = session.begin_build() if session.wants_build() else None
        if kept is not None:
            begin = partial(self._build, session, kept, self._turns[id(session)], self._clock.now)
            self._clock.after(self._scenario.notice_seconds, partial(self._queue, self._clock.now, begin))

    def _queue(self, wished: float, begin: Callable[[_Worker], None]) -> None:
        self._waiting.append((wished, begin))
        self._dispatch()

    def _dispatch(self) -> None:
        while self._waiting:
            worker = min(self._workers, key=lambda one: (one.under_way, one.cpu_free_at))
            if worker.under_way >= self._scenario.builds_at_once:
                return
            wished, begin = self._waiting.popleft()
            self.outcome.waited_seconds.append(self._clock.now - wished)
            begin(worker)

    def _build(self, session: Session, kept: int, turns: int, wished: float, worker: _Worker) -> None:
        worker.under_way += 1
        under_way = sum(one.under_way for one in self._workers)
        self.outcome.most_under_way = max(self.outcome.most_under_way, under_way)
        build = _Build(session, kept, turns, wished, worker)
        self._under_way[id(session)] = build
        # A context that leaves something out waits for no model.
        calls = 0.0 if session.is_degraded else self._calls()
        self._clock.after(self._computed(worker) + calls, partial(self._commit, build))

    def _computed(self, worker: _Worker) -> float:
        """Seconds until the worker's core has done what it has to and a build's own part."""
        worker.cpu_free_at = max(worker.cpu_free_at, self._clock.now) + self._scenario.build_cpu_seconds
        return worker.cpu_free_at - self._clock.now

    def _calls(self) -> float:
        """Seconds of a build's calls."""
        whole = int(self._scenario.calls_per_build)
        more = self._source.random() < self._scenario.calls_per_build - whole
        return sum(self._call() for _ in range(whole + more))

    def _call(self) -> float:
        """Seconds of a call, with those that failed before it."""
        scenario, taken = self._scenario, 0.0
        while True:
            taken += scenario.model_median_seconds * self._source.lognormvariate(0.0, scenario.sigma)
            if self._source.random() >= scenario.fail_share:
                return taken
            taken += scenario.retry_seconds

    def _give_up_model(self, session: Session) -> None:
        """The session's build is ended without its model, now that the context is degraded."""
        build = self._under_way.get(id(session))
        if build is not None:
            self._clock.after(self._computed(build.worker), partial(self._commit, build))

    def _commit(self, build: _Build) -> None:
        if build.has_ended:
            return
        build.has_ended = True
        del self._under_way[id(build.session)]
        build.worker.under_way -= 1
        taken = self._clock.now - build.wished
        self._times.append(taken)
        self.outcome.builds += 1
        self.outcome.build_seconds.append(taken)
        build.session.commit(build.kept, self._turns[id(build.session)] - build.turns)
        self._wish(build.session)
        self._dispatch()


def simulate(scenario: Scenario, seed: int, *, time_factor: float = 1.0) -> Outcome:
    """The same for the same seed."""
    return Town(scenario, seed, time_factor=time_factor).run()
