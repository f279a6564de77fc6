"""What a backend does with sessions. Each call compares the answer with what the oracles expect."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from prefold.conversation import PreparedTurn, TurnKind, prepare_turn, redacted_turn
from prefold.errors import GoneError, NotFoundError, OverloadedError, PrefoldError, UnavailableError
from prefold.storage import Sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.limits import LEAST_ROOM_TOKENS, STAGE_HELD, milliseconds
from prefold.storage.state import SessionState
from prefold.storage.types import ChangeResult, SessionOptions
from prefold.tokens import load_counter
from tests.property.histories.author import Raw
from tests.property.histories.held import TENANT, Held
from tests.property.histories.oracle import Oracle
from tests.property.histories.wire import Wire

A_DAY_MS = 86_400_000
Answer = TypeVar("Answer")
Call = Callable[[], Awaitable[Answer]]


class LostError(Exception):
    """The caller died with the answer, or before the question: it does not ask again."""


class Backend:
    """``now_ms`` of the sessions is the clock of all scripts."""

    def __init__(self, sessions: Sessions, wire: Wire, count: Callable[[str], None]) -> None:
        self.sessions = sessions
        self.wire = wire
        self.count = count
        self.dies = False
        """The next call that the wire loses is not repeated."""

    @property
    def now_ms(self) -> int:
        assert self.sessions.now_ms is not None
        return self.sessions.now_ms

    async def state(self, held: Held) -> SessionState | None:
        client: Any = self.sessions.client
        packed = await client.hget(held.keys.meta, "state")
        return SessionState.unpack(packed) if packed else None

    async def begins(self, held: Held, oracle: Oracle) -> None:
        """A new life, which has begun on the server."""
        state = await self.state(held)
        assert state is not None and state.incarnation not in held.former, "a life that was over"
        held.begins(oracle, state.incarnation)

    async def send(self, call: Call[Answer], held: Held) -> tuple[Answer, bool]:
        """The answer, and whether it was asked for twice because the first one was lost."""
        again = False
        while True:
            try:
                return await call(), again
            except UnavailableError:
                assert self.wire.happened and not again, "the server did not answer"
                again = True
                held.staged_until_ms = max(held.staged_until_ms, self.now_ms + milliseconds(STAGE_HELD))
                if self.dies:
                    self.dies = False
                    raise LostError from None
            except OverloadedError as error:
                must_be(error, "changing")
                assert held.staged_until_ms > self.now_ms, "nobody else changes it"
                self.count("waited for another change")
                self.sessions.now_ms = held.staged_until_ms + 1

    async def refused(self, call: Call[Any], held: Held) -> PrefoldError | None:
        """Sends; the refusal, or None."""
        try:
            await self.send(call, held)
        except (LostError, UnavailableError):
            raise
        except PrefoldError as error:
            return error
        return None

    # Publishing

    async def append(self, held: Held, *raws: Raw) -> None:
        turns = [prepared(raw) for raw in raws]
        try:
            answer, again = await self.send(lambda: self.sessions.append(TENANT, held.name, turns), held)
        except LostError:
            await self._append_lost(held, raws, turns)
            return
        except UnavailableError:
            raise
        except PrefoldError as error:
            must_be(error, self.append_refusal(held, turns))
            self.count(f"append: {error.code}")
            return
        assert self.append_refusal(held, turns) == ""
        if held.oracle is None:
            await self.begins(held, Oracle())
        life = held.life
        for raw, turn, placed in zip(raws, turns, answer.turns, strict=True):
            known = life.seqs.get(turn.id)
            seq = known or life.publish(raw, turn)
            assert placed.seq == seq
            assert placed.duplicate == (known is not None) or again
        assert answer.tokens <= answer.hard_limit_tokens
        self.count(f"append: {answer.status}")
        if answer.swapped_now:
            self.count("append swaps")

    async def _append_lost(self, held: Held, raws: Sequence[Raw], turns: Sequence[PreparedTurn]) -> None:
        """All of the batch or nothing."""
        state = await self.state(held)
        if state is None or (held.oracle is not None and state.head == held.oracle.head):
            return
        assert self.append_refusal(held, turns) == ""
        if held.oracle is None:
            await self.begins(held, Oracle())
        for raw, turn in zip(raws, turns, strict=True):
            if turn.id not in held.life.seqs:
                held.life.publish(raw, turn)
        self.count("append: done, nobody knows")

    @staticmethod
    def append_refusal(held: Held, turns: Sequence[PreparedTurn]) -> str:
        """Code of the refusal that a batch meets; empty: none."""
        if held.oracle is None:
            return GoneError.code if held.erased else ""
        codes = (held.oracle.refusal(turn.id, turn.digest) for turn in turns)
        return next((code for code in codes if code), "")

    async def open(self, held: Held, options: SessionOptions) -> None:
        """Refused, without a trace, when the system turns that led leave too little of a new limit."""
        before = await self.state(held)
        limit = options.hard_limit_tokens
        if before and limit and limit - before.fix < 2 * LEAST_ROOM_TOKENS:
            self.count("limit refused")
            refused = await self.refused(lambda: self.sessions.open(TENANT, held.name, options), held)
            assert refused is not None and refused.code == "no_room"
            assert await self.state(held) == before
            return
        await self.send(lambda: self.sessions.open(TENANT, held.name, options), held)
        if held.oracle is None:
            self.count("created again" if held.former else "created")
            await self.begins(held, Oracle())

    # Changing what was said

    async def edit(self, held: Held, turn_id: str, raw: Raw, mark: str) -> None:
        turn = prepared(raw)

        async def edit() -> ChangeResult:
            return await self.sessions.edit_turn(TENANT, held.name, turn_id, turn)

        async def apply() -> None:
            seq = held.life.seqs[turn_id]
            if raw["content"] != held.life.said[seq].raw["content"]:
                held.changed(seq - 1, held.life.edit(seq, raw, turn, mark))

        await self._change(held, "edit", edit, lambda: self._turn_refusal(held, turn_id), apply)

    async def remove(self, held: Held, turn_id: str) -> None:
        if held.oracle is None or turn_id not in held.oracle.seqs or held.oracle.seqs[turn_id] not in held.oracle.said:
            return
        stored = await self.sessions.find_turn(TENANT, held.name, turn_id)
        redacted = redacted_turn(stored, load_counter())

        async def remove() -> ChangeResult:
            return await self.sessions.remove_turn(TENANT, held.name, turn_id, redacted)

        async def apply() -> None:
            seq = held.life.seqs[turn_id]
            if not held.life.said[seq].removed:
                held.changed(seq - 1, held.life.remove(seq))

        def refusal() -> str:
            code = self._turn_refusal(held, turn_id)
            return "" if code == "turn_removed" else code

        await self._change(held, "remove", remove, refusal, apply)

    async def rewind(self, held: Held, to_seq: int) -> None:
        async def rewind() -> ChangeResult:
            return await self.sessions.rewind(TENANT, held.name, to_seq)

        async def apply() -> None:
            taken = [seq for seq in held.life.said if seq > to_seq]
            if taken:
                held.changed(taken[0] - 1, held.life.rewind(to_seq))

        def refusal() -> str:
            return self._life_refusal(held) or ("seq_ahead" if to_seq > held.life.head else "")

        await self._change(held, "rewind", rewind, refusal, apply)

    async def _change(
        self,
        held: Held,
        name: str,
        call: Call[ChangeResult],
        refusal: Callable[[], str],
        apply: Callable[[], Awaitable[None]],
    ) -> None:
        """What else happens between the calls of a change comes before it: it takes effect with its last call."""
        life = held.oracle
        try:
            result, again = await self.send(call, held)
        except LostError:
            await self._lost(held, name, apply)
            return
        except UnavailableError:
            raise
        except PrefoldError as error:
            if error.code == "no_room":
                self._may_lack_room(held)
                return
            if held.oracle is life or error.code != "session_not_found":
                must_be(error, refusal())
            self.count(f"{name}: {error.code}")
            return
        assert refusal() == ""
        assert held.oracle is life or not self.wire.passed, "a change that began in a former life"
        before = held.life.changes
        await apply()
        changed = held.life.changes > before
        assert result.changed == changed or (again and changed)
        assert result.head_seq == held.life.head
        assert result.tokens <= result.hard_limit_tokens
        held.may_be_staged = not changed and (again or held.may_be_staged)
        self.count(f"{name}: {'changed' if changed else 'same'}")

    async def _lost(self, held: Held, name: str, apply: Callable[[], Awaitable[None]]) -> None:
        """Nobody will ask again: what the session says now is what happened."""
        state = await self.state(held)
        if held.oracle is not None and state is not None and state.chg > held.oracle.changes:
            await apply()
            held.may_be_staged = False
            self.count(f"{name}: done, nobody knows")
        else:
            held.may_be_staged = True
            self.count(f"{name}: left half done")

    def _may_lack_room(self, held: Held) -> None:
        assert any(one.prepared.kind is TurnKind.SYSTEM for one in held.life.said.values())
        self.count("edit: no_room")

    def _life_refusal(self, held: Held) -> str:
        if held.oracle is not None:
            return ""
        return GoneError.code if held.erased else "session_not_found"

    def _turn_refusal(self, held: Held, turn_id: str) -> str:
        return self._life_refusal(held) or held.life.refusal(turn_id, None)

    # Ending

    async def erase(self, held: Held) -> None:
        try:
            erased, again = await self.send(lambda: self.sessions.erase(TENANT, held.name), held)
        except NotFoundError:
            assert held.oracle is None and not held.erased
            return
        except LostError:
            if held.oracle is not None and await self.state(held) is None:
                held.ends(erased=True)
            return
        if held.oracle is None:
            assert held.erased and erased.incarnation == ""
            return
        assert again or (erased.incarnation, erased.turns) == (held.incarnation, len(held.life.said))
        assert erased.keys_left == 0
        living = {name for name in held.forks if await self.sessions.client.exists(SessionKeys.of(TENANT, name).meta)}
        assert again or set(erased.forks) >= living
        held.ends(erased=True)
        self.count("erased")

    async def end_by_age(self, held: Held) -> None:
        """Its time comes: a worker erases it, and an append may begin it anew."""
        state = await self.state(held)
        if state is None or held.oracle is None:
            return
        view = await self.sessions.view(TENANT, held.name)
        if self.now_ms < state.ends - A_DAY_MS:
            assert not await self.sessions.expire(view.ref), "ended before its time"
        self.sessions.now_ms = max(self.now_ms, state.ends + 1)
        assert await self.sessions.expire(view.ref)
        await self.sessions.end_expiry(view.ref)
        held.ends(erased=False)
        self.count("ended by age")

    async def find(self, held: Held, turn_id: str) -> None:
        refused = await self.refused(lambda: self.sessions.find_turn(TENANT, held.name, turn_id), held)
        expected = self._turn_refusal(held, turn_id)
        assert (refused.code if refused else "") == ("" if expected == "turn_removed" else expected)

    async def fails(self, held: Held, call: Call[Any], kind: type[PrefoldError], code: str) -> None:
        refused = await self.refused(call, held)
        assert isinstance(refused, kind) and refused.code == code


def must_be(error: PrefoldError, code: str) -> None:
    """The refusal that the oracles expect; empty: none."""
    if error.code != code:
        raise AssertionError(f"refused with {error.code} instead of {code or 'nothing'}") from error


def prepared(raw: Raw) -> PreparedTurn:
    return prepare_turn(raw, 0, load_counter(), lambda: "unused")
