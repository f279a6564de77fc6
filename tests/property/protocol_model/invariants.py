"""What must hold in every state and across every step. Each function yields what is broken, in words."""

from collections.abc import Iterator

from tests.property.protocol_model.forks import forked, is_as_source, is_readable
from tests.property.protocol_model.protocol import Protocol, covers
from tests.property.protocol_model.rules import first_user, newest_user, open_calls, starts_group
from tests.property.protocol_model.scope import ALL_GUARDS, Scope
from tests.property.protocol_model.staged import changed
from tests.property.protocol_model.state import Changer, Line, State, Summary, Ticket
from tests.property.protocol_model.view import KINDS, render, size

_CHANGES = ("edit", "delete", "rewind", "remove", "again")


def broken(protocol: Protocol, before: State, label: str, after: State, fresh: bool) -> Iterator[str]:
    """Everything that the step broke; a state seen before (not ``fresh``) was checked then."""
    if fresh:
        yield from broken_state(protocol, after)
    yield from _broken_step(protocol, before, label, after)


def broken_state(protocol: Protocol, s: State) -> Iterator[str]:
    yield from _leases(s)
    if s.staging and (s.staging.life != s.life or not s.exists):
        yield "resurrection: a staged copy outlived its session"
    if s.exists:
        yield from summaries_true(s)
        yield from _size(s)
        yield from coverage(s, s.lines, s.active, "the context")
        yield from rounds(s.lines, protocol.scope.calls, "the context")
        yield from newest_user_shown(s, s.lines, "the context")
        if s.standby:
            yield from newest_user_shown(s, s.standby.lines, "the standby")
            yield from coverage(s, s.standby.lines, s.standby.summary, "the standby")
            yield from rounds(s.standby.lines, protocol.scope.calls, "the standby")
        if s.degraded and s.standby and not (protocol.scope.thinking and open_calls(s.log, protocol.scope.calls)):
            yield "progress: degraded beside a standby that could be swapped in"
        yield from _can_be_built(protocol, s)


def _leases(s: State) -> Iterator[str]:
    if sum(t.status == "running" and t.life == s.life for t in s.tickets) > 1:
        yield "lease: two builders hold one"


def summaries_true(s: State) -> Iterator[str]:
    """They were made of exactly the turns that they cover, as the log has them now."""
    named = [("active summary", s.active), ("standby", s.standby.summary if s.standby else None)]
    for name, summary in named:
        if summary is None:
            continue
        if any(life != s.life for life, _, _ in summary.source):
            yield f"resurrection: the {name} speaks of an earlier life"
        if summary.covers_to > s.head_seq:
            yield f"coverage: the {name} covers turns that do not exist"
        if summary.source != tuple((s.life, t.seq, t.rev) for t in s.log if t.seq <= summary.covers_to):
            yield f"stale: the {name} was made of other turns than the log has"
    if s.standby and covers(s.standby) <= covers(s.active):
        yield "progress: the standby covers no more than the active summary"


def _size(s: State) -> Iterator[str]:
    if size(s.lines) > s.limit:
        yield "limit: the served context is over it"
    whole = render(s.active, s.log)
    if not s.degraded and s.lines != whole:
        yield "coverage: not called degraded, yet not the whole context"
    if s.degraded and size(whole) <= s.limit:
        yield "progress: degraded although the whole context fits"


def coverage(s: State, lines: tuple[Line, ...], active: Summary | None, name: str) -> Iterator[str]:
    """Summary, then (a marker for) every turn after it, once, in order, as the log has it now."""
    revs = {turn.seq: turn.rev for turn in s.log}
    reached = next((line.seq for line in lines if line.part == "sum"), 0)
    gap = next((line for line in lines if line.part == "gap"), None)
    if gap and any(reached < turn.seq < gap.seq for turn in s.log):
        yield f"coverage: {name} has a gap before its marker's range"
    reached = max(reached, gap.rev if gap else 0)
    shown = [line.seq for line in lines if line.part in KINDS]
    if shown != [turn.seq for turn in s.log if turn.seq > reached]:
        yield f"coverage: {name} has a gap without a marker"
    if any(revs.get(line.seq) != line.rev for line in lines if line.part in KINDS or line.part in ("first", "task")):
        yield f"stale: {name} shows a turn that is changed or gone"


def rounds(lines: tuple[Line, ...], calls: int, name: str) -> Iterator[str]:
    """Every call has its results, and every result its call."""
    waiting = 0
    for line in (line for line in lines if line.part in KINDS):
        if line.part == "r":
            waiting -= 1
        else:
            waiting -= line.closes
            if waiting:
                yield f"rounds: {name} has calls without results, or results without calls"
                return
            waiting = calls if line.part == "c" else 0
        if waiting < 0:
            yield f"rounds: {name} has results without calls"
            return


def newest_user_shown(s: State, lines: tuple[Line, ...], name: str) -> Iterator[str]:
    """In full, short, or carried by the head."""
    newest = newest_user(s.log)
    if newest and not any(line.seq == newest and line.part in ("u", "first", "task") for line in lines):
        yield f"newest user turn: {name} lacks it"


def _can_be_built(protocol: Protocol, s: State) -> Iterator[str]:
    """Without faults from here on, a build leads to a standby or a swap, or no cut would make the context smaller."""
    if s.standby or size(render(s.active, s.log)) <= protocol.scope.soft or not _could_gain(protocol.scope, s):
        return
    begun = protocol.begin(protocol.expire(s))
    if begun is None:
        yield "progress: above the soft threshold and no build may begin"
        return
    mine = len(begun.tickets) - 1
    done = protocol.commit(protocol.read(begun, mine), mine)
    if not done.standby and done.active == s.active:
        yield "progress: above the soft threshold and an undisturbed build is refused"


def _could_gain(scope: Scope, s: State) -> bool:
    """Whether any cut at all would shrink the context, found without the protocol's own choice of a cut."""
    newest, first = newest_user(s.log), first_user(s.log)
    whole = size(render(s.active, s.log))
    tail = size(tuple(line for line in render(None, s.log) if line.seq > newest))
    for turn, after in zip(s.log, s.log[1:], strict=False):
        if turn.seq <= covers(s.active) or not starts_group(after.kind, ALL_GUARDS):
            continue
        carry = turn.seq >= newest > first
        if carry and tail <= scope.soft and whole <= s.limit:
            continue
        summary = Summary(turn.seq, (), (first, 1) if 0 < first <= turn.seq else None, (newest, 1) if carry else None)
        if size(render(summary, s.log)) < whole:
            return True
    return False


def _broken_step(protocol: Protocol, before: State, label: str, after: State) -> Iterator[str]:
    if label.startswith("fork"):
        yield from _broken_fork(protocol, label, after)
    if before.life != after.life or not after.exists:
        return
    swapped = covers(after.active) > covers(before.active)
    if covers(after.active) < covers(before.active) and not label.startswith(_CHANGES):
        yield "progress: the cut moved back without a change to fall back from"
    if swapped and size(render(after.active, after.log)) >= size(render(before.active, after.log)):
        yield "progress: the swap did not make the context smaller"
    if swapped and protocol.scope.thinking and open_calls(after.log, protocol.scope.calls):
        yield "rounds: a swap inside an open round with thinking"
    if after.changes > before.changes and (" by stage" in label or label.startswith("again")):
        yield from _broken_change(before, label, after)
    if label.startswith("commit"):
        ticket = before.tickets[int(label[label.index("[") + 1 : label.index(":")]) - 1]
        yield from _refused_wrongly(protocol, before, ticket, after)
        yield from _taken_twice(protocol, before, ticket)


def _taken_twice(protocol: Protocol, before: State, ticket: Ticket) -> Iterator[str]:
    """A repeat is not a second success: no second event, version or write of the standby."""
    stands = max(covers(before.active), covers(before.standby)) >= ticket.covers_to
    if ticket.status == "done" and stands and protocol.accepts(before, ticket, protocol.summary_of(ticket)):
        yield "progress: a repeated commit was taken again"


def _refused_wrongly(protocol: Protocol, before: State, ticket: Ticket, after: State) -> Iterator[str]:
    """Growth, a swap, or a change above the cut never costs a build."""
    newest = before.build and (before.build.epoch, before.build.covers_to) == (ticket.epoch, ticket.covers_to)
    if not newest or ticket.touched or ticket.life != before.life:
        return
    accepted = covers(after.standby) == ticket.covers_to or covers(after.active) == ticket.covers_to
    if not accepted and protocol.accepts(before._replace(epoch=ticket.epoch), ticket, protocol.summary_of(ticket)):
        yield "progress: a build was refused though nothing inside its range changed"


def _broken_change(before: State, label: str, after: State) -> Iterator[str]:
    """A staged change that took effect changed what it says and nothing else."""
    if label.startswith("again"):
        changer = before.changers[int(label[label.index("[") + 1 : label.index("]")]) - 1]
    else:
        what, seq, *_ = label.split(" ")
        changer = Changer(before.life, 0, what, int(seq))  # type: ignore[arg-type]
    if changer.life != before.life:
        yield "resurrection: a change that was meant for an earlier life"
    if after.log != changed(before.log, changer):
        yield "lost: a staged change lost a turn, another change, or itself"


def _broken_fork(protocol: Protocol, label: str, after: State) -> Iterator[str]:
    fork = after.fork
    if fork is None:
        return
    if is_readable(protocol, fork) and not fork.whole:
        yield "torn: a fork can be read that is not what its source ever was"
    elif label == "fork: publish":
        alone = forked(protocol, fork)
        for s in (alone, *(protocol.append(alone, kind) for kind in protocol.scope.kinds)):
            yield from broken_state(protocol, s)
    elif label.endswith("acknowledge") and not is_as_source(after, fork):
        yield "stale: an acknowledged fork holds what its source had changed before"
