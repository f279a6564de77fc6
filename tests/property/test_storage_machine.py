"""Random histories through the real scripts on a real server, each step checked against a small oracle.

A failure prints the steps and Hypothesis's ``@reproduce_failure`` line, which repeats exactly this history.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from prefold.conversation import prepare_turn
from prefold.errors import ConflictError, InvalidInputError
from prefold.storage import Sessions, connect_sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.limits import LEAST_ROOM_TOKENS
from prefold.storage.state import SessionState
from prefold.storage.types import BuildTicket, BuiltSummary, HeadFragment, SessionOptions
from prefold.tokens import load_counter
from tests.property.storage_author import CALL_IDS, Author
from tests.property.storage_promises import CARRIED_TOKENS, Oracle, Promises, Snapshot
from tests.support.redis import RunningRedis

TENANT, SESSION = "acme", "s1"
LEASE_MS = 20_000
START_MS = 2_000_000_000_000
LIMITS = (1000, 1500, 3000, 6000)
WORDS = (1, 1, 8, 30, 60, 60, 200, 500, 1400)
FEW_WORDS = (1, 30, 60, 150)
MUST_REACH = {
    *(f"append: {status}" for status in ("ok", "soft", "swapped", "degraded")),
    *("begin: ticket", "begin: not_due", "commit: standby", "commit: swapped", "commit: stale", "append swaps"),
}
MUST_REACH_IN_MANY = {
    *("begin: busy", "begin: backoff", "begin: no_cut", "head carries a turn", "calibrated"),
    *("commit: late", "commit: turn not carried", "commit: no_gain"),
    *("round lost from view", "thinking holds a swap"),
}
"""Rare: a short run may miss one of them."""
words = st.sampled_from(WORDS)
few_words = st.sampled_from(FEW_WORDS)


@dataclass
class Builder:
    """One ticket, and what the oracle knows of it."""

    ticket: BuildTicket
    lease_until_ms: int
    over: bool = False
    """Committed or given up."""


class StorageMachine(RuleBasedStateMachine):
    """``Sessions`` on one session. ``server`` and ``runner`` are shared by all histories of a run."""

    server: RunningRedis
    runner: asyncio.Runner
    reached: Counter[str]
    """What the histories of a run came through."""

    def __init__(self) -> None:
        super().__init__()
        self.server.flush()
        self.context = connect_sessions(self.server.url)
        self.sessions: Sessions = self.runner.run(self.context.__aenter__())
        self.sessions.now_ms = START_MS
        self.keys = SessionKeys.of(TENANT, SESSION)
        self.oracle = Oracle()
        self.promises = Promises(self.oracle)
        self.builders: list[Builder] = []
        self.author = Author()
        self.run(self.sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=LIMITS[1], keep_recent_turns=2)))

    def run(self, call: Any) -> Any:
        return self.runner.run(call)

    def teardown(self) -> None:
        try:
            self.a_build_still_helps()
        finally:
            self.run(self.context.__aexit__(None, None, None))

    # What a backend does

    def append(self, *raws: dict[str, Any]) -> None:
        """Publishes a batch and compares the answer with what the oracle expects."""
        turns = [prepare_turn(raw, n, load_counter(), lambda: "unused") for n, raw in enumerate(raws)]
        answer = self.run(self.sessions.append(TENANT, SESSION, turns))
        for raw, turn, placed in zip(raws, turns, answer.turns, strict=True):
            known = self.oracle.seq_of(raw["id"])
            assert (placed.seq, placed.duplicate) == (known or len(self.oracle.published) + 1, known is not None)
            if known is None:
                self.oracle.published.append(raw)
                self.oracle.prepared.append(turn)
        assert answer.tokens <= answer.hard_limit_tokens
        self.reached[f"append: {answer.status}"] += 1
        self.reached["append swaps"] += answer.swapped_now

    @rule(role=st.sampled_from(["user", "assistant"]), count=words)
    def say(self, role: str, count: int) -> None:
        self.append(self.author.plain(role, count))

    @rule(sizes=st.lists(st.tuples(st.sampled_from(["user", "assistant"]), words), min_size=2, max_size=5))
    def say_many(self, sizes: list[tuple[str, int]]) -> None:
        self.append(*[self.author.plain(role, count) for role, count in sizes])

    @rule(counts=st.lists(few_words, min_size=4, max_size=16), ready=st.booleans())
    def talk(self, counts: list[int], ready: bool) -> None:
        """Turn by turn, with a builder at hand or until there is something for one to do."""
        for number, count in enumerate(counts):
            self.append(self.author.plain("assistant" if number % 2 else "user", count))
            if self.wanted():
                if not ready:
                    return
                self.build(20)

    @rule(
        ids=st.lists(st.sampled_from(CALL_IDS), min_size=1, max_size=3, unique=True), count=words, thinks=st.booleans()
    )
    def call(self, ids: list[str], count: int, thinks: bool) -> None:
        self.append(self.author.calls(ids, count, thinks=thinks))

    @rule(ids=st.lists(st.sampled_from(CALL_IDS), min_size=1, max_size=3, unique=True), count=words, text=st.booleans())
    def answer(self, ids: list[str], count: int, text: bool) -> None:
        """Results of calls that may be open, answered long ago, or never made."""
        self.append(self.author.results(ids, count, text=text))

    @rule(counts=st.lists(few_words, min_size=1, max_size=6), thinks=st.booleans())
    def work(self, counts: list[int], thinks: bool) -> None:
        """An agent's run: rounds without a word of the user."""
        for count in counts:
            if self.wanted():
                self.build(20)
            self.append(
                self.author.calls(["A", "B"], 1, thinks=thinks), self.author.results(["B", "A"], count, text=False)
            )

    @rule(counts=st.lists(few_words, min_size=3, max_size=12))
    def call_in_vain(self, counts: list[int]) -> None:
        """Calls upon calls: one open round that grows beyond any room."""
        for count in counts:
            self.append(self.author.calls(list(CALL_IDS), count, thinks=False))

    @rule(count=words)
    def instruct(self, count: int) -> None:
        self.append(self.author.made_turn("system", self.author.text(count)))

    @rule(factor=st.sampled_from([0.5, 1.0, 1.3, 3.0]))
    def report_usage(self, factor: float) -> None:
        view = self.run(self.sessions.view(TENANT, SESSION))
        reported = math.ceil(view.tokens / view.calibration * factor)
        self.append(
            self.author.made_turn(
                "assistant", self.author.text(3), usage={"input_tokens": reported, "output_tokens": 3}
            )
        )

    @precondition(lambda self: self.oracle.published)
    @rule(data=st.data())
    def say_again(self, data: st.DataObject) -> None:
        """A retry, perhaps in one batch with something new."""
        again = data.draw(st.sampled_from(self.oracle.published))
        self.append(again, *([self.author.plain("user", 2)] if data.draw(st.booleans()) else []))

    @precondition(lambda self: self.oracle.published)
    @rule(data=st.data())
    def contradict(self, data: st.DataObject) -> None:
        """A known id with other content: refused, and nothing of its batch is stored."""
        known = data.draw(st.sampled_from(self.oracle.published))
        other = {"id": known["id"], "role": "user", "content": "something else"}
        turns = [
            prepare_turn(raw, 0, load_counter(), lambda: "unused") for raw in (self.author.plain("user", 2), other)
        ]
        with pytest.raises(ConflictError, match="other content"):
            self.run(self.sessions.append(TENANT, SESSION, turns))

    @rule(limit=st.sampled_from(LIMITS), keep=st.sampled_from([1, 2, 6]), ratio=st.sampled_from([0.4, 0.7, 0.85]))
    def set_limits(self, limit: int, keep: int, ratio: float) -> None:
        """Refused, without a trace, when the system turns that led leave too little of the new limit."""
        options = SessionOptions(hard_limit_tokens=limit, keep_recent_turns=keep, soft_ratio=ratio)
        before = self.run(self.snapshot())
        if limit - before.state.fix >= 2 * LEAST_ROOM_TOKENS:
            self.run(self.sessions.open(TENANT, SESSION, options))
            return
        self.reached["limit refused"] += 1
        with pytest.raises(InvalidInputError) as refused:
            self.run(self.sessions.open(TENANT, SESSION, options))
        assert refused.value.code == "no_room"
        assert self.run(self.snapshot()) == before

    # What builders and the clock do

    def state(self) -> SessionState:
        packed = self.run(self.sessions.client.hget(self.keys.meta, "state"))
        return SessionState.unpack(packed)

    def wanted(self) -> bool:
        """Past the soft threshold, and not over the limit."""
        state = self.state()
        return not state.nx and not state.deg and state.tok >= state.room * state.ratio // 1000

    @property
    def now_ms(self) -> int:
        assert self.sessions.now_ms is not None
        return self.sessions.now_ms

    def holder(self) -> Builder | None:
        """Who has the lease."""
        newest = self.builders[-1] if self.builders else None
        return newest if newest and not newest.over and newest.lease_until_ms > self.now_ms else None

    @rule()
    def begin(self) -> None:
        held = self.holder()
        incarnation = self.state().incarnation
        ticket = self.run(self.sessions.begin_build(TENANT, SESSION, incarnation, LEASE_MS))
        self.reached[f"begin: {ticket if isinstance(ticket, str) else 'ticket'}"] += 1
        if isinstance(ticket, BuildTicket):
            assert held is None, "a second lease"
            self.builders.append(Builder(ticket, self.now_ms + LEASE_MS))

    @precondition(lambda self: self.holder())
    @rule()
    def overtake(self) -> None:
        """The holder sleeps through its lease, another one begins, and the first wakes up and commits."""
        late = self.builders[-1]
        self.wait(LEASE_MS + 1)
        self.begin()
        if self.builders[-1] is not late:
            self.reached["commit: late"] += 1
            self.commit_of(late, 20)

    def built(self, ticket: BuildTicket, tokens: int) -> BuiltSummary:
        """A head that names what it covers."""
        parts: list[HeadFragment] = []
        carried = [("first_message", ticket.first_user_seq), ("task", ticket.carried_turn)]
        for part, seq in carried:
            if 0 < seq <= ticket.covers_to and not (part == "task" and ticket.carried_turn == ticket.first_user_seq):
                text = f"[{part}] <{self.oracle.published[seq - 1]['id']}>"
                parts.append(HeadFragment(part, _text_block(text), CARRIED_TOKENS))  # type: ignore[arg-type]
        parts.append(HeadFragment("summary", _text_block(f"[summary 1-{ticket.covers_to}]"), tokens))
        return BuiltSummary(tuple(parts), '{"engine":"test"}', None)

    @precondition(lambda self: self.builders)
    @rule(data=st.data(), tokens=st.sampled_from([20, 20, 20, 150, 5000]))
    def commit(self, data: st.DataObject, tokens: int) -> None:
        """Any ticket: the newest, one whose lease is over, one committed before."""
        self.commit_of(data.draw(st.sampled_from(self.builders)), tokens)

    @rule(tokens=st.sampled_from([20, 150, 5000]))
    def build(self, tokens: int) -> None:
        """A builder whom nothing comes between."""
        begun = len(self.builders)
        self.begin()
        if len(self.builders) > begun:
            self.commit_of(self.builders[-1], tokens)

    def commit_of(self, builder: Builder, tokens: int) -> None:
        builders = self.builders
        before = self.run(self.sessions.view(TENANT, SESSION))
        summary = self.built(builder.ticket, tokens)
        if builder.ticket.carried_turn == self.state().lu > 0:
            self.reached["commit: turn not carried"] += 1
            parts = tuple(part for part in summary.fragments if part.part != "task")
            without = self.run(self.sessions.commit_build(builder.ticket, replace(summary, fragments=parts)))
            assert without.outcome == "stale", "the newest user turn was covered and not carried"
        result = self.run(self.sessions.commit_build(builder.ticket, summary))
        self.reached[f"commit: {result.outcome}"] += 1
        if builder is not builders[-1] or builder.over:
            assert result.outcome == "stale", "a void ticket was taken"
        else:
            assert result.outcome != "stale", "growth made a build void"
        if result.outcome in ("standby", "swapped"):
            builder.over = True
            self.oracle.heads[builder.ticket.covers_to] = sum(part.tokens for part in summary.fragments)
        else:
            assert self.run(self.sessions.view(TENANT, SESSION)) == before, "a refused commit left something"

    @precondition(lambda self: self.builders)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        builder = data.draw(st.sampled_from(self.builders))
        renewed = self.run(self.sessions.renew_build(builder.ticket))
        assert renewed == (builder is self.builders[-1] and not builder.over)
        if renewed:
            builder.lease_until_ms = self.now_ms + LEASE_MS

    @precondition(lambda self: self.builders)
    @rule(data=st.data(), retry_ms=st.sampled_from([0, 5000]))
    def abandon(self, data: st.DataObject, retry_ms: int) -> None:
        builder = data.draw(st.sampled_from(self.builders))
        held = self.holder()
        self.run(self.sessions.abandon_build(builder.ticket, "gave_up", retry_ms))
        if builder is self.builders[-1]:
            builder.over = True
        elif held:
            assert self.run(self.sessions.view(TENANT, SESSION)).build is not None, "another's lease was ended"

    @rule(ms=st.sampled_from([1, 6_000, LEASE_MS + 1]))
    def wait(self, ms: int) -> None:
        self.sessions.now_ms = self.now_ms + ms

    def a_build_still_helps(self) -> None:
        """Whatever happened: once the lease is over, a build leads to a standby or a swap, or there is no place to cut."""
        self.sessions.now_ms = self.now_ms + LEASE_MS + 10_000
        begun = self.run(self.sessions.begin_build(TENANT, SESSION, self.state().incarnation, LEASE_MS))
        if isinstance(begun, BuildTicket):
            self.builders.append(Builder(begun, self.now_ms + LEASE_MS))
            self.commit_of(self.builders[-1], 20)
            self.everything_holds()
        else:
            assert begun in ("not_due", "no_cut")

    # What holds after each step

    async def snapshot(self) -> Snapshot:
        async with self.sessions.client.pipeline(transaction=True) as pipe:
            pipe.get(self.keys.context)
            pipe.get(self.keys.next)
            pipe.hget(self.keys.meta, "state")
            pipe.xrange(self.keys.turns)
            body, following, packed, entries = await pipe.execute()
        read = await self.sessions.read_context(TENANT, SESSION)
        return Snapshot(body, following, SessionState.unpack(packed), entries, read.system)

    @invariant()
    def everything_holds(self) -> None:
        now = self.run(self.snapshot())
        self.promises.hold(now)
        self.reached["head carries a turn"] += any(line.part == "task" and not line.seq for line in now.lines)
        self.reached["round lost from view"] += now.state.lost
        self.reached["thinking holds a swap"] += bool(now.state.deg and now.state.nx)
        self.reached["calibrated"] += now.state.cal > 1000


def _text_block(text: str) -> bytes:
    return orjson.dumps({"type": "text", "text": text})


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as one:
        yield one


def bound_machine(server: RunningRedis, runner: asyncio.Runner, reached: Counter[str]) -> type[StorageMachine]:
    """The machine with the server and the loop of this test."""
    return type("BoundMachine", (StorageMachine,), {"server": server, "runner": runner, "reached": reached})


def histories(server: RunningRedis, runner: asyncio.Runner, examples: int) -> None:
    reached: Counter[str] = Counter()
    run_state_machine_as_test(
        bound_machine(server, runner, reached),
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
        ),
    )
    expected = MUST_REACH | (MUST_REACH_IN_MANY if examples > 1000 else set())
    assert {name for name in expected if not reached[name]} == set(), f"the histories are too tame: {reached}"


def test_the_newest_user_turn_takes_the_place_of_one_that_a_build_carried(
    queue_server: RunningRedis, runner: asyncio.Runner
) -> None:
    """In a long agent run the head carries the task; the next task must not be the one that is left out."""
    machine = bound_machine(queue_server, runner, Counter())()
    machine.set_limits(1500, 1, 0.4)
    machine.say_many([("user", 1), ("user", 1)])
    for words_of_user in (0, 8):
        if words_of_user:
            machine.build(20)
            machine.say("user", words_of_user)
        while not machine.state().deg:
            machine.append(machine.author.calls(["A"], 60, thinks=False), machine.author.results(["A"], 60, text=False))
            machine.everything_holds()
    assert machine.state().swaps == 1
    assert machine.reached["head carries a turn"]
    machine.teardown()


@pytest.mark.timeout(600)
def test_300_histories_keep_every_promise(queue_server: RunningRedis, runner: asyncio.Runner) -> None:
    histories(queue_server, runner, 300)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_10000_histories_keep_every_promise(queue_server: RunningRedis, runner: asyncio.Runner) -> None:
    histories(queue_server, runner, 10_000)
