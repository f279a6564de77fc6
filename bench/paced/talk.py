"""One session's life: a turn when its time has come, until it has had its swaps."""

import asyncio
import time
from dataclasses import dataclass, field

from bench.paced.doors import Appended, Door
from bench.paced.plan import TENANT, Scale, SessionPlan
from bench.paced.words import turns_of
from prefold.errors import PrefoldError, TransientError
from prefold.storage import Sessions
from prefold.storage.types import SessionOptions, SessionView

READ_EVERY = 8
"""Turns between two reads of the context; it is read after each swap too."""
MOST_TURNS = 400
_LAST_TURNS = 2
"""After the last swap."""
_RETRY_SECONDS = 0.2


@dataclass(slots=True)
class Crossing:
    """The append that swapped, or that would have had to."""

    at_seconds: float
    """Of the run."""
    append_seconds: float
    soft_seconds: float
    """From the first look that found the session past its soft threshold, in the run's seconds."""
    ready: bool
    building: bool
    """A build was under way just before."""
    error: str
    """The last build's, just before."""


@dataclass(slots=True)
class TalkRecord:
    """What one session met."""

    plan: SessionPlan
    sent: list[str] = field(default_factory=list)
    """Ids that were acknowledged, in order."""
    idle_seconds: list[float] = field(default_factory=list)
    """What appends took while no build of the session was under way."""
    building_seconds: list[float] = field(default_factory=list)
    """The same while one was."""
    late_seconds: float = 0.0
    """Longest delay of a turn by the driver itself: above the pace's own step the run was too much for the machine."""
    crossings: list[Crossing] = field(default_factory=list)
    reads: int = 0
    over_limit: int = 0
    holes: int = 0
    errors: list[str] = field(default_factory=list)
    view: SessionView | None = None
    """At the end."""
    retries: int = 0
    """Appends that were made again, because the store did not answer in time."""
    missing: int = 0
    """Acknowledged turns that the log has not, or not in order."""


class Talk:
    def __init__(self, sessions: Sessions, door: Door, plan: SessionPlan, scale: Scale, began: float) -> None:
        """``began``: when the run did, by the monotonic clock."""
        self._sessions = sessions
        self._door = door
        self._plan = plan
        self._scale = scale
        self._began = began
        self._soft_since: float | None = None
        self._swaps = self._crossings = 0
        self.record = TalkRecord(plan)

    async def run(self) -> TalkRecord:
        try:
            await self._talk()
            await self._check()
        except PrefoldError as error:
            self.record.errors.append(f"{type(error).__name__}: {error.detail}")
        return self.record

    async def _talk(self) -> None:
        options = SessionOptions(hard_limit_tokens=self._scale.hard_limit, soft_ratio=self._scale.soft_ratio)
        at = self._began + self._scale.scaled(self._plan.start_seconds)
        await self._until(at)
        view = await self._sessions.open(TENANT, self._plan.name, options)
        left = _LAST_TURNS
        for turn, _ in zip(turns_of(self._plan.seed, self._scale.turn_tokens), range(MOST_TURNS), strict=False):
            prepared, tokens = self._door.prepare(turn)
            # From when the last one was through: nobody talks faster to make up for a delay.
            at = max(at, time.monotonic()) + self._scale.scaled(tokens * self._plan.seconds_per_token)
            await self._until(at)
            view = await self._say(turn["id"], prepared, view)
            left -= view.limit_crossings >= self._plan.swaps
            if not left:
                return

    async def _until(self, at: float) -> None:
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        self.record.late_seconds = max(self.record.late_seconds, time.monotonic() - at)

    async def _say(self, turn_id: str, prepared: object, before: SessionView) -> SessionView:
        start = time.monotonic()
        answer, taken = await self._append(prepared)
        self.record.sent.append(turn_id)
        (self.record.idle_seconds if before.build is None else self.record.building_seconds).append(taken)
        self.record.over_limit += answer.tokens > self._scale.hard_limit
        after = await self._view()
        self._note_crossing(before, after, start, taken)
        if answer.swaps > self._swaps or len(self.record.sent) % READ_EVERY == 0:
            await self._read()
        self._swaps = answer.swaps
        return after

    async def _append(self, prepared: object) -> tuple[Appended, float]:
        """Makes the call again, as a backend does, while the answer is that it may be; seconds of the last one."""
        while True:
            start = time.monotonic()
            try:
                answer = await self._door.append(prepared)
            except TransientError:
                self.record.retries += 1
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return answer, time.monotonic() - start

    def _note_crossing(self, before: SessionView, after: SessionView, start: float, taken: float) -> None:
        if after.limit_crossings > before.limit_crossings:
            soft = start - self._soft_since if self._soft_since is not None else 0.0
            ready = after.ready_crossings > before.ready_crossings
            self.record.crossings.append(
                Crossing(start - self._began, taken, soft, ready, before.build is not None, before.last_build_error)
            )
        if after.status != "soft":
            self._soft_since = None
        elif self._soft_since is None:
            self._soft_since = start

    async def _view(self) -> SessionView:
        while True:
            try:
                return await self._sessions.view(TENANT, self._plan.name)
            except TransientError:
                await asyncio.sleep(_RETRY_SECONDS)

    async def _read(self) -> None:
        try:
            read = await self._door.read()
        except TransientError:
            return
        self.record.reads += 1
        self.record.over_limit += read.tokens > self._scale.hard_limit
        self.record.holes += read.has_hole

    async def _check(self) -> None:
        """The log against what was acknowledged."""
        stored: list[str] = []
        after = 0
        while page := await self._sessions.read_turns(TENANT, self._plan.name, after, 500):
            stored += [turn.id for turn in page]
            after = page[-1].seq
        self.record.missing = len(self.record.sent) if stored != self.record.sent else 0
        self.record.view = await self._sessions.view(TENANT, self._plan.name)
