"""The rules that follow from the log alone: sizes, open rounds, cuts."""

from collections.abc import Collection
from functools import lru_cache

from tests.property.protocol_model.scope import Guard
from tests.property.protocol_model.state import Summary, Turn

Log = tuple[Turn, ...]
FULL = {"u": 2, "a": 2, "c": 1, "r": 3, "l": 2}
SHORT = 1
MARKER = 1
FIRST = 1
TASK = FULL["u"]
SUMMARY = 1


def turn_tokens(turn: Turn, short: bool = False) -> int:
    """Tokens of the turn's lines, closing marker included. A redacted turn is its short form."""
    body = SHORT if short or turn.rev == 0 else FULL[turn.kind]
    return body + (MARKER if turn.closes else 0)


@lru_cache(maxsize=200_000)
def open_calls(log: Log, calls: int) -> int:
    """Calls without a result at the log's end."""
    waiting = 0
    for turn in log:
        if turn.kind == "r":
            waiting -= 1
        elif turn.kind != "l" or turn.closes:
            waiting = calls if turn.kind == "c" else 0
    return waiting


def newest_user(log: Log) -> int:
    """Seq of the newest plain user turn that was not redacted, or 0."""
    return next((turn.seq for turn in reversed(log) if turn.kind == "u" and turn.rev), 0)


def first_user(log: Log) -> int:
    """Seq of the first plain user turn that was not redacted, or 0."""
    return next((turn.seq for turn in log if turn.kind == "u" and turn.rev), 0)


def starts_group(kind: str, guards: Collection[Guard]) -> bool:
    """Whether a summary may end right before a turn of this kind. It is known at the append and never changes."""
    if kind == "l":
        return Guard.CUT_BEFORE_LATE in guards
    return kind != "r" or Guard.NO_CUT_IN_ROUND not in guards


def pick_cut(log: Log, floor: int, soft: int, over: bool, guards: Collection[Guard]) -> tuple[int, int] | None:
    """Newest permitted ``covers_to`` above ``floor``, with the user turn that the head must carry (or 0)."""
    newest = newest_user(log)
    carries = sum(turn_tokens(turn) for turn in log if turn.seq > newest) > soft
    carries = carries or (over and Guard.CARRY_WHEN_OVER in guards)
    for index in range(len(log) - 1, 0, -1):
        if log[index - 1].seq <= floor:
            return None
        cut = cut_before(log, index, carries, guards)
        if cut:
            return cut
    return None


def cut_before(log: Log, index: int, carries: bool, guards: Collection[Guard]) -> tuple[int, int] | None:
    """The cut right before ``log[index]``: what it covers to, and the user turn that the head must carry (or 0).

    ``carries``: the head may carry the newest user turn. None: no summary may end there.
    """
    covers_to, newest = log[index - 1].seq, newest_user(log)
    if not starts_group(log[index].kind, guards):
        return None
    if covers_to < newest or newest in (0, first_user(log)) or Guard.USER_STAYS not in guards:
        return covers_to, 0
    return (covers_to, newest) if carries else None


def cut_stands(log: Log, summary: Summary, calls: int, guards: Collection[Guard]) -> bool:
    """Whether a summary made earlier may still stand before the turns that follow it now."""
    after = next((turn for turn in log if turn.seq > summary.covers_to), None)
    if after is not None and not starts_group(after.kind, guards):
        return False
    if after is not None and after.seq > summary.covers_to + 1 and Guard.HOLE_AFTER_CUT not in guards:
        return False
    if after is None and Guard.NO_CALL_LEFT_OPEN in guards and open_calls(log, calls):
        return False
    newest = newest_user(log)
    carried = {part[0] for part in (summary.first, summary.task) if part}
    return newest > summary.covers_to or newest == 0 or newest in carried
