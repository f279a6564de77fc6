"""Contexts as lists of lines: the undegraded one, and what the ladder makes of one that is too large."""

from collections.abc import Collection
from functools import lru_cache

from tests.property.protocol_model.rules import (
    FIRST,
    MARKER,
    SHORT,
    SUMMARY,
    TASK,
    Log,
    first_user,
    newest_user,
    starts_group,
    turn_tokens,
)
from tests.property.protocol_model.scope import Guard
from tests.property.protocol_model.state import Line, Summary, Turn

Lines = tuple[Line, ...]
HEAD_PARTS = frozenset({"first", "task", "sum"})
KINDS = frozenset("uacrl")


def size(lines: Lines) -> int:
    return sum(line.tokens for line in lines)


def turn_line(turn: Turn, short: bool = False) -> Line:
    return Line(turn.kind, turn.seq, turn.rev, turn_tokens(turn, short), turn.closes)


def without_closer(line: Line) -> Line:
    """A turn's line where it stands first: the calls that its marker closed are not in sight."""
    return line._replace(tokens=line.tokens - MARKER, closes=0) if line.closes else line


@lru_cache(maxsize=200_000)
def render(active: Summary | None, log: Log, strip: bool = True) -> Lines:
    """The undegraded context: the head, then every turn after it."""
    head: list[Line] = []
    if active:
        if active.first:
            head.append(Line("first", *active.first, FIRST))
        if active.task:
            head.append(Line("task", *active.task, TASK))
        head.append(Line("sum", active.covers_to, 0, SUMMARY))
    covers_to = active.covers_to if active else 0
    window = [turn_line(turn) for turn in log if turn.seq > covers_to]
    if window and strip:
        window[0] = without_closer(window[0])
    return (*head, *window)


class Ladder:
    """Makes one context smaller, rung by rung, and keeps it valid."""

    def __init__(self, lines: Lines, log: Log, guards: Collection[Guard]) -> None:
        self._guards = guards
        self._head = [line for line in lines if line.part in HEAD_PARTS]
        self._window = [line for line in lines if line.part in KINDS]
        gap = next((line for line in lines if line.part == "gap"), None)
        self._gap_from, self._gap_to = (gap.seq, gap.rev) if gap else (0, 0)
        self._log = log
        self._newest = newest_user(log)
        self._first = first_user(log)

    def lines(self) -> Lines:
        gap = [Line("gap", self._gap_from, self._gap_to, MARKER)]
        show = self._gap_to and Guard.GAP_MARKED in self._guards
        return (*self._head, *(gap if show else ()), *self._window)

    def down_to(self, low: int, limit: int) -> Lines:
        self._shorten(0, self._newest_group(), "rl", low)
        while self._total() > low and self._newest_group() > 0:
            self._drop_oldest_group()
        self._shorten_task(low)
        self._shorten(0, len(self._window), "rl", low)
        self._shorten(0, len(self._window), "uac", low)
        if Guard.HEAD_YIELDS in self._guards:
            self._drop_head("sum", limit)
            self._drop_head("first", limit)
        return self.lines()

    def _total(self) -> int:
        counted = Guard.MARKER_ROOM in self._guards
        return sum(line.tokens for line in self.lines() if counted or line.part != "gap")

    def _newest_group(self) -> int:
        """Index in the window where the newest group starts."""
        starts = [i for i, line in enumerate(self._window) if starts_group(line.part, self._guards)]
        return starts[-1] if starts else 0

    def _shorten(self, start: int, stop: int, kinds: str, low: int) -> None:
        for index in range(start, stop):
            line = self._window[index]
            if line.part in kinds and self._total() > low:
                self._window[index] = line._replace(tokens=SHORT + (MARKER if line.closes else 0))

    def _drop_oldest_group(self) -> None:
        """Only called while a second group follows."""
        while True:
            line = self._window.pop(0)
            self._gap_from = self._gap_from or line.seq
            self._gap_to = line.seq
            self._keep_in_head(line)
            if starts_group(self._window[0].part, self._guards):
                break
        if Guard.STRIP_CLOSER in self._guards:
            self._window[0] = without_closer(self._window[0])

    def _keep_in_head(self, line: Line) -> None:
        if line.seq == self._first and not any(other.part == "first" for other in self._head):
            self._head.insert(0, Line("first", line.seq, line.rev, FIRST))
        elif line.seq == self._newest and Guard.TASK_IN_VIEW in self._guards:
            carried = [other for other in self._head if other.part == "task"]
            if carried and Guard.NEWER_TASK not in self._guards:
                return
            self._head = [other for other in self._head if other.part != "task"]
            self._head.insert(
                1 if self._head and self._head[0].part == "first" else 0, Line("task", line.seq, line.rev, SHORT)
            )

    def _shorten_task(self, low: int) -> None:
        for index, line in enumerate(self._head):
            if line.part == "task" and self._total() > low:
                self._head[index] = line._replace(tokens=SHORT)

    def _drop_head(self, part: str, limit: int) -> None:
        for line in list(self._head):
            if line.part == part and line.seq != self._newest and self._total() > limit:
                self._head.remove(line)
                if part == "sum":
                    self._gap_from = self._log[0].seq if self._log else 1
                    self._gap_to = max(self._gap_to, line.seq)
