"""Random histories through the real scripts on a real server, each step checked against a small oracle.

A failure prints the steps and Hypothesis's ``@reproduce_failure`` line, which repeats exactly this history.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from prefold.conversation import (
    Fragment,
    PreparedTurn,
    TurnKind,
    anthropic_messages,
    check_anthropic,
    check_openai,
    openai_messages,
    parse_lines,
    prepare_turn,
)
from prefold.conversation.markers import OPENER_TOKENS
from prefold.errors import ConflictError
from prefold.storage import Sessions, connect_sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.log import stored_turn
from prefold.storage.state import SessionState
from prefold.storage.types import BuildTicket, BuiltSummary, HeadFragment, SessionOptions
from prefold.tokens import load_counter
from tests.support.contexts import recount
from tests.support.redis import RunningRedis

TENANT, SESSION = "acme", "s1"
LEASE_MS = 20_000
START_MS = 2_000_000_000_000
LIMITS = (1000, 1300, 2500, 6000)
WORDS = (1, 1, 8, 60, 200, 500, 1400)
CALL_IDS = ("A", "B", "C")
MUST_REACH = {
    *(f"append: {status}" for status in ("ok", "soft", "swapped", "degraded")),
    *(f"begin: {outcome}" for outcome in ("ticket", "not_due", "busy", "backoff", "no_cut")),
    *(f"commit: {outcome}" for outcome in ("standby", "swapped", "stale", "no_gain")),
    *("append swaps", "head carries a turn", "round lost from view", "thinking holds a swap", "calibrated"),
}
HEAD_PARTS = ("first_message", "task", "ledger", "summary")
words = st.sampled_from(WORDS)


@dataclass
class Builder:
    """One ticket, and what the oracle knows of it."""

    ticket: BuildTicket
    lease_until_ms: int
    over: bool = False
    """Committed or given up."""


@dataclass
class Oracle:
    """What must be true, kept in the simplest way."""

    published: list[dict[str, Any]] = field(default_factory=list)
    """One a seq."""
    prepared: list[PreparedTurn] = field(default_factory=list)
    builders: list[Builder] = field(default_factory=list)

    heads: dict[int, int] = field(default_factory=lambda: {0: 0})
    """Tokens of the head that was committed, by what it covers."""

    def seq_of(self, turn_id: str) -> int | None:
        return next((n for n, raw in enumerate(self.published, 1) if raw["id"] == turn_id), None)

    def newest_user(self) -> int:
        """Seq of the newest plain user turn; 0: none."""
        plain = (n for n, t in enumerate(self.prepared, 1) if t.kind is TurnKind.PLAIN and t.role == "user")
        return max(plain, default=0)

    def users(self) -> set[int]:
        """What may count as a user's turn: plain ones, and words beside results for calls that are not open; 0: none."""
        spoke = (TurnKind.PLAIN, TurnKind.RESULTS)
        return {0, *(n for n, t in enumerate(self.prepared, 1) if t.role == "user" and t.kind in spoke and t.content)}

    def mark(self, seq: int) -> str:
        """The words with which the turn's text begins: no other text has them."""
        return f"<{self.published[seq - 1]['id']}>"


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
        self.made = 0
        self.body = b""
        self.version = 0
        self.checked_to = 0
        self.run(self.sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=LIMITS[1], keep_recent_turns=2)))

    def run(self, call: Any) -> Any:
        return self.runner.run(call)

    def teardown(self) -> None:
        try:
            self.a_build_still_helps()
        finally:
            self.run(self.context.__aexit__(None, None, None))

    # What a backend does

    def made_turn(self, role: str, content: Any, **members: Any) -> dict[str, Any]:
        self.made += 1
        return {"id": f"m{self.made}", "role": role, "content": content, **members}

    def text(self, count: int) -> str:
        return f"<m{self.made + 1}> " + "word " * count

    def plain(self, role: str, count: int) -> dict[str, Any]:
        return self.made_turn(role, self.text(count))

    def calls(self, ids: list[str], count: int, *, thinks: bool) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": "hm", "signature": "s"}] if thinks else []
        blocks.append({"type": "text", "text": self.text(1)})
        blocks += [{"type": "tool_use", "id": one, "name": "find", "input": {"q": "word " * count}} for one in ids]
        return self.made_turn("assistant", blocks)

    def results(self, ids: list[str], count: int, *, text: bool) -> dict[str, Any]:
        body = self.text(count)
        blocks: list[dict[str, Any]] = [{"type": "tool_result", "tool_use_id": one, "content": body} for one in ids]
        return self.made_turn("user", [*blocks, {"type": "text", "text": "and so"}] if text else blocks)

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
        self.append(self.plain(role, count))

    @rule(sizes=st.lists(st.tuples(st.sampled_from(["user", "assistant"]), words), min_size=2, max_size=5))
    def say_many(self, sizes: list[tuple[str, int]]) -> None:
        self.append(*[self.plain(role, count) for role, count in sizes])

    @rule(
        ids=st.lists(st.sampled_from(CALL_IDS), min_size=1, max_size=3, unique=True), count=words, thinks=st.booleans()
    )
    def call(self, ids: list[str], count: int, thinks: bool) -> None:
        self.append(self.calls(ids, count, thinks=thinks))

    @rule(ids=st.lists(st.sampled_from(CALL_IDS), min_size=1, max_size=3, unique=True), count=words, text=st.booleans())
    def answer(self, ids: list[str], count: int, text: bool) -> None:
        """Results of calls that may be open, answered long ago, or never made."""
        self.append(self.results(ids, count, text=text))

    @rule(counts=st.lists(words, min_size=1, max_size=12), thinks=st.booleans())
    def work(self, counts: list[int], thinks: bool) -> None:
        """An agent's run: rounds without a word of the user."""
        for count in counts:
            self.append(self.calls(["A", "B"], 1, thinks=thinks), self.results(["B", "A"], count, text=False))

    @rule(count=words)
    def instruct(self, count: int) -> None:
        self.append(self.made_turn("system", self.text(count)))

    @rule(factor=st.sampled_from([0.5, 1.0, 1.3, 3.0]))
    def report_usage(self, factor: float) -> None:
        view = self.run(self.sessions.view(TENANT, SESSION))
        reported = math.ceil(view.tokens / view.calibration * factor)
        self.append(self.made_turn("assistant", self.text(3), usage={"input_tokens": reported, "output_tokens": 3}))

    @precondition(lambda self: self.oracle.published)
    @rule(data=st.data())
    def say_again(self, data: st.DataObject) -> None:
        """A retry, perhaps in one batch with something new."""
        again = data.draw(st.sampled_from(self.oracle.published))
        self.append(again, *([self.plain("user", 2)] if data.draw(st.booleans()) else []))

    @precondition(lambda self: self.oracle.published)
    @rule(data=st.data())
    def contradict(self, data: st.DataObject) -> None:
        """A known id with other content: refused, and nothing of its batch is stored."""
        known = data.draw(st.sampled_from(self.oracle.published))
        other = {"id": known["id"], "role": "user", "content": "something else"}
        turns = [prepare_turn(raw, 0, load_counter(), lambda: "unused") for raw in (self.plain("user", 2), other)]
        with pytest.raises(ConflictError, match="other content"):
            self.run(self.sessions.append(TENANT, SESSION, turns))

    @rule(limit=st.sampled_from(LIMITS), keep=st.sampled_from([1, 2, 6]), ratio=st.sampled_from([0.4, 0.7, 0.85]))
    def set_limits(self, limit: int, keep: int, ratio: float) -> None:
        options = SessionOptions(hard_limit_tokens=limit, keep_recent_turns=keep, soft_ratio=ratio)
        self.run(self.sessions.open(TENANT, SESSION, options))

    # What builders and the clock do

    def state(self) -> SessionState:
        packed = self.run(self.sessions.client.hget(self.keys.meta, "state"))
        return SessionState.unpack(packed)

    @property
    def now_ms(self) -> int:
        assert self.sessions.now_ms is not None
        return self.sessions.now_ms

    def holder(self) -> Builder | None:
        """Who has the lease."""
        newest = self.oracle.builders[-1] if self.oracle.builders else None
        return newest if newest and not newest.over and newest.lease_until_ms > self.now_ms else None

    @rule()
    def begin(self) -> None:
        held = self.holder()
        incarnation = self.state().incarnation
        ticket = self.run(self.sessions.begin_build(TENANT, SESSION, incarnation, LEASE_MS))
        self.reached[f"begin: {ticket if isinstance(ticket, str) else 'ticket'}"] += 1
        if isinstance(ticket, BuildTicket):
            assert held is None, "a second lease"
            self.oracle.builders.append(Builder(ticket, self.now_ms + LEASE_MS))

    def built(self, ticket: BuildTicket, tokens: int) -> BuiltSummary:
        """A head that names what it covers."""
        parts: list[HeadFragment] = []
        carried = [("first_message", ticket.first_user_seq), ("task", ticket.carried_turn)]
        for part, seq in carried:
            if 0 < seq <= ticket.covers_to and not (part == "task" and ticket.carried_turn == ticket.first_user_seq):
                text = f"[{part}] <{self.oracle.published[seq - 1]['id']}>"
                parts.append(HeadFragment(part, _text_block(text), 40))  # type: ignore[arg-type]
        parts.append(HeadFragment("summary", _text_block(f"[summary 1-{ticket.covers_to}]"), tokens))
        return BuiltSummary(tuple(parts), '{"engine":"test"}', None)

    @precondition(lambda self: self.oracle.builders)
    @rule(data=st.data(), tokens=st.sampled_from([20, 20, 20, 150, 5000]))
    def commit(self, data: st.DataObject, tokens: int) -> None:
        """Any ticket: the newest, one whose lease is over, one committed before."""
        self.commit_of(data.draw(st.sampled_from(self.oracle.builders)), tokens)

    @rule(tokens=st.sampled_from([20, 150]))
    def build(self, tokens: int) -> None:
        """A builder whom nothing comes between."""
        begun = len(self.oracle.builders)
        self.begin()
        if len(self.oracle.builders) > begun:
            self.commit_of(self.oracle.builders[-1], tokens)

    def commit_of(self, builder: Builder, tokens: int) -> None:
        builders = self.oracle.builders
        before = self.run(self.sessions.view(TENANT, SESSION))
        summary = self.built(builder.ticket, tokens)
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

    @precondition(lambda self: self.oracle.builders)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        builder = data.draw(st.sampled_from(self.oracle.builders))
        renewed = self.run(self.sessions.renew_build(builder.ticket))
        assert renewed == (builder is self.oracle.builders[-1] and not builder.over)
        if renewed:
            builder.lease_until_ms = self.now_ms + LEASE_MS

    @precondition(lambda self: self.oracle.builders)
    @rule(data=st.data(), retry_ms=st.sampled_from([0, 5000]))
    def abandon(self, data: st.DataObject, retry_ms: int) -> None:
        builder = data.draw(st.sampled_from(self.oracle.builders))
        held = self.holder()
        self.run(self.sessions.abandon_build(builder.ticket, "gave_up", retry_ms))
        if builder is self.oracle.builders[-1]:
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
            self.oracle.builders.append(Builder(begun, self.now_ms + LEASE_MS))
            self.commit_of(self.oracle.builders[-1], 20)
            self.everything_holds()
        else:
            assert begun in ("not_due", "no_cut")

    # What holds after each step

    async def snapshot(self) -> tuple[Any, ...]:
        async with self.sessions.client.pipeline(transaction=True) as pipe:
            pipe.get(self.keys.context)
            pipe.get(self.keys.next)
            pipe.hget(self.keys.meta, "state")
            pipe.xrange(self.keys.turns)
            return (*await pipe.execute(), await self.sessions.read_context(TENANT, SESSION))

    @invariant()
    def everything_holds(self) -> None:
        body, following, packed, entries, read = self.run(self.snapshot())
        state = SessionState.unpack(packed)
        header, lines = parse_lines(body)
        self.log_is_whole(entries, state)
        tokens = {seq: (own, closer) for seq, own, closer, _ in map(_counts, entries)}
        empty = {seq for seq, _, _, shown in map(_counts, entries) if not shown}

        head = sum(line.tokens for line in lines if line.part in HEAD_PARTS)
        assert header["head_tokens"] == state.htok == head, "the count of the head differs from its lines"
        served = math.ceil((sum(line.tokens for line in lines) + state.fix) * state.cal / 1000)
        assert state.tok == sum(line.tokens for line in lines), "the count of the context differs from its lines"
        assert served <= state.hard, f"over the limit: {served} > {state.hard}"
        self.is_valid(lines, read.system)
        assert sum(map(_recount, lines)) <= state.tok, "a line counts less than it costs"

        assert (header["version"], header["covers_to"]) == (state.ver, state.cov) == (read.version, read.covers_to)
        self.grows_only_at_its_end(body, state.ver)
        whole = self.covers_all(lines, state.cov, state, empty)
        assert whole or state.deg, "turns are missing, and the session is not called degraded"
        assert state.full == self.whole_tokens(state, tokens, empty), "the undegraded count is wrong"
        self.reached["head carries a turn"] += any(line.part == "task" and not line.seq for line in lines)
        self.reached["round lost from view"] += state.lost
        self.reached["thinking holds a swap"] += bool(state.deg and state.nx)
        self.reached["calibrated"] += state.cal > 1000
        if state.deg:
            assert math.ceil((state.full + state.fix) * state.cal / 1000) > state.hard or state.full > state.room
            assert not state.nx or (state.open_calls and state.thinks), "degraded beside a usable standby"
        assert state.lu in self.oracle.users() and state.lu >= self.oracle.newest_user()
        self.newest_user_is_there(lines, state.lu)
        if following is None:
            assert state.nx == 0
        else:
            self.standby_is_ready(following, state, empty)

    def log_is_whole(self, entries: list[Any], state: SessionState) -> None:
        assert len(entries) == len(self.oracle.published) == state.head, "turns lost or doubled"
        for seq in range(self.checked_to + 1, len(entries) + 1):
            kept = stored_turn(*entries[seq - 1])
            assert kept.seq == seq
            assert orjson.loads(kept.verbatim_json) == {"seq": seq, **self.oracle.published[seq - 1]}
        self.checked_to = len(entries)
        assert state.log == sum(own + closer for _, own, closer, _ in map(_counts, entries))

    def is_valid(self, lines: list[Fragment], system: str) -> None:
        if not lines and not system:
            return
        assert check_anthropic(anthropic_messages(lines), system or None) == []
        assert check_openai(openai_messages(lines, system)) == []

    def grows_only_at_its_end(self, body: bytes, version: int) -> None:
        assert version >= self.version, "the version fell"
        if version == self.version:
            assert body.startswith(self.body), "a version changed before its end"
        self.body, self.version = body, version

    def covers_all(self, lines: list[Fragment], covers_to: int, state: SessionState, empty: set[int]) -> bool:
        """Summary, a marked gap or none, then every turn once; True when there is no gap."""
        gaps = [line for line in lines if line.part == "gap"]
        assert len(gaps) <= 1
        summaries = [line for line in lines if line.part == "summary"]
        if summaries:
            assert f"[summary 1-{covers_to}]".encode() in summaries[0].content, "another summary than covers_to says"
        reached = covers_to
        if gaps:
            first, last = _gap_range(gaps[0])
            assert first == (covers_to + 1 if summaries or not covers_to else 1), "the marker begins elsewhere"
            reached = last
        else:
            assert covers_to == 0 or summaries, "no summary, and no marker in its place"
        shown = [line.seq for line in lines if line.seq and line.part in ("", "short")]
        assert shown == [seq for seq in range(reached + 1, state.head + 1) if seq not in empty], "a gap, or an overlap"
        return not gaps and not any(line.part == "short" for line in lines)

    def whole_tokens(self, state: SessionState, tokens: Mapping[int, tuple[int, int]], empty: set[int]) -> int:
        """Tokens of the active head (or the opener) and all turns after it, the first without its closer."""
        window = [tokens[seq] for seq in range(state.cov + 1, state.head + 1) if seq not in empty]
        opener = OPENER_TOKENS if state.opens and not state.cov else 0
        head = self.oracle.heads[state.cov]
        return head + opener + sum(own + closer for own, closer in window) - (window[0][1] if window else 0)

    def newest_user_is_there(self, lines: list[Fragment], newest: int) -> None:
        if newest:
            mark = self.oracle.mark(newest).encode()
            assert any(mark in line.content for line in lines if line.role == "user"), "the newest user turn is missing"

    def standby_is_ready(self, following: bytes, state: SessionState, empty: set[int]) -> None:
        header, lines = parse_lines(following)
        assert header["covers_to"] == state.nx > state.cov
        assert state.ntok == sum(line.tokens for line in lines), "the count of the standby differs from its lines"
        assert self.covers_all(lines, state.nx, state, empty)
        self.is_valid(lines, "")
        self.newest_user_is_there(lines, state.lu)
        assert state.ntok < state.full, "the standby is not smaller"


def _text_block(text: str) -> bytes:
    return orjson.dumps({"type": "text", "text": text})


def _counts(entry: tuple[bytes, Mapping[bytes, bytes]]) -> tuple[int, int, int, bool]:
    """Seq, tokens, closer's tokens, and whether the turn has a line at all."""
    record = entry[1][b"r"].split(b"\n", 1)[0].split(b" ", 9)
    return int(entry[0].split(b"-")[0]), int(record[0]), int(record[3]), entry[1][b"c"] != b""


def _gap_range(line: Fragment) -> tuple[int, int]:
    words = orjson.loads(line.content)["text"].split(" ")
    first, last = next(word for word in words if word[0].isdigit()).split("-")
    assert int(last) == line.seq
    return int(first), int(last)


@lru_cache(maxsize=100_000)
def _recount(line: Fragment) -> int:
    return recount(b'[{"role":"user","content":[' + line.content + b"]}]", "")


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as one:
        yield one


def histories(server: RunningRedis, runner: asyncio.Runner, examples: int) -> None:
    """Runs so many; the machine is made anew, with the server and the loop of this test."""
    reached: Counter[str] = Counter()
    bound = type("StorageMachine", (StorageMachine,), {"server": server, "runner": runner, "reached": reached})
    run_state_machine_as_test(
        bound,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
        ),
    )
    assert {name for name in MUST_REACH if not reached[name]} == set(), f"the histories are too tame: {reached}"


@pytest.mark.timeout(600)
def test_300_histories_keep_every_promise(queue_server: RunningRedis, runner: asyncio.Runner) -> None:
    histories(queue_server, runner, 300)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_10000_histories_keep_every_promise(queue_server: RunningRedis, runner: asyncio.Runner) -> None:
    histories(queue_server, runner, 10_000)
