"""Walks a real session at random; every step is judged by the model."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from prefold.errors import PrefoldError, UnavailableError
from prefold.storage.keys import SessionKeys
from tests.property.following.abstraction import Known, look
from tests.property.following.changing import Changing
from tests.property.following.judging import same
from tests.property.following.talking import SESSION
from tests.property.histories.held import TENANT
from tests.property.histories.wire import CONFIRMS_FORK, Trouble

FORK = "f1"
Step = Callable[[], Awaitable[object]]


class Walker(Changing):
    """One walk."""

    async def walk(self, steps: int) -> None:
        await self.create()
        for _ in range(steps):
            self.before = await self.look()
            step = self.rng.choices([one for one, _ in self.steps()], [weight for _, weight in self.steps()])[0]
            await step()
            self.judge.standing(await self.look())

    def steps(self) -> list[tuple[Step, float]]:
        if not self.before.state.exists:
            return [(self.create, 4), (self.tombstone_ends, 1), (self.commit, 1), (self.begin, 0.5), (self.hold, 0.5)]
        return [
            *(
                (self.append, 8),
                (self.prosper, 4),
                (self.disturb, 3),
                (self.begin, 2),
                (self.commit, 4),
                (self.hold, 2),
            ),
            *((self.edit, 2), (self.remove, 1.5), (self.rewind, 2), (self.change_nothing, 0.5), (self.fork, 0.7)),
            *((self.lease_ends, 1), (self.limit, 0.7), (self.erase, 0.3), (self.keys_end, 0.2), (self.live_alike, 0.2)),
        ]

    async def prosper(self) -> None:
        """Turns until there is something to build, and a builder whom nothing comes between."""
        for _ in range(self.rng.randint(1, 14)):
            await self.append()
            self.before = await self.look()
            if self.before.state.build and self.before.state.build.alive:
                continue
            if await self.begin():
                self.before = await self.look()
                await self.commit(-1)
                return

    async def toil(self) -> None:
        """An agent's run on one word of the user."""
        await self.append("u", self.rng.choice((30, 200, 600)))
        for _ in range(self.rng.randint(2, 8)):
            for kind in ("c", *("r" * self.judge.calls)):
                await self.append(kind)
            if self.rng.random() < 0.5 and await self.begin():
                await self.commit(-1)

    async def disturb(self) -> None:
        """A build, something that happens to its session meanwhile, and its commit."""
        for _ in range(self.rng.randint(0, 6)):
            await self.append()
        self.before = await self.look()
        if await self.begin():
            for _ in range(self.rng.randint(1, 2)):
                self.before = await self.look()
                if self.before.state.exists:
                    await self.rng.choice(
                        (self.edit, self.remove, self.remove, self.rewind, self.rewind, self.limit, self.erase)
                    )()
            await self.commit(-1)

    async def live_alike(self) -> None:
        """Two lives of the same turns, nothing of the first being left when the second begins: their epochs are the same."""
        for _ in range(2):
            await self.keys_end()
            await self.tombstone_ends()
            self.before = await self.look()
            await self.create()
            for number in range(9):
                await self.append("au"[number % 2], 60)
            self.before = await self.look()
            same("a build of a life like any", await self.begin(any_life=False), True)
        await self.commit(-2)

    async def fork(self) -> None:
        s = self.before.state
        if not s.log:
            return
        point = self.rng.choice([0, s.head_seq, *(turn.seq for turn in s.log)])
        earlier, keys = self.before, SessionKeys.of(TENANT, FORK)
        await self.sessions.client.delete(*keys.erasable(), keys.tomb)
        if self.rng.random() < 0.5:
            await self.lost_fork(point)
        self.arm(("append", "edit", "rewind", "erase", "commit", "commit"))
        try:
            view = await self.patiently(lambda: self.sessions.fork(TENANT, SESSION, FORK, point))
        except PrefoldError as error:
            self.count(f"fork refused: {error.code}")
            same("something came between", self.came_after is not None or point > self.before.state.head_seq, True)
            return
        marks = self.earlier_marks
        if self.interrupted != CONFIRMS_FORK:
            self.before, marks = await self.look(), self.known.marks
        known = Known(lives={view.ref.incarnation: self.before.state.life}, marks=marks)
        made = await look(self.sessions, FORK, known)
        self.judge.fork(self.before, point, made, earlier)
        self.judge.standing(made)
        self.count("fork with a summary" if made.state.active else "fork")

    async def lost_fork(self, point: int) -> None:
        """The same fork before, of which nobody heard; perhaps its source has changed since."""
        self.wire.arm(Trouble(self.rng.choice((1, 2, 2, 2, 3, 3, 4)), "reply lost"))
        try:
            await self.sessions.fork(TENANT, SESSION, FORK, point)
        except UnavailableError:
            self.count("fork: answer lost")
        finally:
            self.wire.disarm()
        keys, client = SessionKeys.of(TENANT, FORK), self.sessions.client
        meta: dict[bytes, bytes] = await cast("Any", client.hgetall(keys.meta))
        life = self.before.state.life
        await self.rng.choice((self.edit, self.remove, self.append))()
        self.before = await self.look()
        if self.before.state.life != life or (meta and b"unchecked" not in meta):
            # Another source, or confirmed: it keeps its name, as one that somebody was told of.
            await client.delete(*keys.erasable(), keys.tomb)
