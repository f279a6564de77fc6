"""Rules of branching and correcting, and of what comes between their steps."""

from copy import deepcopy
from typing import Literal

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from prefold.errors import ConflictError
from prefold.storage.limits import STAGE_HELD, milliseconds
from prefold.storage.types import SessionOptions
from tests.property.histories.author import Raw
from tests.property.histories.backend import prepared
from tests.property.histories.building import begin, commit
from tests.property.histories.forking import fork
from tests.property.histories.held import TENANT, Held
from tests.property.histories.speaking import few_words, targets
from tests.property.histories.wire import Trouble
from tests.property.histories.world import LIMITS, NAMES, Coming, World

BETWEEN = ("append", "edit", "remove", "rewind", "erase", "erase, create", "build")

passing = st.sampled_from([0, 0, 1, 1, 2, 3, 5, 7])
"""Script calls of a step before something happens to it: most steps have one, changes and forks have several."""


class Changes(World):
    # Each takes a number that says which turn: it is known only when the step comes.

    def turn_of(self, held: Held, number: int) -> Raw | None:
        """A turn that stands, mostly."""
        if held.oracle is None or not held.oracle.seqs:
            return None
        standing = [one.raw for one in held.oracle.said.values()]
        taken_back = [
            raw for turn_id, raw in held.oracle.raws.items() if held.oracle.seqs[turn_id] not in held.oracle.said
        ]
        pool = standing * 3 + taken_back[:1] if standing else taken_back
        return pool[number % len(pool)]

    async def edit_some(self, held: Held, number: int, count: int) -> None:
        raw = self.turn_of(held, number)
        if raw is not None:
            new, mark = self.author.reworded(raw, count)
            await self.backend.edit(held, raw["id"], new, mark)

    async def remove_some(self, held: Held, number: int) -> None:
        raw = self.turn_of(held, number)
        if raw is not None:
            await self.backend.remove(held, raw["id"])

    async def rewind_some(self, held: Held, number: int) -> None:
        await self.backend.rewind(held, number % (held.oracle.head + 2) if held.oracle is not None else 0)

    @precondition(lambda self: self.alive)
    @rule(number=targets, count=few_words)
    def edit(self, number: int, count: int) -> None:
        self.look_for_words = True
        self.act(self.fell_back(self.at, self.edit_some(self.at, number, count)))

    @precondition(lambda self: self.alive)
    @rule(number=targets)
    def edit_to_the_same(self, number: int) -> None:
        raw = self.turn_of(self.at, number)
        if raw is not None:
            mark = self.at.life.said[seq].mark if (seq := self.at.life.seqs[raw["id"]]) in self.at.life.said else ""
            self.act(self.backend.edit(self.at, raw["id"], raw, mark))

    @precondition(lambda self: self.alive)
    @rule(number=targets)
    def remove(self, number: int) -> None:
        self.look_for_words = True
        self.act(self.fell_back(self.at, self.remove_some(self.at, number)))

    @precondition(lambda self: self.alive)
    @rule(number=st.one_of(targets, st.integers(0, 3)), from_the_end=st.booleans())
    def rewind(self, number: int, from_the_end: bool) -> None:
        self.look_for_words = True
        if from_the_end:
            number = self.at.life.head - number % 6
        self.act(self.fell_back(self.at, self.rewind_some(self.at, max(0, number))))

    @precondition(lambda self: self.alive and self.at.life.said)
    @rule(number=targets)
    def misshape(self, number: int) -> None:
        """A turn may not become one of another kind: refused, and nothing changes."""
        standing = [one for one in self.at.life.said.values() if not one.removed]
        if standing:
            raw = standing[number % len(standing)].raw
            other = self.author.calls(["A", "X"], 1, thinks=False) | {"id": raw["id"]}
            call = self.sessions.edit_turn(TENANT, self.at.name, raw["id"], prepared(other))
            self.count("edit: turn_shape")
            self.run(self.backend.fails(self.at, lambda: call, ConflictError, "turn_shape"))

    @precondition(lambda self: self.alive and self.at.life.seqs)
    @rule(number=targets)
    def find(self, number: int) -> None:
        known = [*self.at.life.seqs, "nobody"]
        self.run(self.backend.find(self.at, known[number % len(known)]))

    @rule(name=st.sampled_from(NAMES), number=targets, whole=st.booleans())
    def fork(self, name: str, number: int, whole: bool) -> None:
        target = self.held[name]
        if target is self.at:
            return
        head = self.at.oracle.head if self.at.oracle is not None else 0
        at_seq = None if whole else number % (head + 2)
        self.look_for_words = True
        self.act(fork(self.backend, self.at, target, at_seq))
        if target.oracle is not None:
            state = self.run(self.backend.state(target))
            self.reached["fork has a summary"] += bool(state and state.cov)

    @precondition(lambda self: self.alive and self.others_alive())
    @rule(number=targets)
    def fork_over_another(self, number: int) -> None:
        """A name that is taken already."""
        names = self.others_alive()
        self.fork(names[number % len(names)], number, whole=True)

    def others_alive(self) -> list[str]:
        return [name for name, held in self.held.items() if held is not self.at and held.oracle is not None]

    @precondition(lambda self: self.at.origin)
    @rule()
    def fork_again(self) -> None:
        """The fork that made this session, repeated."""
        assert self.at.origin is not None
        name, _, upto = self.at.origin
        self.look_for_words = True
        self.act(fork(self.backend, self.held[name], self.at, upto))

    @rule(sure=st.booleans())
    def erase(self, sure: bool) -> None:
        if sure:
            self.look_for_words = True
            self.act(self.backend.erase(self.at))

    @precondition(lambda self: self.at.erased)
    @rule()
    def create_again(self) -> None:
        options = SessionOptions(hard_limit_tokens=LIMITS[1], keep_recent_turns=2)
        self.act(self.backend.open(self.at, options), between=False)

    @rule(sure=st.integers(0, 3))
    def age(self, sure: int) -> None:
        if not sure:
            self.look_for_words = True
            self.run(self.backend.end_by_age(self.at))

    @rule(name=st.sampled_from(NAMES))
    def go_to(self, name: str) -> None:
        """The steps that come are about another session."""
        if self.held[name].oracle is not None:
            self.at = self.held[name]

    # What happens to the next step

    @rule(calls=passing, how=st.sampled_from(["request lost", "reply lost"]), dies=st.booleans())
    def lose(self, calls: int, how: Literal["request lost", "reply lost"], dies: bool) -> None:
        """The caller of the next step hears nothing at one of its script calls; it asks again, or dies."""
        self.coming = Coming(Trouble(calls, how), dies)

    @rule(calls=passing, what=st.sampled_from(BETWEEN), number=targets, count=few_words)
    def come_between(self, calls: int, what: str, number: int, count: int) -> None:
        """Before one of the script calls of the next step, somebody else does something to the session."""
        held = self.at
        self.look_for_words = True
        self.coming = Coming(Trouble(calls, "between", lambda: self.meanwhile(held, what, number, count)), False)

    async def meanwhile(self, held: Held, what: str, number: int, count: int) -> None:
        """By another caller, who waits for the stage if need be. Its own calls have no trouble."""
        held.before_interruption = deepcopy(held.oracle), held.incarnation
        held.staged_until_ms = max(held.staged_until_ms, self.backend.now_ms + milliseconds(STAGE_HELD))
        match what:
            case "append":
                await self.backend.append(held, *self.new(self.author.plain("user", count)))
            case "edit":
                await self.edit_some(held, number, count)
            case "remove":
                await self.remove_some(held, number)
            case "rewind":
                await self.rewind_some(held, number)
            case "build" if held.oracle is not None:
                builder = await begin(self.backend, held)
                if builder is not None:
                    await commit(self.backend, held, builder, 20)
            case "erase" | "erase, create":
                await self.backend.erase(held)
                if what == "erase, create":
                    await self.backend.open(held, SessionOptions(hard_limit_tokens=LIMITS[1], keep_recent_turns=2))
