"""Embed passes, changes of turns and accidents, in an order that a seed decides step by step.

Every call of a pass to log, store or embedder is a step; so is each point of an upsert. Between any two steps turns may be
appended, edited, removed, rewound, their session erased and begun anew, other passes may run, and any pass may be killed.
"""

import random
from collections.abc import Coroutine, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import coroutine
from typing import Any

from prefold.errors import UnavailableError
from prefold.jobs import TO_HEAD
from prefold.recall import TurnPoint, TurnRange, index_turn
from prefold.recall.scope import Scope
from prefold.storage.embed_types import EmbedDebt, EmbedSpan, MarkOutcome
from prefold.storage.limits import ERASE_GRACE, milliseconds
from prefold.storage.types import SessionRef, StoredTurn
from prefold.worker.embed_pass import EmbedOptions, EmbedPass
from tests.support.embedding import FakeEmbedder, FakeSession, FakeTurnLog

GRACE_MS = milliseconds(ERASE_GRACE)
REQUEST_MS = 5_000
"""A request that its sender did not live to see answered may still be done until then."""
COLLECTIONS = ("turns_a_4", "turns_b_4", "turns_c_4")
SESSIONS = ("s", "t")
Revision = tuple[int, int]
"""A turn's number and revision."""
_TEXTS = ("one", "two", "three", " ")


@coroutine
def step() -> Generator[None, None, None]:
    """Lets others go first."""
    yield


class Vectors:
    """A vector store: points of all collections."""

    def __init__(self) -> None:
        self.points: dict[tuple[str, SessionRef], dict[Revision, TurnPoint]] = {}

    def put(self, collection: str, point: TurnPoint) -> None:
        self.of(point.ref, collection)[point.seq, point.revision] = point

    def take_out(self, scope: Scope) -> None:
        for stored in self.points.values():
            for key in [key for key, point in stored.items() if scope.admits(point.payload())]:
                del stored[key]

    def of(self, ref: SessionRef, collection: str) -> dict[Revision, TurnPoint]:
        return self.points.setdefault((collection, ref), {})


@dataclass(eq=False)
class Stepped:
    """Log and store as one pass sees them."""

    log: FakeTurnLog
    vectors: Vectors
    collection: str
    looked_at_ms: int = 0
    wrote_late: bool = False
    in_flight: list[TurnPoint] = field(default_factory=list)
    fails_next: bool = False

    @property
    def may_die(self) -> bool:
        """Nobody promises anything for one that is stopped for nearly the grace between its look and its write, and killed
        before it looks again."""
        return not self.wrote_late and not self._is_late

    @property
    def _is_late(self) -> bool:
        return self.log.now_ms - self.looked_at_ms >= GRACE_MS - REQUEST_MS

    async def embed_debt(self, ref: SessionRef, collection: str) -> EmbedDebt | None:
        await self._step()
        self.looked_at_ms = self.log.now_ms
        return await self.log.embed_debt(ref, collection)

    async def read_turns(self, tenant: str, session: str, after_seq: int, limit: int) -> list[StoredTurn]:
        await self._step()
        return await self.log.read_turns(tenant, session, after_seq, limit)

    async def mark_embedded(self, ref: SessionRef, upto_seq: int, collection: str, **done: Any) -> MarkOutcome:
        await self._step()
        return await self.log.mark_embedded(ref, upto_seq, collection, **done)

    async def upsert(self, points: Sequence[TurnPoint]) -> None:
        await self._step()
        self.in_flight = list(points)
        while self.in_flight:
            self.wrote_late |= self._is_late
            self.vectors.put(self.collection, self.in_flight.pop(0))
            await self._step()

    async def delete(self, tenant: str, *, session: str, incarnation: str) -> None:
        await self._step()
        self.vectors.take_out(Scope(tenant=tenant, session=session, incarnation=incarnation))

    async def delete_turns(self, ref: SessionRef, turns: Sequence[TurnRange]) -> None:
        for one in turns:
            await self._step()
            self.vectors.take_out(within(ref, one))

    async def _step(self) -> None:
        await step()
        if self.fails_next:
            self.fails_next = False
            raise UnavailableError("a part is away")


@dataclass(eq=False)
class Running:
    """A pass under way."""

    seen: Stepped
    work: Coroutine[Any, Any, object]
    is_stopped: bool = False
    """As by SIGSTOP."""

    def step(self) -> bool:
        """False: it has ended."""
        try:
            self.work.send(None)
        except (StopIteration, UnavailableError):
            return False
        return True


def within(ref: SessionRef, turns: TurnRange) -> Scope:
    return Scope(tenant=ref.tenant, session=ref.session, incarnation=ref.incarnation, turns=[turns])


class World:
    """One history. ``run`` plays it, ``settle`` lets everything come to its end; both check what must hold."""

    def __init__(self, seed: str) -> None:
        self.chance = random.Random(seed)
        self.log = FakeTurnLog(most_redone=2)
        self.vectors = Vectors()
        self.running: list[Running] = []
        self.forgetting: list[tuple[SessionRef, TurnRange]] = []
        self.late: list[tuple[int, str, TurnPoint]] = []
        self.ends: list[tuple[int, SessionRef]] = []
        self.lives = 0
        self.crashes = 0
        self.story: list[str] = []
        self._deeds = {
            self._go_on: 60,
            self._start: 8,
            self._append: 8,
            self._edit: 6,
            self._remove: 2,
            self._rewind: 3,
            self._set_user: 1,
            self._erase: 1,
            self._forget: 5,
            self._crash: 3,
            self._stop: 4,
            self._continue: 2,
            self._wait: 4,
        }

    def run(self, deeds: int) -> None:
        for _ in range(deeds):
            [deed] = self.chance.choices(list(self._deeds), list(self._deeds.values()))
            deed()
            self._check_marks()

    def settle(self) -> None:
        """No more changes: what runs ends, what is due is done, until nothing is."""
        for one in self.running:
            one.is_stopped = False
        self._end_all()
        for ref in self.log.lives:  # the other collection's passes may have ended what was due in this one
            self._begin(EmbedSpan(ref.tenant, ref.session, ref.incarnation, 1, TO_HEAD), COLLECTIONS[0])
        self._end_all()
        for _ in range(60):
            self._pass_time(self.chance.choice([1_000, 10_000, GRACE_MS]))
            due = [ref for ref, at_ms in self.log.due_at.items() if at_ms <= self.log.now_ms]
            if not self.log.due_at and not self.ends and not self.late:
                break
            for ref in due:
                self._begin(EmbedSpan(ref.tenant, ref.session, ref.incarnation, 1, TO_HEAD), COLLECTIONS[0])
            self._end_all()
        else:
            raise AssertionError(f"the work never ends: {self.log.due_at}")
        self._check_end()

    def _end_all(self) -> None:
        while self.running:
            self._go_on()
            self._check_marks()

    # What happens

    def _go_on(self) -> None:
        awake = [one for one in self.running if not one.is_stopped]
        if awake:
            one = self.chance.choice(awake)
            self.story.append(f"step {id(one) % 1000}")
            if not one.step():
                self.running.remove(one)

    def _start(self) -> None:
        if len(self.running) < 4 and (ref := self._any_life(dead_too=True)):
            first = self.chance.randint(1, 9)
            last = self.chance.choice([first, TO_HEAD])
            [collection] = self.chance.choices(COLLECTIONS, [80, 15, 5])
            self._begin(EmbedSpan(ref.tenant, ref.session, ref.incarnation, first, last), collection)

    def _begin(self, span: EmbedSpan, collection: str) -> None:
        seen = Stepped(self.log, self.vectors, collection)
        options = EmbedOptions(self.chance.randint(1, 4), self.chance.randint(2, 12), lanes=1)  # no loop runs here
        work = EmbedPass(seen, seen, FakeEmbedder(), lambda: False, options)
        self.running.append(Running(seen, work.run([span])))
        self.story.append(f"begin {id(self.running[-1]) % 1000} {span}")

    def _append(self) -> None:
        session = self.chance.choice(SESSIONS)
        ref = next((one for one in self.log.lives if one.session == session), None)
        if ref is None:
            self.lives += 1
            ref = SessionRef("acme", session, f"life{self.lives}")
        self.log.add(ref, *self.chance.choices(_TEXTS, k=self.chance.randint(1, 3)))
        self.story.append(f"append {ref}")

    def _edit(self) -> None:
        if chosen := self._any_turn():
            self.log.edit(*chosen, self.chance.choice(_TEXTS))
            self._owe_forgetting(*chosen)

    def _remove(self) -> None:
        if chosen := self._any_turn():
            self.log.remove(*chosen)
            self._owe_forgetting(*chosen)

    def _owe_forgetting(self, ref: SessionRef, seq: int) -> None:
        revision = self.log.lives[ref].turns[seq].revision
        self.forgetting.append((ref, TurnRange(seq, seq, revision)))
        self.story.append(f"change {ref} {seq} to revision {revision}")

    def _rewind(self) -> None:
        if ref := self._any_life():
            head = self.log.lives[ref].head
            to_seq = self.chance.randint(0, head)
            self.log.rewind(ref, to_seq)
            if to_seq < head:
                self.forgetting.append((ref, TurnRange(to_seq + 1, head)))
            self.story.append(f"rewind {ref} to {to_seq}")

    def _set_user(self) -> None:
        ref = self._any_life()
        if ref and not self.log.lives[ref].user:
            self.log.set_user(ref, "ann")

    def _erase(self) -> None:
        if ref := self._any_life():
            self.log.erase(ref)
            self.ends.append((self.log.now_ms + GRACE_MS, ref))
            self.story.append(f"erase {ref}")

    def _forget(self) -> None:
        """The gateway deletes what a change made void, or dies before it can."""
        if self.forgetting:
            ref, turns = self.forgetting.pop(self.chance.randrange(len(self.forgetting)))
            if self.chance.random() < 0.5:
                self.vectors.take_out(within(ref, turns))

    def _crash(self) -> None:
        """A pass is killed, or a part fails it."""
        mortal = [one for one in self.running if one.seen.may_die]
        if not mortal:
            return
        victim = self.chance.choice(mortal)
        self.crashes += 1
        self.story.append(f"crash {id(victim) % 1000}")
        if self.chance.random() < 0.3:
            victim.seen.fails_next = True
            self._end_if_done(victim)
            return
        self.running.remove(victim)
        victim.work.close()
        by_ms = self.log.now_ms + self.chance.randint(0, REQUEST_MS)
        self.late += [(by_ms, victim.seen.collection, point) for point in victim.seen.in_flight]

    def _stop(self) -> None:
        if self.running:
            self.chance.choice(self.running).is_stopped = True

    def _continue(self) -> None:
        if self.running:
            self.chance.choice(self.running).is_stopped = False

    def _end_if_done(self, victim: Running) -> None:
        if not victim.step():
            self.running.remove(victim)

    def _wait(self) -> None:
        self._pass_time(self.chance.choice([10, 1_000, 6_000, GRACE_MS, 3 * GRACE_MS]))

    def _pass_time(self, ms: int) -> None:
        self.log.now_ms += ms
        now_ms = self.log.now_ms
        for _, collection, point in (one for one in self.late if one[0] <= now_ms):
            self.vectors.put(collection, point)
        self.late = [one for one in self.late if one[0] > now_ms]
        for _, ref in (one for one in self.ends if one[0] <= now_ms):
            self.vectors.take_out(Scope(tenant=ref.tenant, session=ref.session, incarnation=ref.incarnation))
        self.ends = [one for one in self.ends if one[0] > now_ms]

    def _any_life(self, *, dead_too: bool = False) -> SessionRef | None:
        if dead_too and self.lives and self.chance.random() < 0.05:
            return SessionRef("acme", self.chance.choice(SESSIONS), f"life{self.chance.randint(1, self.lives)}")
        return self.chance.choice(list(self.log.lives)) if self.log.lives else None

    def _any_turn(self) -> tuple[SessionRef, int] | None:
        ref = self._any_life()
        seqs = [seq for seq, turn in self.log.lives[ref].turns.items() if not turn.removed] if ref else []
        return (ref, self.chance.choice(seqs)) if ref and seqs else None

    # What must hold

    def _check_marks(self) -> None:
        """Always: what a mark claims is stored."""
        for ref, life in self.log.lives.items():
            for collection, upto in life.marks.items():
                stored = self.vectors.of(ref, collection)
                for seq, revision in _wanted(life):
                    claimed = seq <= upto and seq not in life.redo
                    is_in = (seq, revision) in stored
                    assert is_in or not claimed, f"{ref} is marked to {upto} in {collection}, but not {seq}"

    def _check_end(self) -> None:
        """When all is done: the points are those of the present turns, and nothing is owed."""
        for ref, life in self.log.lives.items():
            assert (life.redo, life.purges) == ([], []), ref
            wanted = set(_wanted(life))
            stored = self.vectors.of(ref, COLLECTIONS[0])
            assert set(stored) == wanted, f"{ref}: {set(stored)} instead of {wanted}"
            for collection in COLLECTIONS[1:]:
                outdated = set(self.vectors.of(ref, collection)) - wanted
                assert not outdated, f"{ref}: outdated in {collection}: {outdated}"
            assert self.crashes or {one.user for one in stored.values()} <= {life.user}, ref
        for (_, ref), stored in self.vectors.points.items():
            assert not stored or ref in self.log.lives, f"a life that is over left points: {ref}"


def _wanted(life: FakeSession) -> Iterator[Revision]:
    for seq, turn in life.turns.items():
        if not turn.removed and _says_something(turn.verbatim_json):
            yield seq, turn.revision


@cache
def _says_something(verbatim_json: bytes) -> bool:
    return bool(index_turn(verbatim_json).text)
