"""Compares what the scripts did with what the model's own functions decide in the state before.

Sizes are the real session's, because units differ: whether there is more than the limit takes, whether a summary gains
anything, whether a build is wanted and how much it should cover. How much the ladder leaves out is not compared.
"""

from dataclasses import dataclass
from typing import Literal

from prefold.conversation.markers import OPENER_TOKENS
from prefold.storage import limits
from prefold.storage.types import BuildTicket
from tests.property.following.abstraction import Seen, floor
from tests.property.histories.snapshot import Snapshot
from tests.property.protocol_model.forks import forked, is_as_source
from tests.property.protocol_model.invariants import coverage, newest_user_shown, rounds, summaries_true
from tests.property.protocol_model.protocol import Protocol, covers
from tests.property.protocol_model.rules import cut_before, first_user, newest_user, open_calls
from tests.property.protocol_model.scope import ALL_GUARDS, Guard, Scope
from tests.property.protocol_model.staged import changed
from tests.property.protocol_model.state import Build, Changer, Fork, State
from tests.property.protocol_model.view import render

SIZED = {
    *(Guard.GAIN, Guard.REFIT_APPEND, Guard.REFIT_CHANGE, Guard.REFIT_COMMIT, Guard.REFIT_LIMIT),
    *(Guard.REBUILD_ON_RAISE, Guard.REFIT_FORK),
}
"""What depends on sizes is judged by the numbers of the real session instead."""


class DifferenceError(AssertionError):
    """The scripts decided otherwise than the model."""


def same(what: str, real: object, model: object) -> None:
    if real != model:
        raise DifferenceError(f"{what}: {_told(real, model)} where the model has {_told(model, real)}")


def _told(one: object, other: object) -> str:
    """Of two states only what differs."""
    if isinstance(one, State) and isinstance(other, State):
        return str({name: value for name, value in one._asdict().items() if value != getattr(other, name)})
    return str(one)


@dataclass(frozen=True)
class Judge:
    """``calls``: of each turn with calls; ``thinking``: whether such turns carry thinking blocks."""

    calls: int
    thinking: bool

    @property
    def protocol(self) -> Protocol:
        scope = Scope("real", calls=self.calls, thinking=self.thinking, hard=10**9)
        return Protocol(scope, ALL_GUARDS - SIZED)

    # What stands must be sound by the model's own invariants

    def standing(self, seen: Seen) -> None:
        s = seen.state
        if seen.real is None:
            return
        broken = [
            *summaries_true(s),
            *coverage(s, s.lines, s.active, "the context"),
            *newest_user_shown(s, s.lines, "it"),
        ]
        broken += rounds(s.lines, self.calls, "the context")
        if s.standby:
            lines = s.standby.lines
            broken += [*coverage(s, lines, s.standby.summary, "the standby"), *rounds(lines, self.calls, "the standby")]
            broken += newest_user_shown(s, lines, "the standby")
        same("invariants broken", broken, [])
        same("open calls", len(seen.real.state.open_calls), open_calls(s.log, self.calls))
        same(
            "newest and first user turn",
            (seen.real.state.lu, seen.real.state.fu),
            (newest_user(s.log), first_user(s.log)),
        )
        same("over the limit", seen.real.state.tok > seen.real.state.room, False)
        same("tokens of the context", seen.real.state.tok, sum(line.tokens for line in seen.real.lines))
        self._is_shown_whole(seen, seen.real)

    def _is_shown_whole(self, seen: Seen, real: Snapshot) -> None:
        s = seen.state
        shown = [(line.part, line.seq, line.rev, line.closes) for line in s.lines]
        whole = [(line.part, line.seq, line.rev, line.closes) for line in render(s.active, s.log)]
        if not s.degraded:
            same("the context", shown, whole)
        same("degraded", s.degraded, real.state.full > real.state.room)
        if s.standby:
            own = [(line.part, line.seq, line.rev, line.closes) for line in s.standby.lines]
            theirs = [(line.part, line.seq, line.rev, line.closes) for line in render(s.standby.summary, s.log)]
            same("the standby's context", own, theirs)

    # Appends, limits: growth

    def append(self, before: Seen, kind: str, after: Seen) -> None:
        grown = self.protocol.append(before.state, kind)
        same("the log", after.state.log, grown.log)
        same("the head", after.state.head_seq, grown.head_seq)
        entry = after.real.entries[-1] if after.real else None
        room = after.real.state.room if after.real else 0
        opener = after.real.state.opens - (before.real.state.opens if before.real else 0) if after.real else 0
        total = (before.real.state.tok if before.real else 0) + (entry.tokens + entry.closer_tokens if entry else 0)
        self._refitted(grown, after, over=total + opener * OPENER_TOKENS > room)

    def limit(self, before: Seen, after: Seen) -> None:
        """A lower one swaps or leaves something out, a higher one brings it back."""
        over = before.real is not None and after.real is not None and before.real.state.tok > after.real.state.room
        self._refitted(before.state, after, over=over)

    def _refitted(self, changed: State, after: Seen, *, over: bool) -> None:
        """``changed``: as the model has it before the refit. The refit swaps if and only if it must and may."""
        held = self.thinking and open_calls(changed.log, self.calls) > 0
        if changed.standby and not held and (over or changed.degraded):
            self._swapped(changed, after)
        else:
            same("the active summary", after.state.active, changed.active)
            same("applied summaries", after.state.applied, changed.applied)
            standby = after.state.standby and after.state.standby.summary
            same("the standby", standby, changed.standby and changed.standby.summary)
        same("the epoch", after.state.epoch, changed.epoch)
        same("the record of the build", after.state.build, changed.build)

    def _swapped(self, changed: State, after: Seen) -> None:
        assert changed.standby is not None
        same("the active summary after a swap", after.state.active, changed.standby.summary)
        older = (*changed.applied, changed.active) if changed.active else ()
        same("applied summaries after a swap", after.state.applied, older)
        same("the standby after a swap", after.state.standby, None)

    # Builds

    def begin(self, before: Seen, life: int, answer: BuildTicket | str, after: Seen) -> None:
        s = before.state
        said = answer if isinstance(answer, str) else "ticket"
        if not s.exists or life != s.life or before.real is None:
            same("begin", said, "gone")
            return
        cut = self._picked(s, before.real)
        if not _is_wanted(before.real):
            same("begin", said, "not_due")
        elif s.build and s.build.alive:
            same("begin beside a live lease", said in ("busy", "no_cut"), True)
        else:
            same("begin", said, "no_cut" if cut is None else "ticket")
        if isinstance(answer, str):
            same("the epoch of a refused begin", after.state.epoch, s.epoch)
            return
        same("the cut", (answer.covers_to, answer.carried_turn), cut)
        same("the first user turn", answer.first_user_seq, first_user(s.log))
        same("the epoch", (after.state.epoch, answer.epoch), (s.epoch + 1, s.epoch + 1))
        same("the record", after.state.build, Build(answer.epoch, answer.covers_to, alive=True))

    @staticmethod
    def _picked(s: State, real: Snapshot) -> tuple[int, int] | None:
        """The newest cut that the model permits and the real sizes ask for."""
        packed = real.state
        tail = packed.log - packed.lucum > packed.room * packed.ratio // 1000
        least = max(limits.LEAST_COVERED_TOKENS, int(packed.room * limits.COVER_SHARE))
        for carries in (tail, True) if s.degraded else (tail,):
            turns = tokens = 0
            for index in range(len(s.log) - 1, 0, -1):
                entry = real.entries[index]
                turns, tokens = turns + 1, tokens + entry.tokens + entry.closer_tokens
                covered_enough = packed.full - packed.htok - tokens >= least
                if not covered_enough or s.log[index - 1].seq <= max(covers(s.active), covers(s.standby)):
                    break
                cut = cut_before(s.log, index, carries, ALL_GUARDS)
                if cut and (turns >= packed.keep or tokens >= int(packed.room * limits.TAIL_SHARE)):
                    return cut
        return None

    def commit(self, before: Seen, index: int, outcome: str, after: Seen) -> None:
        s = before.state
        ticket = s.tickets[index]
        summary = self.protocol.summary_of(ticket)
        taken = self.protocol.accepts(s, ticket, summary)
        same("commit is stale", outcome == "stale", not taken)
        if outcome in ("stale", "no_gain"):
            same("the state after a refused commit", after.state, s)
            return
        real = before.real
        assert real is not None
        committed = self.protocol.commit(s, index)._replace(tickets=s.tickets)
        self._refitted(committed, after, over=real.state.full > real.state.room)
        held = self.thinking and open_calls(s.log, self.calls) > 0
        swaps = (s.degraded or real.state.full > real.state.room) and not held
        same("commit", outcome, "swapped" if swaps else "standby")
        now = after.real.state if after.real is not None else real.state
        same("the commit gains", (now.tok if swaps and not now.deg else now.ntok) < real.state.full, True)

    def hold(self, before: Seen, index: int, action: Literal["renew", "abandon"], answer: bool, after: Seen) -> None:
        s = before.state
        ticket = s.tickets[index]
        holds = s.exists and self.protocol.may_renew(s, ticket)
        if action == "renew":
            same("renew", answer, holds)
        if not holds:
            same(f"the state after a void {action}", after.state, s)
            return
        assert s.build is not None
        record = s.build._replace(alive=True) if action == "renew" else None
        same(f"the record after {action}", after.state, s._replace(build=record))

    # Changes

    def change(self, before: Seen, changer: Changer, after: Seen) -> None:
        """A change that took effect, however many steps it took: ``before`` is the state before its last one."""
        s = before.state
        log = changed(s.log, changer)
        intact = changer.seq if changer.what == "rewind" else changer.seq - 1
        raises = Guard.REWIND_RAISES if changer.what == "rewind" else Guard.EDIT_RAISES
        whole = self.protocol.change(s, log, intact, raises, s.spent)
        same("the log", after.state.log, log)
        same("the counter of changes", after.state.changes, whole.changes)
        assert before.real is not None and after.real is not None
        self._refitted(whole, after, over=_whole_tokens(whole, before.real, after.real) > after.real.state.room)

    def unchanged(self, before: Seen, after: Seen) -> None:
        same("the state after a change that was none", after.state, before.state)

    # Forks

    def fork(self, source: Seen, point: int, made: Seen, earlier: Seen) -> None:
        """``earlier``: the source before the fork was first asked for. A swap since then need not have reached it."""
        s = source.state
        if s.active and not earlier.state.active and not made.state.active:
            s = s._replace(active=None, applied=())
        summaries = tuple(one for one in (*s.applied, *((s.active,) if s.active else ())) if one.covers_to <= point)
        turns = tuple((s.life, turn) for turn in s.log if turn.seq <= point)
        fork = Fork(s.life, s.changes, point, turns, point, summaries)
        same("the fork is what its source is", is_as_source(s, fork) and made.state.log, tuple(t for _, t in turns))
        if not turns:
            same("a fork of nothing", (made.state.active, made.state.head_seq), (None, 0))
            return
        model = forked(self.protocol, fork)
        same("the fork's summary", made.state.active, model.active)
        same("the fork's older summaries", made.state.applied, model.applied)
        same("the fork's standby", made.state.standby, None)
        same("the fork's head", made.state.head_seq, model.head_seq)
        same("the fork's build", (made.state.build, made.state.changes), (None, 0))

    def erased(self, before: Seen, after: Seen) -> None:
        same("exists", after.state.exists, False)
        same("the epoch after an erasure", after.state.epoch, before.state.epoch + before.state.exists)


def _is_wanted(real: Snapshot) -> bool:
    packed = real.state
    if not packed.deg and packed.tok < packed.room * packed.ratio // 1000:
        return False
    return not packed.nx or packed.ntok - packed.n0 >= int(packed.room * limits.REFRESH_STEP)


def _whole_tokens(s: State, before: Snapshot, after: Snapshot) -> int:
    """Raw tokens of the whole context, head of the active summary and all turns after it, as the log is now."""
    reached = covers(s.active)
    heads = {floor(s.log, one.covers_to): one.head_tokens for one in before.summaries}
    window = [entry for entry in after.entries if entry.seq > reached]
    opener = OPENER_TOKENS if after.state.opens and not reached else 0
    closer = window[0].closer_tokens if window else 0
    head = heads[reached] if reached else 0
    return head + opener + sum(entry.tokens + entry.closer_tokens for entry in window) - closer
