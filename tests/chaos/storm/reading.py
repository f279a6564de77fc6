"""Those who read: every context is valid, within its limit, of this session alone, and without a gap."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson

from prefold.client import Context
from prefold.client.results import Format
from prefold.conversation import check_anthropic, check_openai
from prefold.errors import GoneError, NotFoundError
from prefold.replay.recount import Recount
from tests.chaos.storm.authors import MARK
from tests.chaos.storm.doors import Doors
from tests.chaos.storm.figures import Figures
from tests.chaos.storm.oracle import Faults, Talk

FORMATS: tuple[Format, ...] = ("anthropic", "openai")
_QUERIES = 0.15
_BUDGETS = 0.15


@dataclass(frozen=True, slots=True)
class Moment:
    """What was known of a session when a read began."""

    life: int
    acknowledged: int

    @classmethod
    def of(cls, talk: Talk) -> "Moment":
        return cls(talk.life, len(talk.turns))


class ContextCheck:
    """Looks at one served context."""

    def __init__(self, recount: Recount, faults: Faults) -> None:
        self._recount = recount
        self._faults = faults

    def look(self, context: Context, talk: Talk, moment: Moment, limit: int, *, is_whole: bool = True) -> None:
        """``is_whole``: no smaller budget was asked for, so only what the context itself says may be missing."""
        before = self._faults.count
        self._size(context, talk, limit)
        self._validity(context, talk)
        self._marks(context, talk, moment, is_whole=is_whole)
        if self._faults.count > before:
            self._faults.note(talk, repr(context)[:3000])

    def _size(self, context: Context, talk: Talk, limit: int) -> None:
        counted = self._recount.of(context)
        if max(context.tokens, counted) > limit:
            self._faults.tell("a context over its limit:", talk, f"{context.tokens}, counted {counted}, limit {limit}")

    def _validity(self, context: Context, talk: Talk) -> None:
        messages = list(context.messages)
        if context.format == "anthropic":
            findings = check_anthropic(messages, context.system or None)
        else:
            findings = check_openai(messages)
        for finding in findings:
            self._faults.tell(f"an invalid {context.format} context:", talk, finding)

    def _marks(self, context: Context, talk: Talk, moment: Moment, *, is_whole: bool) -> None:
        shown: Counter[int] = Counter()
        order: list[int] = []
        for tenant, session, life, seq in _marks_of(context):
            if (tenant, session) != (talk.tenant, talk.number):
                self._faults.tell("words of another session:", talk, f"tenant {tenant} session {session}", seq)
            elif life != moment.life:
                self._faults.tell("words of an erased life:", talk, f"life {life}", seq)
            elif seq > talk.sent:
                self._faults.tell("words that were not said yet", talk, "", seq)
            elif seq > context.covers_to:
                shown[seq] += 1
                order.append(seq)
        if is_whole:
            self._window(context, talk, moment, shown, order)

    def _window(self, context: Context, talk: Talk, moment: Moment, shown: Counter[int], order: Sequence[int]) -> None:
        left_out = _ranges(context)
        for seq in range(context.covers_to + 1, moment.acknowledged + 1):
            if seq in talk.unmarked or any(first <= seq <= last for first, last in left_out):
                continue
            if shown[seq] != 1:
                self._faults.tell("a turn of the window stands there", talk, f"{shown[seq]} times", seq)
        window = [seq for seq in order if not any(first <= seq <= last for first, last in left_out)]
        if window != sorted(window):
            self._faults.tell("turns out of order:", talk, str(order))


def _marks_of(context: Context) -> Iterator[tuple[int, ...]]:
    said: object = context.messages
    if context.format == "anthropic":  # the other form has the system prompt among its messages
        said = [context.system, context.messages]
    text = orjson.dumps(said).decode()
    return (tuple(map(int, found.groups())) for found in MARK.finditer(text))


def _ranges(context: Context) -> list[tuple[int, int]]:
    return [(part["first_seq"], part["last_seq"]) for part in context.left_out if part.get("first_seq") is not None]


class Reader:
    """The only reader of some sessions, so that it can tell when one goes back."""

    def __init__(
        self, rng: random.Random, doors: Doors, check: ContextCheck, figures: Figures, faults: Faults, rate: float
    ) -> None:
        self._rng = rng
        self._doors = doors
        self._check = check
        self._figures = figures
        self._faults = faults
        self._pause = 1 / rate
        self._last: dict[str, tuple[int, int, int]] = {}

    async def run(self, talks: Sequence[Talk], stop: asyncio.Event) -> None:
        """Until ``stop`` is set."""
        while not stop.is_set():
            talk = self._rng.choice(talks)
            started = time.monotonic()
            if talk.turns:
                await self._read(talk)
            await asyncio.sleep(max(0.0, started + self._pause - time.monotonic()))

    async def _read(self, talk: Talk) -> None:
        moment, form = Moment.of(talk), self._rng.choice(FORMATS)
        query = "Where is the parcel?" if self._rng.random() < _QUERIES else None
        budget = self._rng.randint(600, 1500) if self._rng.random() < _BUDGETS else None
        started = time.monotonic()
        try:
            context = await self._doors.insist(
                self._rng,
                talk,
                lambda client: client.context(talk.name, format=form, query=query, budget_tokens=budget),
            )
        except (GoneError, NotFoundError) as error:
            if talk.life == moment.life and talk.is_open:
                self._faults.tell("a session is not found:", talk, str(error))
            return
        self._figures.read_seconds.append(time.monotonic() - started)
        if talk.life != moment.life:  # erased meanwhile: either life may be seen
            return
        self._figures.reads[f"{form} {context.status}"] += 1
        limit = min(talk.hard_limit_tokens, budget or talk.hard_limit_tokens)
        self._check.look(context, talk, moment, limit, is_whole=budget is None)
        self._goes_forward(context, talk)

    def _goes_forward(self, context: Context, talk: Talk) -> None:
        key, now = f"{talk.tenant}/{talk.number}", (talk.life, context.version, context.covers_to)
        before = self._last.get(key)
        self._last[key] = now
        if before and before[0] == now[0] and (now[1] < before[1] or now[2] < before[2]):
            self._faults.tell("a context went back:", talk, f"version and cover {before[1:]}, then {now[1:]}")
