"""Changes of the walked session, and what comes between their script calls."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from prefold.conversation import redacted_turn
from prefold.errors import OverloadedError, RefusedError
from prefold.storage.limits import STAGE_HELD, milliseconds
from prefold.tokens import load_counter
from tests.property.following.building import Building
from tests.property.following.judging import same
from tests.property.following.talking import SESSION, WORDS
from tests.property.histories.backend import prepared
from tests.property.histories.held import TENANT
from tests.property.histories.wire import CONFIRMS_FORK, Trouble
from tests.property.protocol_model.state import Changer, Turn

Answer = TypeVar("Answer")


class Changing(Building):
    async def edit(self) -> None:
        turn = self.some_turn()
        if turn is not None:
            raw, mark = self.author.reworded(self.raws[turn.seq], self.rng.choice(WORDS))
            self.known.marks[mark] = (turn.seq, turn.rev + 1)
            changer = Changer(self.before.state.life, 0, "edit", turn.seq)
            if await self.changed(changer, lambda: self.sessions.edit_turn(TENANT, SESSION, raw["id"], prepared(raw))):
                self.raws[turn.seq] = raw
                self.known.marks[mark] = (turn.seq, self.rev_of(turn.seq))

    def some_turn(self) -> Turn | None:
        """One that is not removed, mostly a newer one: changes of the oldest leave no summary to look at."""
        log = [turn for turn in self.before.state.log if turn.rev]
        if not log:
            return None
        return self.rng.choice(log[-self.rng.choice((4, 8, 12, 1000)) :])

    def rev_of(self, seq: int) -> int:
        return next((turn.rev for turn in self.before.state.log if turn.seq == seq), 0) + 1

    async def remove(self) -> None:
        turn = self.some_turn()
        if turn is not None:
            turn_id = self.raws[turn.seq]["id"]
            redacted = redacted_turn(await self.sessions.find_turn(TENANT, SESSION, turn_id), load_counter())
            changer = Changer(self.before.state.life, 0, "remove", turn.seq)
            await self.changed(changer, lambda: self.sessions.remove_turn(TENANT, SESSION, turn_id, redacted))

    async def rewind(self) -> None:
        log = self.before.state.log
        if log:
            to_seq = self.rng.choice([turn.seq for turn in log[-self.rng.choice((4, 4, 8, 12, 1000)) : -1]] or [0])
            changer = Changer(self.before.state.life, 0, "rewind", to_seq)
            await self.changed(changer, lambda: self.sessions.rewind(TENANT, SESSION, to_seq))

    async def change_nothing(self) -> None:
        real = self.before.real
        if real is not None and real.entries:
            to_seq = self.rng.randint(real.entries[-1].seq, real.state.head)
            result = await self.sessions.rewind(TENANT, SESSION, to_seq)
            same("changed", result.changed, False)
            self.judge.unchanged(self.before, await self.look())

    async def changed(self, changer: Changer, call: Callable[[], Awaitable[object]]) -> bool:
        """Makes the change, perhaps with something else between two of its calls; True when it took effect."""
        self.arm(("append", "append", "edit", "rewind", "erase", "commit"))
        try:
            await self.patiently(call)
        except RefusedError as error:
            self.count(f"{changer.what} refused: {error.code}")
            same("something came between", self.came_after is not None, True)
            return False
        after, before = await self.look(), self.before
        if self.came_after:
            same("the life of a change", before.state.life, changer.life)
        if changer.what == "rewind":
            standing = [turn.seq for turn in before.state.log if turn.seq <= changer.seq]
            changer = changer._replace(seq=max(standing, default=0))
        if after.state.changes == before.state.changes:
            self.judge.unchanged(before, after)
            return False
        self.judge.change(before, changer, after)
        self.count(changer.what)
        self.reached["a change raised the epoch"] += after.state.epoch > before.state.epoch
        self.reached["a change left the epoch alone"] += after.state.epoch == before.state.epoch
        self.reached["a standby survived a change"] += bool(before.state.standby and after.state.standby)
        self.reached["a summary fell back"] += bool(
            before.state.active and after.state.active not in (None, before.state.active)
        )
        self.reached["a summary stayed"] += bool(before.state.active and after.state.active == before.state.active)
        return True

    def arm(self, kinds: tuple[str, ...]) -> None:
        """Perhaps something will come between the script calls of the step that begins."""
        if self.is_between:
            return
        self.came_after = None
        self.wire.disarm()
        if self.rng.random() < 0.5:
            kind, calls = self.rng.choice(kinds), self.rng.choice((0, 1, 1, 2, 3, 4, 5))
            self.wire.arm(Trouble(calls, "between", lambda: self.meanwhile(kind, calls)))

    async def meanwhile(self, kind: str, calls: int) -> None:
        """Another caller, when the stage's holder was silent for long; the state after it is the state before ours."""
        self.came_after, self.is_between = calls, True
        earlier, self.earlier_marks = await self.look(), dict(self.known.marks)
        assert self.sessions.now_ms is not None
        self.sessions.now_ms += milliseconds(STAGE_HELD) + 1
        self.before = await self.look()
        self.count(f"meanwhile: {kind}")
        if self.before.state.exists:
            match kind:
                case "append":
                    await self.append()
                case "edit":
                    await self.edit()
                case "rewind":
                    await self.rewind()
                case "commit":
                    await self.commit()
                case "erase":
                    await self.relive(alike=calls > 0)
        self.before, self.is_between = await self.look(), False
        if self.wire.interrupted == CONFIRMS_FORK:
            self.before = earlier

    async def patiently(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Waits for the stage as long as it takes; whatever was to come between has come, or never will."""
        try:
            return await self.asked(call)
        finally:
            if not self.is_between:
                self.interrupted = self.wire.interrupted
                self.wire.disarm()

    async def asked(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        while True:
            try:
                return await call()
            except OverloadedError:
                assert self.sessions.now_ms is not None
                self.sessions.now_ms += milliseconds(STAGE_HELD) + 1
