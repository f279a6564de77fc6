"""A user's book driven at random on a real server, beside a plain list of everything that was said."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from redis import Redis as BlockingRedis
from redis.asyncio import Redis

from prefold.errors import GoneError, NotFoundError
from prefold.facts import Fact, FactBook, NewFact, Source, Stated, text_of
from prefold.storage.keys import UserKeys
from prefold.storage.memory_types import TurnSpan
from prefold.storage.users import Users
from prefold.tokens import load_counter
from tests.support.canaries import in_keys
from tests.support.facts import START_MS, TENANT, USER, content, said, source
from tests.support.redis import RunningRedis

OTHERS = [(TENANT, "ada:x"), ("acme:ada", "x"), ("*", USER), (TENANT, "*")]
SINGLE = ["lives_in", "email", "motto"]
MANY = ["likes", "uses"]
COUNTER = load_counter()


@dataclass
class Told:
    """One thing that was said, as the oracle keeps it."""

    relation: str
    object: str
    order: tuple[int, int, int, int, str]
    """Moment, backend, seq, retraction, session."""
    source: Source | None
    retracts: bool = False
    by: str | None = None
    """Object that the backend put in its place."""


@dataclass
class Oracle:
    """The rules written down a second time, without rows, keys or indexes: each question goes through everything."""

    told: list[Told] = field(default_factory=list)
    suppressed: set[tuple[str, str]] = field(default_factory=set)

    def note(self, one: Told) -> None:
        if one not in self.told:
            self.told.append(one)

    def end_of(self, relation: str, obj: str) -> Told | None:
        """What ended a statement; None: it holds."""
        last = max(one.order for one in self.said(relation, obj))
        ends = [
            one
            for one in self.told
            if one.relation == relation
            and (one.order, one.object) > (last, obj)
            and (
                (one.retracts and one.object == obj) or (not one.retracts and one.object != obj and relation in SINGLE)
            )
            and (one.by is None or self.said(relation, one.by))
        ]
        return min(ends, key=lambda one: (one.order, one.object), default=None)

    def said(self, relation: str, obj: str) -> list[Told]:
        return [one for one in self.told if (one.relation, one.object, one.retracts) == (relation, obj, False)]

    def holding(self) -> set[tuple[str, str]]:
        stated = {(one.relation, one.object) for one in self.told if not one.retracts}
        return {(relation, obj) for relation, obj in stated if self.end_of(relation, obj) is None}

    def history(self) -> set[tuple[str, str]]:
        return {(one.relation, one.object) for one in self.told if not one.retracts}

    def forget_denials(self) -> None:
        """A backend's denial of what nobody says any more goes with it."""
        self.told = [
            one
            for one in self.told
            if not (one.retracts and one.source is None)
            or self.said(one.relation, one.object)
            or any(same.source for same in self.told if (same.relation, same.object) == (one.relation, one.object))
        ]


class Interrupted(Users):
    """Erases the user before a write, once."""

    async def write(self, tenant: str, user: str, **what: Any) -> bool:
        await self.erase(tenant, user)
        return await super().write(tenant, user, **what)


STATEMENTS = st.lists(
    st.tuples(
        st.sampled_from([*SINGLE, *MANY]),
        st.integers(0, 3),
        st.integers(1, 9),
        st.sampled_from(["s1", "s2"]),
        st.sampled_from([False, False, False, True]),
    ),
    min_size=1,
    max_size=4,
)


class FactBookMachine(RuleBasedStateMachine):
    """Bound to a server and a loop by the test."""

    server: RunningRedis
    runner: asyncio.Runner
    reached: set[str]

    def __init__(self) -> None:
        super().__init__()
        self.server.flush()
        self.redis = Redis.from_url(self.server.url)
        self.users = Users(self.redis)
        self.book = FactBook(self.users, COUNTER)
        self.oracle = Oracle()
        self.now_ms = START_MS + 1_000
        self.vectors: dict[str, str] = {}
        self.epochs = 0
        for tenant, user in OTHERS:
            self.run(self.book.add(tenant, user, NewFact("user", "likes", f"own {user}"), now_ms=self.now_ms))

    def teardown(self) -> None:
        self.run(self.redis.aclose())

    def run(self, call: Any) -> Any:
        return self.runner.get_loop().run_until_complete(call)

    def facts(self, *, history: bool = True) -> list[Fact]:
        found: list[Fact] = self.run(self.book.list(TENANT, USER, history=history, now_ms=self.now_ms))
        return found

    def stated(self, drawn: list[tuple[str, int, int, str, bool]]) -> list[Stated]:
        return [
            said(
                relation,
                f"Word{number}",
                seq,
                source=source(seq, session),
                retracts=retracts,
                is_single=relation in SINGLE,
            )
            for relation, number, seq, session, retracts in drawn
        ]

    def take(self, told: list[Stated]) -> None:
        for one in told:
            if (one.relation, one.object) not in self.oracle.suppressed:
                order = (one.said_at_ms, 0, one.source.seq, int(one.retracts), one.source.session)
                self.oracle.note(Told(one.relation, one.object, order, one.source, one.retracts))

    @rule(drawn=STATEMENTS)
    def learn(self, drawn: list[tuple[str, int, int, str, bool]]) -> None:
        told = self.stated(drawn)
        learnt = self.run(self.book.learn(TENANT, USER, told, now_ms=self.now_ms))
        again = self.run(self.book.learn(TENANT, USER, told[::-1], now_ms=self.now_ms + 7))
        assert (again.added, again.confirmed, again.superseded) == ([], [], [])
        assert learnt.refused == again.refused
        self.take(told)
        self.reached.add("refused" if learnt.refused else "learnt")
        if learnt.superseded:
            self.reached.add("superseded")

    @rule(drawn=STATEMENTS, other=STATEMENTS, number=st.integers(0, 3))
    def write_at_the_same_time(self, drawn: Any, other: Any, number: int) -> None:
        self.now_ms += 1

        async def all_of_them() -> None:
            books = [FactBook(self.users, COUNTER) for _ in range(2)]
            await asyncio.gather(
                books[0].learn(TENANT, USER, self.stated(drawn), now_ms=self.now_ms),
                books[1].learn(TENANT, USER, self.stated(other), now_ms=self.now_ms),
                self.book.add(TENANT, USER, NewFact("user", "uses", f"Own{number}"), now_ms=self.now_ms),
            )

        self.oracle.suppressed.discard(("uses", f"Own{number}"))
        self.run(all_of_them())
        self.take([*self.stated(drawn), *self.stated(other)])
        self.oracle.note(Told("uses", f"Own{number}", (self.now_ms, 1, 0, 0, ""), None))

    @rule(relation=st.sampled_from([*SINGLE, *MANY]), number=st.integers(0, 3))
    def add(self, relation: str, number: int) -> None:
        self.now_ms += 1
        obj = f"Word{number}"
        new = NewFact("user", relation, obj, is_single=relation in SINGLE)
        self.run(self.book.add(TENANT, USER, new, now_ms=self.now_ms))
        self.oracle.suppressed.discard((relation, obj))
        self.oracle.note(Told(relation, obj, (self.now_ms, 1, 0, 0, ""), None))

    @rule(pick=st.integers(0, 20), number=st.integers(0, 5))
    def correct(self, pick: int, number: int) -> None:
        live = sorted(self.facts(history=False), key=lambda one: (one.relation, one.object))
        if not live:
            return
        self.now_ms += 1
        old, obj = live[pick % len(live)], f"Word{number}"
        new = NewFact("user", old.relation, obj, is_single=old.relation in SINGLE)
        made = self.run(self.book.correct(TENANT, USER, old.id, new, now_ms=self.now_ms))
        assert (made.id == old.id) == (obj == old.object)
        self.oracle.suppressed.discard((old.relation, obj))
        self.oracle.note(Told(old.relation, obj, (self.now_ms, 1, 0, 0, ""), None))
        if obj != old.object:
            self.oracle.note(Told(old.relation, old.object, (self.now_ms, 1, 0, 1, ""), None, True, obj))
            self.reached.add("corrected")

    @rule(pick=st.integers(0, 20))
    def delete(self, pick: int) -> None:
        found = sorted(self.facts(), key=lambda one: (one.relation, one.object))
        if not found:
            return
        gone = found[pick % len(found)]
        self.run(self.book.delete(TENANT, USER, gone.id))
        replaced = [one for one in found if one.superseded_by == gone.id and one.id != gone.id]
        name = (gone.relation, gone.object)
        self.oracle.told = [one for one in self.oracle.told if (one.relation, one.object) != name]
        self.oracle.suppressed.add(name)
        again = said(*name, seq=1, source=source(1, "s1"), is_single=name[0] in SINGLE)
        assert self.run(self.book.learn(TENANT, USER, [again], now_ms=self.now_ms)).refused == {"suppressed": 1}
        self.reached.add("refused")
        for one in replaced:
            assert one.superseded_at_ms is not None
            self.oracle.note(Told(one.relation, one.object, (one.superseded_at_ms, 1, 0, 1, ""), None, True))
        self.reached.add("deleted")

    @rule(session=st.sampled_from(["s1", "s2"]), first=st.integers(1, 9), size=st.integers(0, 4), whole=st.booleans())
    def withdraw(self, session: str, first: int, size: int, whole: bool) -> None:
        spans = None if whole else [TurnSpan(first, first + size)]
        done = self.run(self.book.withdraw(TENANT, USER, session=session, spans=spans, now_ms=self.now_ms))

        def is_gone(one: Told) -> bool:
            return (
                one.source is not None
                and one.source.session == session
                and (whole or first <= one.source.seq <= first + size)
            )

        self.oracle.told = [one for one in self.oracle.told if not is_gone(one)]
        self.oracle.forget_denials()
        self.reached |= {name for name in ("dropped", "weakened", "restored") if getattr(done, name)}

    @rule(drawn=STATEMENTS)
    @precondition(lambda self: self.epochs < 2)
    def erase_under_a_writer(self, drawn: Any) -> None:
        told = [replace(one, object="Late") for one in self.stated(drawn) if not one.retracts]
        if not told:
            return
        try:
            self.run(FactBook(Interrupted(self.redis), COUNTER).learn(TENANT, USER, told, now_ms=self.now_ms))
        except GoneError:
            self.reached.add("erased")
        else:
            raise AssertionError("a writer that began before an erasure was not refused")
        self.oracle = Oracle()
        self.vectors = {}
        self.epochs += 1

    @rule(junk=st.binary(max_size=8))
    def break_a_row(self, junk: bytes) -> None:
        self.run(self.redis.hset(UserKeys.of(TENANT, USER).facts, "broken", junk))

    @rule()
    def index(self) -> None:
        """As an indexer does: it makes, makes anew or removes the vectors that it is told of."""
        seen = self.run(self.users.take_unindexed(TENANT, USER, 1_000))
        known = {one.id: one for one in self.facts()}
        for name in seen.ids:
            self.vectors.pop(name, None)
            if name in known and known[name].superseded_by is None:
                self.vectors[name] = text_of(known[name])
        self.run(self.users.mark_indexed(TENANT, USER, seen.ids, seen.version))
        assert self.vectors == {one.id: text_of(one) for one in known.values() if one.superseded_by is None}

    @rule(name=st.text(max_size=5))
    def ask_for_what_is_not_there(self, name: str) -> None:
        try:
            self.run(self.book.delete(TENANT, USER, f"no-{name}"))
        except (NotFoundError, UnicodeEncodeError):
            return
        raise AssertionError("a fact that is not there was deleted")

    @invariant()
    def what_holds_is_what_follows_from_what_was_said(self) -> None:
        assert {(one.relation, one.object) for one in self.facts(history=False)} == self.oracle.holding()
        assert {(one.relation, one.object) for one in self.facts()} == self.oracle.history()

    @invariant()
    def the_profile_shows_facts_that_hold_within_its_cap(self) -> None:
        profile = self.run(self.book.profile(TENANT, USER, now_ms=self.now_ms))
        assert profile.tokens == COUNTER.count(profile.text) <= 400
        assert set(profile.text.splitlines()) == {text_of(one) for one in self.facts(history=False)}

    @invariant()
    def words_that_nobody_says_any_more_are_in_no_key(self) -> None:
        present = {one.object for one in self.oracle.told}
        words = [f"Word{number}".encode() for number in range(6) if f"Word{number}" not in present]
        with BlockingRedis.from_url(self.server.url) as server:
            assert in_keys(server, [*words, b"Late"]) == {}

    @invariant()
    def other_users_have_what_they_had(self) -> None:
        for tenant, user in OTHERS:
            found = self.run(self.book.list(tenant, user, history=True, now_ms=self.now_ms))
            assert [one.object for one in found] == [f"own {user}"]
            assert len(content(found)) == 1
