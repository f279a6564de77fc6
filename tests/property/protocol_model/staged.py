"""Edits, removals and rewinds as they are really made: one script, called until it says that it is done.

Each call looks at the session anew and copies the next page of the log, as the change leaves it, into the stage; the
call that reaches the log's end puts the copy in its place. What a caller remembers between two calls is its token and
the incarnation that the first call answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.property.protocol_model.scope import Guard
from tests.property.protocol_model.state import Changer, Staging, State, Turn

if TYPE_CHECKING:
    from tests.property.protocol_model.protocol import Protocol, Step

Log = tuple[Turn, ...]


def changed(log: Log, changer: Changer) -> Log:
    """What the change makes of a log, or of a part of one."""
    if changer.what == "rewind":
        return tuple(turn for turn in log if turn.seq <= changer.seq)
    return tuple(_rewritten(turn, changer.what) if turn.seq == changer.seq else turn for turn in log)


def _rewritten(turn: Turn, what: str) -> Turn:
    return turn._replace(rev=turn.rev + 1 if what == "edit" else 0)


def staged_steps(protocol: Protocol, s: State) -> Iterator[Step]:
    """A new caller begins, or one that was answered ``more`` calls again."""
    if s.exists and s.spent.staged < protocol.scope.staged:
        asked = s._replace(spent=s.spent._replace(staged=s.spent.staged + 1))
        used = {changer.token for changer in s.changers} | ({s.staging.token} if s.staging else set())
        token = min(set(range(1, len(used) + 2)) - used)
        for changer in _wishes(protocol, s, token):
            begun = asked._replace(changers=(*s.changers, changer))
            yield f"{changer.what} {changer.seq} by stage", called(protocol, begun, len(s.changers))
    for index, changer in enumerate(s.changers):
        yield f"again {changer.what} {changer.seq} [{index + 1}]", called(protocol, s, index)


def _wishes(protocol: Protocol, s: State, token: int) -> Iterator[Changer]:
    for turn in s.log:
        if turn.rev:
            yield Changer(s.life, token, "edit", turn.seq)
            if protocol.scope.deletes:
                yield Changer(s.life, token, "remove", turn.seq)
    if protocol.scope.stages_rewinds:
        for turn in s.log[:-1]:
            yield Changer(s.life, token, "rewind", turn.seq)


def called(protocol: Protocol, s: State, index: int) -> State:
    """One call of the script."""
    changer = s.changers[index]
    done = s._replace(changers=(*s.changers[:index], *s.changers[index + 1 :]))
    if not s.exists or (protocol.on(Guard.CHANGE_LIFE) and s.life != changer.life):
        return done
    if changed(s.log, changer) == s.log:  # taken back, removed, or rewound that far, by another
        return done
    stage = _held(protocol, s, changer)
    reached = stage.turns[-1].seq if stage.turns else 0
    rest = [turn for turn in changed(s.log, changer) if turn.seq > reached]
    if len(rest) > protocol.scope.page:
        page = (*stage.turns, *rest[: protocol.scope.page])
        return s._replace(staging=stage._replace(turns=page))
    log = (*stage.turns, *(rest if protocol.on(Guard.CHANGE_WHOLE) or not stage.turns else ()))
    return _published(protocol, done._replace(staging=None), log, changer)


def _held(protocol: Protocol, s: State, changer: Changer) -> Staging:
    """The stage that this caller may go on with, or a new one in its place.

    A caller whose place another one holds waits for that one's lease; here every lease may be over at once.
    """
    stage = s.staging
    checks = {
        Guard.CHANGE_TOKEN: stage is not None and stage.token == changer.token,
        Guard.CHANGE_COUNTER: stage is not None and stage.changes == s.changes,
    }
    if stage is not None and all(held for guard, held in checks.items() if protocol.on(guard)):
        return stage
    return Staging(s.life, changer.token, s.changes, ())


def _published(protocol: Protocol, s: State, log: Log, changer: Changer) -> State:
    intact = changer.seq if changer.what == "rewind" else changer.seq - 1
    raises = Guard.REWIND_RAISES if changer.what == "rewind" else Guard.EDIT_RAISES
    return protocol.change(s, log, intact, raises, s.spent)
