"""Everything that may happen to a few sessions, as rules of one machine."""

from typing import Any

import orjson
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from prefold.assembly import LEAST_BUDGET_TOKENS, assemble
from prefold.conversation import check_anthropic, check_openai
from prefold.storage.types import SessionOptions
from prefold.tokens import load_counter
from tests.property.histories.building import LEASE_MS, abandon, begin, commit, read_anew, renew
from tests.property.histories.changing import Changes
from tests.property.histories.held import TENANT, Builder
from tests.property.histories.speaking import Speaking, targets
from tests.property.histories.world import LIMITS

A_DAY_MS = 86_400_000


class StorageMachine(Speaking, Changes):
    """Builders, clock, crashes and reads; the rest is inherited."""

    def builder(self, number: int) -> Builder:
        """Mostly one of the newest."""
        newest_first = self.at.builders[::-1]
        return newest_first[number % min(number % 3 + 1, len(newest_first))]

    @precondition(lambda self: self.alive)
    @rule()
    def begin(self) -> None:
        self.act(begin(self.backend, self.at), between=False)

    @precondition(lambda self: self.alive and self.at.holder(self.backend.now_ms))
    @rule()
    def overtake(self) -> None:
        """The holder sleeps through its lease, another one begins, and the first wakes up and commits."""
        late = self.at.builders[-1]
        self.wait(LEASE_MS + 1)
        self.begin()
        if self.at.builders[-1] is not late:
            self.count("commit: late")
            self.act(commit(self.backend, self.at, late, 20), between=False)

    @precondition(lambda self: self.at.builders)
    @rule(number=targets, tokens=st.sampled_from([20, 20, 20, 150, 5000]), reads=st.booleans())
    def commit(self, number: int, tokens: int, reads: bool) -> None:
        """Any ticket: the newest, one whose lease is over, one committed before, one of a former life."""
        builder = self.builder(number)
        if reads and not builder.over:
            self.run(read_anew(self.at, builder))
        self.act(commit(self.backend, self.at, builder, tokens), between=False)

    @rule(tokens=st.sampled_from([20, 20, 150, 5000]))
    def build(self, tokens: int) -> None:
        self.build_now(tokens)

    @precondition(lambda self: self.at.builders)
    @rule(number=targets)
    def renew(self, number: int) -> None:
        self.act(renew(self.backend, self.at, self.builder(number)), between=False)

    @precondition(lambda self: self.at.builders)
    @rule(number=targets, retry_ms=st.sampled_from([0, 5000]))
    def abandon(self, number: int, retry_ms: int) -> None:
        builder = self.builder(number)
        self.act(abandon(self.backend, self.at, builder, retry_ms), between=False)

    # The clock and the machines

    @rule(ms=st.sampled_from([1, 6_000, LEASE_MS + 1, 2 * A_DAY_MS, -3_000, -LEASE_MS]))
    def wait(self, ms: int) -> None:
        """The clock may also jump back."""
        self.sessions.now_ms = self.backend.now_ms + ms

    @rule()
    def lose_connections(self) -> None:
        """All of them, and the server forgets its scripts."""
        self.count("connections lost")
        client: Any = self.sessions.client
        self.run(client.script_flush())
        self.run(client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"))

    @precondition(lambda self: self.crashes)
    @rule()
    def crash(self) -> None:
        """The server is killed and comes back with what its file has."""
        self.count("crashed")
        self.server.kill()
        self.server.start()

    # Reads

    @precondition(lambda self: self.alive)
    @rule(form=st.sampled_from(["anthropic", "openai"]), budget=st.sampled_from([None, LEAST_BUDGET_TOKENS, 700]))
    def read(self, form: str, budget: int | None) -> None:
        stored = self.run(self.sessions.read_context(TENANT, self.at.name))
        served = assemble(stored, load_counter(), form=form, budget_tokens=budget)  # type: ignore[arg-type]
        assert served.total_tokens <= min(budget or LIMITS[-1], stored.hard_limit_tokens)
        messages = orjson.loads(served.messages)
        if messages or served.system:
            check = check_anthropic(messages, served.system or None) if form == "anthropic" else check_openai(messages)
            assert check == []
        self.count(f"read: {form}")

    @rule(limit=st.sampled_from(LIMITS), keep=st.sampled_from([1, 2, 6]), ratio=st.sampled_from([0.4, 0.7, 0.85]))
    def set_limits(self, limit: int, keep: int, ratio: float) -> None:
        """Creates the session again after an erasure."""
        options = SessionOptions(hard_limit_tokens=limit, keep_recent_turns=keep, soft_ratio=ratio)
        self.act(self.backend.open(self.at, options), between=False)
