"""Builders of the walked session."""

from typing import Literal

import orjson

from prefold.storage.types import BuildTicket, BuiltSummary, HeadFragment
from tests.property.following.abstraction import Builder, Seen
from tests.property.following.talking import SESSION, Talking
from tests.property.histories.building import text_block
from tests.property.histories.held import TENANT
from tests.property.histories.promises import CARRIED_TOKENS

LEASE_MS = 20_000


class Building(Talking):
    async def begin(self, *, any_life: bool = True) -> bool:
        lives = list(self.known.lives.items())
        incarnation, life = self.rng.choice(lives) if any_life and self.rng.random() < 0.1 else lives[-1]
        before = await self.look()
        answer = await self.sessions.begin_build(TENANT, SESSION, incarnation, LEASE_MS)
        self.judge.begin(before, life, answer, await self.look())
        self.count(f"begin: {answer if isinstance(answer, str) else 'ticket'}")
        if isinstance(answer, BuildTicket):
            log = before.state.log
            sources = tuple((life, turn.seq, turn.rev) for turn in log if turn.seq <= answer.covers_to)
            self.known.builders.append(Builder(answer, life, sources))
            self.known.builders = self.known.builders[-4:]
        return isinstance(answer, BuildTicket)

    async def commit(self, index: int | None = None) -> None:
        builders = self.known.builders
        if not builders:
            return
        index = self.rng.randrange(len(builders)) if index is None else len(builders) + index
        before = await self.look()
        summary = self.built(builders[index], before)
        result = await self.sessions.commit_build(builders[index].ticket, summary)
        after = await self.look()
        self.judge.commit(before, index, result.outcome, after)
        self.count(f"commit: {result.outcome}")

    def built(self, builder: Builder, before: Seen) -> BuiltSummary:
        """The head that the model's summary has: what the builder read, not what the log has now."""
        ticket = before.state.tickets[self.known.builders.index(builder)]
        summary = self.judge.protocol.summary_of(ticket)
        marks = {version: mark for mark, version in self.known.marks.items()}
        parts: list[HeadFragment] = []
        carried: list[tuple[Literal["first_message", "task"], tuple[int, int] | None]] = [
            ("first_message", summary.first),
            ("task", summary.task),
        ]
        for part, version in carried:
            if version is not None:
                parts.append(HeadFragment(part, text_block(f"[{part}] <{marks.get(version, 'gone')}>"), CARRIED_TOKENS))
        tokens = 5000 if self.rng.random() < 0.05 else 20
        parts.append(HeadFragment("summary", text_block(f"[summary 1-{builder.ticket.covers_to}]"), tokens))
        record = {"sources": [".".join(map(str, version)) for version in builder.sources]}
        return BuiltSummary(tuple(parts), orjson.dumps(record).decode(), None)

    async def hold(self) -> None:
        if not self.known.builders:
            return
        index = self.rng.randrange(len(self.known.builders))
        ticket = self.known.builders[index].ticket
        before = await self.look()
        if self.rng.random() < 0.5:
            renewed = await self.sessions.renew_build(ticket)
            self.judge.hold(before, index, "renew", renewed, await self.look())
            self.count(f"renew: {renewed}")
        else:
            await self.sessions.abandon_build(ticket, "gave_up", 0)
            self.judge.hold(before, index, "abandon", True, await self.look())

    async def lease_ends(self) -> None:
        assert self.sessions.now_ms is not None
        self.sessions.now_ms += LEASE_MS + 1
