"""A fork: the turns up to a point, copied page by page to another name, published last.

Source and fork may live on different servers, so no script sees both: each step reads one of them, or writes one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.property.protocol_model.rules import cut_stands
from tests.property.protocol_model.scope import Guard
from tests.property.protocol_model.state import Fork, State, Summary, Turn
from tests.property.protocol_model.view import render

if TYPE_CHECKING:
    from tests.property.protocol_model.protocol import Protocol, Step


def fork_steps(protocol: Protocol, s: State) -> Iterator[Step]:
    fork = s.fork
    if fork is None:
        if s.exists and s.spent.forks < protocol.scope.forks:
            begun = s._replace(spent=s.spent._replace(forks=s.spent.forks + 1))
            for turn in s.log:
                yield f"fork at {turn.seq}", begun._replace(fork=Fork(s.life, s.changes, turn.seq))
    elif fork.phase == "copying":
        yield _copied(protocol, s, fork)
    elif fork.phase == "checked":
        yield "fork: publish", s._replace(fork=fork._replace(phase="published"))
    elif fork.phase == "published":
        yield _looked(protocol, s, fork)
        if not protocol.on(Guard.FORK_REPEAT_LOOKS):
            yield "fork: repeat, acknowledge", s._replace(fork=fork._replace(phase="acknowledged"))


def _copied(protocol: Protocol, s: State, fork: Fork) -> Step:
    if not s.exists:
        return "fork: no source", s._replace(fork=None)
    if fork.copied_to < fork.point:
        page = [turn for turn in s.log if fork.copied_to < turn.seq <= fork.point][: protocol.scope.page]
        reached = page[-1].seq if len(page) == protocol.scope.page else fork.point
        turns = (*fork.turns, *((s.life, turn) for turn in page))
        return f"fork: copy to {reached}", s._replace(fork=fork._replace(turns=turns, copied_to=reached))
    if fork.summaries is None:
        summaries = (*s.applied, *((s.active,) if s.active else ()))
        return "fork: copy summaries", s._replace(fork=fork._replace(summaries=summaries))
    if protocol.on(Guard.FORK_CHECKS) and not _source_holds(protocol, s, fork):
        return "fork: check, begin anew", s._replace(fork=None)
    return "fork: check", s._replace(fork=fork._replace(phase="checked", whole=is_as_source(s, fork)))


def _looked(protocol: Protocol, s: State, fork: Fork) -> Step:
    """By the caller who published, or by its repeat: the first may have died, and its answer may be lost."""
    if protocol.on(Guard.FORK_LOOKS_AFTER) and not _source_holds(protocol, s, fork):
        return "fork: look, take it back", s._replace(fork=None)
    return "fork: look, acknowledge", s._replace(fork=fork._replace(phase="acknowledged"))


def _source_holds(protocol: Protocol, s: State, fork: Fork) -> bool:
    checks = {
        Guard.FORK_COMPARES_LIFE: s.life == fork.life,
        Guard.FORK_COMPARES_CHANGES: s.changes == fork.changes,
    }
    return s.exists and all(held for guard, held in checks.items() if protocol.on(guard))


def is_as_source(s: State, fork: Fork) -> bool:
    """Whether the copy is what the source has now. For the checks only."""
    return (
        s.exists and fork.turns == tuple((fork.life, t) for t in s.log if t.seq <= fork.point) and s.life == fork.life
    )


def is_readable(protocol: Protocol, fork: Fork) -> bool:
    """Whether the new name already answers reads."""
    return fork.phase in ("published", "acknowledged") or not protocol.on(Guard.FORK_PUBLISHED_LAST)


def forked(protocol: Protocol, fork: Fork) -> State:
    """The fork as a session of its own; it keeps the source's life, so that versions can be compared."""
    log = tuple(turn for _, turn in fork.turns)
    kept = [one for one in fork.summaries or () if _speaks_of(protocol, fork, one)]
    while kept and not _stands(protocol, log, kept[-1]):
        kept.pop()
    active = kept[-1] if kept else None
    fresh = State(
        log=log,
        head_seq=log[-1].seq,
        life=fork.life,
        active=active,
        applied=tuple(kept[:-1]),
        lines=render(active, log),
        limit=protocol.scope.hard,
    )
    return protocol.refit(fresh) if protocol.on(Guard.REFIT_FORK) else fresh


def _speaks_of(protocol: Protocol, fork: Fork, summary: Summary) -> bool:
    return summary.covers_to <= fork.point or not protocol.on(Guard.FORK_SUMMARY_BEFORE)


def _stands(protocol: Protocol, log: tuple[Turn, ...], summary: Summary) -> bool:
    return not protocol.on(Guard.FORK_SUMMARY_STANDS) or cut_stands(log, summary, protocol.scope.calls, protocol.guards)
