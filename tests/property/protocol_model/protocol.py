"""The steps of the protocol: what a backend, a builder and the clock may do next. Each step is one script, or one read."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.property.protocol_model.forks import fork_steps
from tests.property.protocol_model.rules import Log, cut_stands, first_user, open_calls, pick_cut
from tests.property.protocol_model.scope import ALL_GUARDS, Guard, Scope
from tests.property.protocol_model.staged import staged_steps
from tests.property.protocol_model.state import Build, Spent, Standby, State, Summary, Ticket, Turn, Version
from tests.property.protocol_model.view import KINDS, Ladder, render, size, turn_line

Step = tuple[str, State]


def covers(summary: Summary | Standby | None) -> int:
    """What a summary or standby covers to; 0 without one."""
    if summary is None:
        return 0
    return summary.summary.covers_to if isinstance(summary, Standby) else summary.covers_to


def _told(ticket: Ticket, intact: int, *, over: bool) -> Ticket:
    """Of a change. When that ended the record, the builder holds no lease any more, though nobody tells it so."""
    if ticket.covers_to <= intact:
        return ticket
    late = over and ticket.status == "running"
    return ticket._replace(touched=True, status="late" if late else ticket.status)


def _renumbered(s: State) -> State:
    """The same state with the smallest epochs in the same order: only their order and equality count."""
    used = {s.epoch, *(t.epoch for t in s.tickets), *((s.build.epoch,) if s.build else ())} - {0}
    if len(used) == max(used, default=0):
        return s
    rank = {0: 0} | {epoch: n for n, epoch in enumerate(sorted(used), 1)}
    return s._replace(
        epoch=rank[s.epoch],
        build=s.build and s.build._replace(epoch=rank[s.build.epoch]),
        tickets=tuple(t._replace(epoch=rank[t.epoch]) for t in s.tickets),
    )


@dataclass(frozen=True)
class Protocol:
    scope: Scope
    guards: frozenset[Guard] = ALL_GUARDS

    def on(self, guard: Guard) -> bool:
        return guard in self.guards

    def initial(self) -> State:
        return State(limit=self.scope.hard)

    def steps(self, s: State) -> Iterator[Step]:
        """Every step that may come next, with the state after it."""
        return ((label, _renumbered(after)) for label, after in self._steps(s))

    def _steps(self, s: State) -> Iterator[Step]:
        if s.exists:
            yield from self._appends(s)
            yield from self._changes(s)
            yield from self._limits(s)
            begun = self.begin(s)
            if begun:
                yield f"begin {begun.build.covers_to if begun.build else 0}", begun
        yield from staged_steps(self, s)
        yield from fork_steps(self, s)
        yield from self._endings(s)
        yield from self._clock(s)
        for index, ticket in enumerate(s.tickets):
            yield from self._builder(s, index, ticket)

    # Backend

    def _appends(self, s: State) -> Iterator[Step]:
        if s.head_seq < self.scope.turns:
            for kind in self.scope.kinds:
                yield f"append {kind}", self.append(s, kind)

    def append(self, s: State, kind: str) -> State:
        waiting = open_calls(s.log, self.scope.calls)
        seq = s.head_seq + 1
        if kind == "r":
            turn = Turn(seq, "r" if waiting else "l", 1, 0)
        elif kind == "l" and not self.on(Guard.LATE_CLOSES_ROUND):
            turn = Turn(seq, "l", 1, 0)
        else:
            turn = Turn(seq, kind, 1, waiting)  # type: ignore[arg-type]
        line = turn_line(turn)
        standby = s.standby and s.standby._replace(lines=(*s.standby.lines, line))
        after = s._replace(log=(*s.log, turn), head_seq=seq, lines=(*s.lines, line), standby=standby)
        return self.refit(after) if self.on(Guard.REFIT_APPEND) else after

    def _changes(self, s: State) -> Iterator[Step]:
        if s.spent.edits < self.scope.edits:
            spent = s.spent._replace(edits=s.spent.edits + 1)
            for index, turn in enumerate(s.log):
                for rev in self._next_revisions(turn.rev):
                    log = (*s.log[:index], turn._replace(rev=rev), *s.log[index + 1 :])
                    label = f"edit {turn.seq}" if rev else f"delete {turn.seq}"
                    yield label, self.change(s, log, turn.seq - 1, Guard.EDIT_RAISES, spent)
        if s.spent.rewinds < self.scope.rewinds:
            spent = s.spent._replace(rewinds=s.spent.rewinds + 1)
            for index in range(len(s.log)):
                to_seq = s.log[index - 1].seq if index else 0
                yield f"rewind {to_seq}", self.change(s, s.log[:index], to_seq, Guard.REWIND_RAISES, spent)

    def _next_revisions(self, rev: int) -> tuple[int, ...]:
        if not rev:
            return ()
        return (rev + 1, 0) if self.scope.deletes else (rev + 1,)

    def change(self, s: State, log: Log, intact: int, raises: Guard, spent: Spent) -> State:
        """Everything derived from turns above ``intact`` falls; what stands below is checked against the new log."""
        ended = self.scope.change_ends_record and self._recorded(s) > intact
        standby = (
            s.standby if s.standby and self._survives(s.standby.summary, log, intact, Guard.DROP_STANDBY) else None
        )
        active, applied = self._fallen_back(s, log, intact)
        lines = render(active, log)
        if standby and self.on(Guard.NEXT_FOLLOWS):
            standby = standby._replace(lines=render(standby.summary, log, self.on(Guard.STRIP_CLOSER)))
        after = s._replace(
            log=log,
            active=active,
            applied=applied,
            standby=standby,
            lines=lines,
            degraded=False,
            build=None if ended else s.build,
            tickets=tuple(_told(t, intact, over=ended) for t in s.tickets),
            epoch=s.epoch + (self.on(raises) and max(self._recorded(s), covers(s.standby)) > intact),
            changes=s.changes + 1,
            staging=None if self.scope.change_clears_stage else s.staging,
            spent=spent,
        )
        return self.refit(after) if self.on(Guard.REFIT_CHANGE) else after

    def _recorded(self, s: State) -> int:
        """Highest covers_to that a builder who may still commit could have."""
        if not s.build or not (s.build.alive or self.on(Guard.RECORD_OUTLIVES_LEASE)):
            return 0
        return s.build.covers_to

    def _survives(self, summary: Summary, log: Log, intact: int, inside: Guard) -> bool:
        if self.on(inside) and summary.covers_to > intact:
            return False
        return not self.on(Guard.RECHECK_CUTS) or cut_stands(log, summary, self.scope.calls, self.guards)

    def _fallen_back(self, s: State, log: Log, intact: int) -> tuple[Summary | None, tuple[Summary, ...]]:
        left = [*s.applied, s.active] if s.active else []
        if left and self._survives(left[-1], log, intact, Guard.FALL_BACK):
            return left[-1], s.applied
        if left:
            left.pop()
        while left and not self._survives(left[-1], log, intact, Guard.PURGE_APPLIED):
            left.pop()
        return (left[-1], tuple(left[:-1])) if left else (None, ())

    def _limits(self, s: State) -> Iterator[Step]:
        if s.spent.limits < len(self.scope.limits):
            limit = self.scope.limits[s.spent.limits]
            after = s._replace(limit=limit, spent=s.spent._replace(limits=s.spent.limits + 1))
            if limit > s.limit and self.on(Guard.REBUILD_ON_RAISE):
                after = after._replace(lines=render(s.active, s.log), degraded=False)
            yield f"limit {limit}", self.refit(after) if self.on(Guard.REFIT_LIMIT) else after

    def _endings(self, s: State) -> Iterator[Step]:
        if not s.exists:
            yield "create again", s._replace(exists=True, life=s.life + 1)
            if s.epoch:
                yield "tombstone expires", s._replace(epoch=0)
        elif s.spent.endings < self.scope.endings and s.log:
            gone = State(
                life=s.life,
                exists=False,
                epoch=s.epoch,
                limit=self.scope.hard,
                tickets=s.tickets,
                changers=s.changers,
                fork=s.fork,
                spent=s.spent._replace(endings=s.spent.endings + 1),
            )
            yield "keys expire, create again", gone._replace(exists=True, life=s.life + 1)
            if not self.on(Guard.ERASE_DROPS_DERIVED):
                gone = gone._replace(standby=s.standby)
            if not self.on(Guard.ERASE_DROPS_STAGE):
                gone = gone._replace(staging=s.staging)
            yield "erase", gone._replace(epoch=s.epoch + self.scope.erase_raises)

    # Builders and the clock

    def begin(self, s: State) -> State | None:
        """None: a live lease, nothing due, or no cut."""
        undegraded = size(render(s.active, s.log))
        if (self.on(Guard.LEASE) and s.build and s.build.alive) or undegraded <= self.scope.soft:
            return None
        floor = max(covers(s.active), covers(s.standby))
        cut = pick_cut(s.log, floor, self.scope.soft, undegraded > s.limit, self.guards)
        if cut is None:
            return None
        covers_to, task = cut
        epoch = s.epoch + self.on(Guard.START_RAISES)
        first = first_user(s.log)
        ticket = Ticket(s.life, epoch, covers_to, first if first <= covers_to else 0, task, None, "running", False)
        # A builder of which nothing more is heard makes room: its steps just stop.
        tickets = (*s.tickets[1 if len(s.tickets) >= self.scope.builders else 0 :], ticket)
        return s._replace(epoch=epoch, build=Build(epoch, covers_to, True), tickets=tickets)

    def _clock(self, s: State) -> Iterator[Step]:
        if self.scope.clock and s.build and s.build.alive:
            yield "lease expires", self.expire(s)

    def expire(self, s: State) -> State:
        if not s.build:
            return s
        mine = s.build.epoch
        tickets = tuple(
            t._replace(status="late") if (t.life, t.epoch, t.status) == (s.life, mine, "running") else t
            for t in s.tickets
        )
        return s._replace(build=s.build._replace(alive=False), tickets=tickets)

    def _builder(self, s: State, index: int, ticket: Ticket) -> Iterator[Step]:
        who = f"[{index + 1}: {ticket.covers_to}]"
        if ticket.source is None:
            if s.exists:
                yield f"read {who}", self.read(s, index)
        else:
            again = " again" if ticket.status == "done" else (" late" if ticket.status == "late" else "")
            yield f"commit{again} {who}", self.commit(s, index)
        if not self.scope.clock:
            return
        if ticket.status == "late" and self.may_renew(s, ticket):
            renewed = s.build and s.build._replace(alive=True)
            yield f"renew {who}", self._with(s, index, ticket._replace(status="running"))._replace(build=renewed)
        if ticket.status != "done":
            yield f"abandon {who}", self._released(self._with(s, index, None), ticket, Guard.ABANDON_HOLDER)

    def read(self, s: State, index: int) -> State:
        ticket = s.tickets[index]
        seen: tuple[Version, ...] = tuple((s.life, t.seq, t.rev) for t in s.log if t.seq <= ticket.covers_to)
        if not self.on(Guard.SOURCE_IS_LOG):
            shown = {line.seq for line in s.lines if line.part in KINDS}
            seen = tuple(version for version in seen if version[1] in shown or version[1] <= covers(s.active))
        return self._with(s, index, ticket._replace(source=seen))

    def commit(self, s: State, index: int) -> State:
        ticket = s.tickets[index]
        summary = self.summary_of(ticket)
        if not self.accepts(s, ticket, summary):
            return s  # the record stays until its builder gives it back
        after = self._with(s, index, ticket._replace(status="done"))
        after = self._released(after, ticket, Guard.ABANDON_HOLDER)
        after = after._replace(standby=Standby(summary, render(summary, s.log, self.on(Guard.STRIP_CLOSER))))
        return self.refit(after) if self.on(Guard.REFIT_COMMIT) else after

    def summary_of(self, ticket: Ticket) -> Summary:
        revs = {seq: rev for _, seq, rev in ticket.source or ()}
        first = (ticket.first, revs[ticket.first]) if ticket.first in revs else None
        task = (ticket.task, revs[ticket.task]) if ticket.task in revs else None
        return Summary(ticket.covers_to, ticket.source or (), first, task)

    def accepts(self, s: State, ticket: Ticket, summary: Summary) -> bool:
        checks = {
            Guard.INCARNATION: ticket.life == s.life,
            Guard.EPOCH: ticket.epoch == s.epoch,
            Guard.RECORD_NEEDED: s.build is not None and s.build.covers_to == ticket.covers_to,
            Guard.CUT_NOW: cut_stands(s.log, summary, self.scope.calls, self.guards),
            Guard.GAIN: size(render(summary, s.log)) < size(render(s.active, s.log)),
        }
        beyond = ticket.covers_to > max(covers(s.active), covers(s.standby)) or not self.scope.beyond
        return s.exists and beyond and all(held for guard, held in checks.items() if self.on(guard))

    def may_renew(self, s: State, ticket: Ticket) -> bool:
        """Whether the lease is this ticket's: also after it expired, until another build begins."""
        if not s.exists or not s.build:
            return False
        return self._holds(s, ticket) or not self.on(Guard.RENEW_HOLDER)

    def _holds(self, s: State, ticket: Ticket) -> bool:
        return (ticket.life, ticket.epoch) == (s.life, s.build.epoch if s.build else None)

    def _released(self, s: State, ticket: Ticket, checked: Guard) -> State:
        if s.build and (self._holds(s, ticket) or not self.on(checked)):
            return s._replace(build=None if self.scope.record_ends else s.build._replace(alive=False))
        return s

    @staticmethod
    def _with(s: State, index: int, ticket: Ticket | None) -> State:
        kept = (ticket,) if ticket else ()
        return s._replace(tickets=(*s.tickets[:index], *kept, *s.tickets[index + 1 :]))

    # The end of every script

    def refit(self, s: State) -> State:
        """Within the limit afterwards: by a swap where one stands ready and may happen, else by the ladder."""
        over = size(s.lines) > s.limit
        if s.standby and (over or s.degraded) and not self._thinking(s):
            s = s._replace(
                active=s.standby.summary,
                applied=(*s.applied, s.active) if s.active else (),
                standby=None,
                lines=s.standby.lines,
                degraded=False,
                epoch=s.epoch + (not self.on(Guard.SWAP_KEEPS_EPOCH)),
            )
            over = size(s.lines) > s.limit
        if over:
            lines = Ladder(s.lines, s.log, self.guards).down_to(min(self.scope.low, s.limit), s.limit)
            s = s._replace(lines=lines, degraded=True)
        return s

    def _thinking(self, s: State) -> bool:
        held = self.scope.thinking and self.on(Guard.NO_SWAP_WHILE_THINKING)
        return held and open_calls(s.log, self.scope.calls) > 0
