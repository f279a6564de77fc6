"""Builders of summaries, compared with what the oracles expect."""

from dataclasses import replace
from typing import Literal

import orjson

from prefold.storage.types import BuildTicket, BuiltSummary, CommitResult, HeadFragment, StoredSegment
from tests.property.histories.backend import Backend
from tests.property.histories.held import TENANT, Builder, Held
from tests.property.histories.promises import CARRIED_TOKENS, can_stand
from tests.property.histories.snapshot import take_snapshot

LEASE_MS = 20_000


async def begin(backend: Backend, held: Held) -> Builder | None:
    """A builder, who reads at once; None: refused, or the answer was lost."""
    life, incarnation = held.life, held.incarnation
    before = await backend.state(held)
    holder = held.holder(backend.now_ms)
    assert before is not None

    async def ask() -> BuildTicket | str:
        return await backend.sessions.begin_build(TENANT, held.name, incarnation, LEASE_MS)

    answer, again = await backend.send(ask, held)
    backend.count(f"begin: {answer if isinstance(answer, str) else 'ticket'}")
    if isinstance(answer, BuildTicket):
        assert holder is None, "a second lease"
        sources = life.versions(answer.covers_to)
        builder = Builder(answer, incarnation, answer.covers_to, backend.now_ms + LEASE_MS, sources)
        held.builders.append(builder)
        return builder
    after = await backend.state(held)
    if again and answer == "busy" and holder is None and after is not None:
        # The first answer was a ticket, and it is lost: a lease that nobody holds.
        held.builders.append(Builder(None, incarnation, after.bcov, after.blease, []))
    else:
        assert answer != "busy" or holder is not None, "a lease that nobody holds"
    return None


async def read_anew(held: Held, builder: Builder) -> None:
    """Reads later than it began: the log as it is now."""
    if held.oracle is not None and builder.life == held.incarnation:
        builder.sources = held.oracle.versions(builder.covers_to)


def built(held: Held, builder: Builder, tokens: int) -> BuiltSummary:
    """A head that names what it covers, with a record of what it was made of."""
    ticket = builder.ticket
    assert ticket is not None
    parts: list[HeadFragment] = []
    carried: list[tuple[Literal["first_message", "task"], int]] = [("first_message", ticket.first_user_seq)]
    if ticket.carried_turn != ticket.first_user_seq:
        carried.append(("task", ticket.carried_turn))
    for part, seq in carried:
        if 0 < seq <= ticket.covers_to and held.oracle is not None and seq in held.oracle.said:
            parts.append(HeadFragment(part, text_block(f"[{part}] {held.oracle.mark(seq)}"), CARRIED_TOKENS))
    parts.append(HeadFragment("summary", text_block(f"[summary 1-{ticket.covers_to}]"), tokens))
    return BuiltSummary(tuple(parts), orjson.dumps({"sources": builder.sources}).decode(), None)


async def commit(backend: Backend, held: Held, builder: Builder, tokens: int) -> None:
    """Taken if and only if nothing inside its range changed and its cut is one now; growth never makes it void."""
    ticket = builder.ticket
    if ticket is None:
        return
    summary = built(held, builder, tokens)
    if held.oracle is None:
        result, _ = await backend.send(lambda: backend.sessions.commit_build(ticket, summary), held)
        assert result.outcome == "stale", "a build of a former life was taken"
        backend.count("commit: no such session")
        return
    now = await take_snapshot(backend.sessions, TENANT, held.name)
    view = await backend.sessions.view(TENANT, held.name)
    carries = any(part.part == "task" for part in summary.fragments)
    newest = builder is held.builders[-1] and builder.life == held.incarnation and not builder.over
    stands = can_stand(now, builder.covers_to, carries=carries)
    if newest and stands and carries and now.state.lu == ticket.carried_turn:
        await _must_carry(backend, held, builder, summary)
    await keep_segment(backend, held, builder, newest=newest)
    result, again = await backend.send(lambda: backend.sessions.commit_build(ticket, summary), held)
    if again and result.outcome == "stale" and newest and stands:
        result = await _outcome(backend, held, builder) or result
    backend.count(f"commit: {result.outcome}")
    assert (result.outcome == "stale") == (not (newest and stands)), "a void ticket was taken, or a sound one refused"
    if builder.life != held.incarnation:
        backend.count("commit: of a former life")
    if result.outcome in ("standby", "swapped"):
        builder.over = True
        held.life.heads[builder.covers_to] = sum(part.tokens for part in summary.fragments)
    else:
        assert await backend.sessions.view(TENANT, held.name) == view, "a refused commit left something"


async def keep_segment(backend: Backend, held: Held, builder: Builder, *, newest: bool) -> None:
    """Kept if and only if nothing that the ticket covers has changed, and no later build began."""
    ticket = builder.ticket
    assert ticket is not None
    record = orjson.dumps({"sources": builder.sources}).decode()
    segment = StoredSegment(0, 1, ticket.covers_to, "hash", "1", "text", 1, 1, record)
    kept, _ = await backend.send(lambda: backend.sessions.keep_segment(ticket, segment), held)
    backend.count(f"segment: {'kept' if kept else 'refused'}")
    assert kept == newest, "a segment of a void ticket was kept, or one of a sound ticket refused"


async def _must_carry(backend: Backend, held: Held, builder: Builder, summary: BuiltSummary) -> None:
    ticket = builder.ticket
    assert ticket is not None
    backend.count("commit: turn not carried")
    parts = tuple(part for part in summary.fragments if part.part != "task")
    without = replace(summary, fragments=parts)
    result, _ = await backend.send(lambda: backend.sessions.commit_build(ticket, without), held)
    assert result.outcome == "stale", "the newest user turn was covered and not carried"


async def _outcome(backend: Backend, held: Held, builder: Builder) -> CommitResult | None:
    """What the first commit did, whose answer was lost."""
    state = await backend.state(held)
    assert state is not None
    if state.nx == builder.covers_to:
        return CommitResult("standby")
    return CommitResult("swapped") if state.cov == builder.covers_to else None


async def renew(backend: Backend, held: Held, builder: Builder) -> None:
    ticket = builder.ticket
    if ticket is None:
        return
    renewed, _ = await backend.send(lambda: backend.sessions.renew_build(ticket), held)
    assert renewed == _is_newest(held, builder)
    if renewed:
        builder.lease_until_ms = backend.now_ms + LEASE_MS


async def abandon(backend: Backend, held: Held, builder: Builder, retry_ms: int) -> None:
    ticket = builder.ticket
    if ticket is None:
        return
    holder = held.holder(backend.now_ms)
    await backend.send(lambda: backend.sessions.abandon_build(ticket, "gave_up", retry_ms), held)
    if _is_newest(held, builder):
        builder.over = True
    elif holder and held.oracle is not None:
        view = await backend.sessions.view(TENANT, held.name)
        assert view.build is not None, "another's lease was ended"


def _is_newest(held: Held, builder: Builder) -> bool:
    return (
        held.oracle is not None
        and builder is held.builders[-1]
        and builder.life == held.incarnation
        and not builder.over
    )


def text_block(text: str) -> bytes:
    return orjson.dumps({"type": "text", "text": text})
