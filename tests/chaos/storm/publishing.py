"""Those who publish: every call is made again with the same ids until it is answered."""

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import httpx

from prefold.client import Appended
from prefold.client.results import JsonObject
from prefold.errors import ConflictError, RefusedError
from tests.chaos.storm.authors import Author, Publication
from tests.chaos.storm.doors import GIVE_UP_SECONDS, Doors
from tests.chaos.storm.figures import Figures
from tests.chaos.storm.oracle import Faults, Talk

AGAIN = 0.04
"""Share of the calls after which something old is published once more,"""
CONFLICTS = 0.01
"""after which another text is tried under a known id,"""
CLOSINGS = 0.02
"""and after which the session is closed, though more is to come."""


class Pacer:
    """At most so many turns a second, over all publishers. What was missed in an outage is not made up for."""

    def __init__(self, turns_per_second: float) -> None:
        self._rate = turns_per_second
        self._free_at = 0.0

    async def wait(self, turns: int) -> None:
        starts_at = max(time.monotonic(), self._free_at)
        self._free_at = starts_at + turns / self._rate
        await asyncio.sleep(starts_at - time.monotonic())


class Progress:
    """How many turns are acknowledged, for those who wait for a number of them."""

    def __init__(self) -> None:
        self._turns = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def add(self, turns: int) -> None:
        self._turns += turns
        for moment, future in self._waiting:
            if moment <= self._turns and not future.done():
                future.set_result(None)

    def end(self) -> None:
        """No more will come: nobody waits any longer."""
        self.add(2**53)

    def reached(self, moment: int) -> "asyncio.Future[None]":
        """Done when that many turns are acknowledged."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((moment, future))
        self.add(0)
        return future


@dataclass
class Assignment:
    """One session and what is still to be said in it."""

    talk: Talk
    author: Author
    turns: int
    erased_after: int | None = None
    """Turns after which it is erased and begun anew; None: never."""
    publications: Iterator[Publication] = field(init=False)

    def __post_init__(self) -> None:
        self.publications = self.author.publications(self.turns)


class Publisher:
    """Some sessions' only writer, so that their order is known."""

    def __init__(
        self, rng: random.Random, doors: Doors, pacer: Pacer, progress: Progress, figures: Figures, faults: Faults
    ) -> None:
        self._rng = rng
        self._doors = doors
        self._pacer = pacer
        self._progress = progress
        self._figures = figures
        self._faults = faults

    async def run(self, assignments: Sequence[Assignment]) -> None:
        """Until all is said."""
        living = list(assignments)
        while living:
            assignment = self._rng.choice(living)
            if not await self._step(assignment):
                living.remove(assignment)

    async def _step(self, assignment: Assignment) -> bool:
        talk = assignment.talk
        publication = next(assignment.publications, None)
        if publication is None:
            return False
        try:
            if not talk.is_open:
                await self._open(talk)
            await self._pacer.wait(len(publication))
            await self._publish(talk, publication)
            if assignment.erased_after is not None and len(talk.turns) >= assignment.erased_after:
                await self._begin_anew(assignment)
            elif self._rng.random() < AGAIN:
                await self._publish_again(talk)
            elif self._rng.random() < CONFLICTS:
                await self._contradict(talk)
            elif self._rng.random() < CLOSINGS:
                await self._close(talk)
        except RefusedError as error:
            self._faults.tell("a call was refused:", talk, f"{error.code}: {error.detail}", talk.sent)
            return False
        return True

    async def _open(self, talk: Talk) -> None:
        limit = talk.hard_limit_tokens
        await self._doors.insist(
            self._rng, talk, lambda client: client.create_session(talk.name, user=talk.user, hard_limit_tokens=limit)
        )
        talk.is_open = True

    async def _publish(self, talk: Talk, turns: Publication) -> None:
        talk.sent = len(talk.turns) + len(turns)
        started = time.monotonic()
        appended = await self._append(talk, turns)
        self._figures.acknowledged(len(turns), time.monotonic() - started)
        self._figures.found_stored += sum(turn.duplicate for turn in appended.turns)
        first = len(talk.turns) + 1
        self._check(talk, turns, appended, first)
        talk.acknowledged(turns)
        self._progress.add(len(turns))

    async def _append(self, talk: Talk, turns: Publication) -> Appended:
        return await self._doors.insist(self._rng, talk, lambda client: client.append_many(talk.name, turns))

    def _check(self, talk: Talk, turns: Publication, appended: Appended, first: int) -> None:
        places = [(turn.id, turn.seq) for turn in appended.turns]
        expected = [(turn["id"], first + n) for n, turn in enumerate(turns)]
        if places != expected:
            self._faults.tell("a turn got another place:", talk, f"{places}, not {expected}", first)
        if appended.durability != "durable":
            self._faults.tell("an answer promised less:", talk, appended.durability, first)
        if appended.context.tokens > talk.hard_limit_tokens:
            self._faults.tell("over the limit after an append:", talk, str(appended.context.tokens), first)

    async def _publish_again(self, talk: Talk) -> None:
        """A producer that lost its answer long ago: nothing changes."""
        at = self._rng.randrange(len(talk.turns))
        appended = await self._append(talk, [talk.turns[at]])
        (turn,) = appended.turns
        if (turn.seq, turn.duplicate) != (at + 1, True):
            self._faults.tell("published again, stored again:", talk, str(turn), at + 1)

    async def _contradict(self, talk: Talk) -> None:
        """Another text under a known id is refused, and leaves the log alone."""
        at = self._rng.randrange(len(talk.turns))
        other: JsonObject = {"id": talk.turns[at]["id"], "role": "user", "content": "something else"}
        try:
            await self._append(talk, [other])
        except ConflictError:
            return
        self._faults.tell("another text was taken under a known id", talk, "", at + 1)

    async def _close(self, talk: Talk) -> None:
        """Asked once; whether it is heard does not matter."""
        with suppress(httpx.TransportError):
            await self._doors.bare(self._rng, talk).post(f"/v1/sessions/{talk.name}/close", json={})

    async def _begin_anew(self, assignment: Assignment) -> None:
        assignment.erased_after = None
        talk = assignment.talk
        said = len(talk.turns)
        talk.begin_anew()
        await self._erase(talk)
        assignment.turns -= said
        assignment.author.life += 1
        assignment.author.written = 0
        assignment.publications = assignment.author.publications(assignment.turns)

    async def _erase(self, talk: Talk) -> None:
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while time.monotonic() < deadline:
            try:
                answer = await self._doors.bare(self._rng, talk).delete(f"/v1/sessions/{talk.name}")
            except httpx.TransportError:
                await asyncio.sleep(0.2)
                continue
            if answer.status_code == 200:
                if answer.json()["keys_left"]:
                    self._faults.tell("keys are left after an erasure:", talk, answer.text)
                return
            if answer.status_code != 503:
                self._faults.tell("an erasure was refused:", talk, answer.text)
                return
            await asyncio.sleep(0.2)
        raise AssertionError(f"{talk.name} could not be erased")
