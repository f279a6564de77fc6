"""What a machine's rules stand on: the server, the clock, the sessions of one history, and what holds after each step."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from unittest.mock import patch

from hypothesis.stateful import RuleBasedStateMachine, invariant

from prefold.storage import Sessions, limits
from prefold.storage.append import Defaults
from prefold.storage.client import connect
from prefold.storage.hot import connect_hot
from prefold.storage.state import SessionState
from prefold.storage.types import SessionOptions
from tests.property.histories.author import Author, Raw
from tests.property.histories.backend import Backend
from tests.property.histories.building import LEASE_MS, begin, commit
from tests.property.histories.held import TENANT, Builder, Held
from tests.property.histories.promises import summary_that_stands
from tests.property.histories.snapshot import Snapshot, marks_left, own_keys, take_snapshot, words_beside
from tests.property.histories.wire import Trouble, Wire
from tests.support.redis import RunningRedis

START_MS = 2_000_000_000_000
LIMITS = (1000, 1500, 3000, 6000)
NAMES = ("s1", "f1", "f2")
Result = TypeVar("Result")


@contextmanager
def _small_steps() -> Iterator[None]:
    """A change or a fork takes several script calls also where a few turns are all there is; nobody waits for real."""
    with (
        patch.object(limits, "STAGE_ENTRIES", 6),
        patch.object(limits, "STAGE_BYTES", 1500),
        patch("prefold.storage.forks._PAGE", 3),
        patch("prefold.storage.forks._PATIENCE_SECONDS", 0.05),
        patch("prefold.storage.changes._PATIENCE_SECONDS", 0.0),
    ):
        yield


SMALL_STEPS: Callable[[], Any] = _small_steps


@dataclass(frozen=True)
class Coming:
    """What will happen to the next step that it can happen to."""

    trouble: Trouble
    dies: bool


class World(RuleBasedStateMachine):
    """Some sessions. ``server``, ``runner`` and ``wire`` are shared by all histories of a run."""

    server: RunningRedis
    runner: asyncio.Runner
    wire: Wire
    reached: Counter[str]
    """What the histories of a run came through."""
    crashes: bool
    """The server may be killed: it keeps everything."""

    def __init__(self) -> None:
        super().__init__()
        self.server.flush()
        self.wire.disarm()
        self.stack = AsyncExitStack()
        self.sessions: Sessions = self.run(self.connected())
        self.backend = Backend(self.sessions, self.wire, self.count)
        self.held = {name: Held.of(name) for name in NAMES}
        self.at = self.held["s1"]
        self.author = Author()
        self.written: list[Raw] = []
        self.coming: Coming | None = None
        self.look_for_words = False
        self.run(self.backend.open(self.at, SessionOptions(hard_limit_tokens=LIMITS[1], keep_recent_turns=2)))

    async def connected(self) -> Sessions:
        url = self.server.url
        client = await self.stack.enter_async_context(connect(url))
        hot = await self.stack.enter_async_context(connect_hot(url))
        defaults = Defaults(hard_limit_tokens=LIMITS[1], keep_recent_turns=2)
        return Sessions(client, hot=hot, defaults=defaults, now_ms=START_MS)

    def count(self, what: str) -> None:
        self.reached[what] += 1

    def run(self, call: Coroutine[Any, Any, Result]) -> Result:
        return self.runner.run(call)

    def teardown(self) -> None:
        try:
            for held in self.held.values():
                if held.oracle is not None:
                    self.run(self.a_build_still_helps(held))
        finally:
            self.run(self.stack.aclose())

    def new(self, *raws: Raw) -> tuple[Raw, ...]:
        """Turns that the author just wrote."""
        self.written += raws
        return raws

    def state(self) -> SessionState:
        found = self.run(self.backend.state(self.at))
        assert found is not None
        return found

    @property
    def alive(self) -> bool:
        return self.at.oracle is not None

    def wanted(self) -> bool:
        """Past the soft threshold, and not over the limit."""
        if not self.alive:
            return False
        state = self.state()
        return not state.nx and not state.deg and state.tok >= state.room * state.ratio // 1000

    def build_now(self, tokens: int) -> None:
        """A builder whom nothing comes between."""
        builder = self.run(begin(self.backend, self.at)) if self.alive else None
        if builder is not None:
            self.run(commit(self.backend, self.at, builder, tokens))

    def act(self, call: Coroutine[Any, Any, Result], *, between: bool = True) -> Result:
        """Runs a step with the trouble that was to come. ``between`` False: one that nothing happens inside of,
        and whose caller asks again.
        """
        coming = self.coming
        if coming is not None and (between or coming.trouble.act is None):
            self.coming = None
            self.wire.arm(coming.trouble)
            self.backend.dies = coming.dies and between
        try:
            return self.run(call)
        finally:
            if coming is not None and self.wire.happened:
                self.count(coming.trouble.how)
            self.wire.disarm()
            self.backend.dies = False

    async def a_build_still_helps(self, held: Held) -> None:
        """Whatever happened: once the lease is over, a build leads to a standby or a swap, or there is no place to cut."""
        state = await self.backend.state(held)
        assert state is not None
        self.sessions.now_ms = max(self.backend.now_ms, state.blease, state.retry) + LEASE_MS
        begun = await begin(self.backend, held)
        if begun is not None:
            await commit(self.backend, held, begun, 20)
            await self.holds(held)

    # What holds after each step

    @invariant()
    def everything_holds(self) -> None:
        """After a change everywhere; other steps touch one session."""
        for held in self.held.values() if self.look_for_words else (self.at,):
            self.run(self.holds(held))
        if self.look_for_words:
            self.look_for_words = False
            self.run(self.nothing_is_left())

    async def holds(self, held: Held) -> None:
        if held.promises is None:
            allowed = {"tomb"} | ({"staged", "staged_ids"} if held.may_be_staged else set())
            client: Any = self.sessions.client
            names = await client.keys(own_keys(held.keys))
            assert {name.decode().rpartition(":")[2] for name in names} <= allowed, "keys of a life that is over"
            return
        now = await take_snapshot(self.sessions, TENANT, held.name)
        held.promises.hold(now, may_be_staged=held.may_be_staged)
        self._count(now)

    async def nothing_is_left(self) -> None:
        for held in self.held.values():
            gone = held.gone - (held.oracle.marks() if held.oracle is not None else set())
            if gone:
                assert await marks_left(self.sessions, held.keys, gone) == {}, "words of turns that are gone"
        assert await words_beside(self.sessions) == [], "words outside of the session's keys"

    def _count(self, now: Snapshot) -> None:
        self.reached["head carries a turn"] += any(line.part == "task" and not line.seq for line in now.lines)
        self.reached["round lost from view"] += now.state.lost
        self.reached["thinking holds a swap"] += bool(now.state.deg and now.state.nx)
        self.reached["calibrated"] += now.state.cal > 1000

    async def fell_back(self, held: Held, change: Coroutine[Any, Any, None]) -> None:
        """Makes the change and counts what became of the summaries."""
        before = await take_snapshot(self.sessions, TENANT, held.name) if held.oracle is not None else None
        life = held.oracle
        await change
        if before is None or held.oracle is None or held.oracle is not life or not before.summaries:
            return
        now = await take_snapshot(self.sessions, TENANT, held.name)
        if 0 < now.state.cov < before.state.cov:
            assert summary_that_stands(now) is not None
            self.count("a summary fell back")
        if now.state.chg > before.state.chg and now.state.nx and now.state.nx == before.state.nx:
            self.count("standby survived a change")


__all__ = ["LIMITS", "SMALL_STEPS", "START_MS", "Builder", "World"]
