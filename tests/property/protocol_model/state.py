"""What the model remembers of one session. Everything is immutable and hashable: a state is a node of the search."""

from typing import Literal, NamedTuple

Version = tuple[int, int, int]
"""One content that once stood in a log: incarnation, seq, revision. Revision 0: redacted."""


class Turn(NamedTuple):
    seq: int
    kind: Literal["u", "a", "c", "r", "l"]
    """Plain user, plain assistant, calls, result of an open call, late result (text by now)."""
    rev: int
    closes: int
    """Open calls that this turn's own closing marker answers, in front of it."""


class Line(NamedTuple):
    """One line of a context: a turn, or a part of the head (``first``, ``task``, ``sum``), or the ``gap`` marker."""

    part: str
    seq: int
    """Turns: theirs. ``sum``: what it covers to. ``gap``: first turn left out."""
    rev: int
    """Turns: theirs. ``gap``: last turn left out."""
    tokens: int
    closes: int = 0


class Summary(NamedTuple):
    covers_to: int
    source: tuple[Version, ...]
    """What the summarizer really saw."""
    first: tuple[int, int] | None
    """Seq and revision of the first user message that the head carries."""
    task: tuple[int, int] | None
    """Seq and revision of the newest plain user turn, where the head has to carry it."""


class Standby(NamedTuple):
    summary: Summary
    lines: tuple[Line, ...]
    """The materialized next context."""


class Build(NamedTuple):
    """What the session records of the last build that began."""

    epoch: int
    covers_to: int
    alive: bool
    """The lease has neither ended nor been given back."""


class Ticket(NamedTuple):
    """A builder's own memory, which nobody can take back from it."""

    life: int
    epoch: int
    covers_to: int
    first: int
    task: int
    source: tuple[Version, ...] | None
    """None: it has not read yet."""
    status: Literal["running", "late", "done"]
    touched: bool
    """For the checks only: its range changed after the build began."""


class Staging(NamedTuple):
    """A copy of the log beside the log, on its way to take its place. A session has room for one."""

    life: int
    """For the checks only: of which life it is."""
    token: int
    """Whose it is."""
    changes: int
    """The session's change counter when it was begun."""
    turns: tuple[Turn, ...]


class Changer(NamedTuple):
    """What a backend remembers between two calls of one edit, removal or rewind."""

    life: int
    token: int
    what: Literal["edit", "remove", "rewind"]
    seq: int
    """The turn; of a rewind the last one to stay."""


class Fork(NamedTuple):
    """One fork under way: what its forker remembers, and what stands under the new name."""

    life: int
    changes: int
    """Incarnation and change counter of the source when it began."""
    point: int
    """The fork takes the turns up to this one."""
    turns: tuple[tuple[int, Turn], ...] = ()
    """Copied so far, each with the life that it was read from."""
    copied_to: int = 0
    summaries: tuple[Summary, ...] | None = None
    """Copied summaries, oldest first. None: not yet."""
    phase: Literal["copying", "checked", "published", "acknowledged"] = "copying"
    whole: bool = False
    """For the checks only: at the check the copy was what the source held."""


class Spent(NamedTuple):
    """How much of the scope's allowance is used."""

    edits: int = 0
    rewinds: int = 0
    endings: int = 0
    limits: int = 0
    staged: int = 0
    forks: int = 0


class State(NamedTuple):
    log: tuple[Turn, ...] = ()
    head_seq: int = 0
    """Last seq given out; a rewind does not give it back."""
    life: int = 1
    """Incarnation of the current life, or of the last one."""
    exists: bool = True
    epoch: int = 0
    """Lives in the tombstone: survives the session."""
    build: Build | None = None
    active: Summary | None = None
    applied: tuple[Summary, ...] = ()
    """Applied before ``active``, oldest first."""
    standby: Standby | None = None
    lines: tuple[Line, ...] = ()
    """The served context."""
    degraded: bool = False
    limit: int = 0
    tickets: tuple[Ticket, ...] = ()
    changes: int = 0
    """Edits, removals and rewinds of this life."""
    staging: Staging | None = None
    changers: tuple[Changer, ...] = ()
    fork: Fork | None = None
    spent: Spent = Spent()
