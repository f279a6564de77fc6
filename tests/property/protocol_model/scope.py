"""What bounds one search, and the guards that a search may leave out."""

from dataclasses import dataclass
from enum import StrEnum


class Guard(StrEnum):
    """One thing that the scripts must do. The value says it in words."""

    INCARNATION = "a commit compares the incarnation"
    EPOCH = "a commit compares the epoch"
    START_RAISES = "a build's start raises the epoch"
    EDIT_RAISES = "an edit or delete at or below the recorded covers_to raises the epoch"
    REWIND_RAISES = "a rewind below the recorded covers_to raises the epoch"
    RECORD_OUTLIVES_LEASE = "the record counts after its lease expired"
    RECORD_NEEDED = "a commit needs the record of its build, which the first commit ended"
    CUT_NOW = "a commit checks its cut against the log as it is now"
    GAIN = "a commit must make the undegraded context smaller"
    LEASE = "one build in flight: a live lease refuses the next"
    RENEW_HOLDER = "a renewal compares incarnation and epoch"
    ABANDON_HOLDER = "giving a lease back compares incarnation and epoch"
    SOURCE_IS_LOG = "a summary is made from the log, never from the served view"
    DROP_STANDBY = "a change inside the standby drops it"
    FALL_BACK = "a change inside the active summary falls back to an older one"
    PURGE_APPLIED = "a change inside an applied summary removes it from those to fall back to"
    NO_CALL_LEFT_OPEN = "a summary does not stand where a rewind left a call open at its end"
    RECHECK_CUTS = "a rewind or delete above a summary checks its cut again"
    ERASE_DROPS_DERIVED = "an erasure drops standby and summaries with the log"
    NEXT_FOLLOWS = "a change above the standby's cut rewrites the standby's context"
    NO_CUT_IN_ROUND = "no cut before a result"
    STRIP_CLOSER = "the turn after a cut loses the closing marker of calls that are before the cut"
    CUT_BEFORE_LATE = "a late result, being text, is a place to cut"
    LATE_CLOSES_ROUND = "a result for a call that is not open closes the open round first"
    USER_STAYS = "a cut does not cover the newest plain user turn unless the head carries it"
    CARRY_WHEN_OVER = "the newest plain user turn may be covered and carried when the log is over the limit"
    TASK_IN_VIEW = "the ladder keeps the newest plain user turn when its group goes"
    NEWER_TASK = "the ladder puts the newest user turn in the place of one that a build carried"
    GAP_MARKED = "the ladder marks what it left out"
    MARKER_ROOM = "the ladder counts the marker that it will write"
    HEAD_YIELDS = "the ladder drops head fragments when the newest group needs the room"
    REFIT_APPEND = "an append ends with a refit"
    REFIT_CHANGE = "an edit, delete or rewind ends with a refit"
    REFIT_LIMIT = "a new limit ends with a refit"
    REFIT_COMMIT = "a commit to a degraded session swaps at once"
    REBUILD_ON_RAISE = "a higher limit restores a degraded view that now fits"
    NO_SWAP_WHILE_THINKING = "no swap inside an open round with thinking blocks"
    SWAP_KEEPS_EPOCH = "a swap leaves the epoch alone"
    HOLE_AFTER_CUT = "a commit takes the hole that a rewind left after its cut"
    CHANGE_TOKEN = "each step of a change goes on with its own staged copy only"
    CHANGE_COUNTER = "and only with one that no other change has overtaken"
    CHANGE_LIFE = "each step of a change but the first compares the incarnation"
    CHANGE_WHOLE = "the staged copy takes the log's place only when it has reached the log's end"
    ERASE_DROPS_STAGE = "an erasure removes the staged copy with the log"
    FORK_CHECKS = "a fork is checked against its source before it is published"
    FORK_LOOKS_AFTER = "a fork's source is looked at again before the fork is acknowledged"
    FORK_REPEAT_LOOKS = (
        "a repeated fork that finds itself published looks at its source again before it is acknowledged"
    )
    FORK_COMPARES_LIFE = "both compare the source's incarnation"
    FORK_COMPARES_CHANGES = "both compare the source's change counter"
    FORK_PUBLISHED_LAST = "a fork answers reads only when it is whole"
    FORK_SUMMARY_BEFORE = "a fork takes no summary that covers turns after its point"
    FORK_SUMMARY_STANDS = "a fork's summary must stand before the end of its log"
    REFIT_FORK = "a fork's publication ends with a refit"


ALL_GUARDS = frozenset(Guard)


@dataclass(frozen=True, slots=True)
class Scope:
    """Bounds of one search. Sizes are small token units: see ``rules``."""

    name: str
    kinds: str = "ua"
    """What may be appended: see ``Turn``. ``r`` answers an open call if there is one, ``l`` never does."""
    turns: int = 6
    """Highest seq of one life."""
    builders: int = 2
    edits: int = 0
    deletes: bool = True
    rewinds: int = 0
    endings: int = 0
    """Erasures and expiries of the whole session."""
    erase_raises: bool = True
    """An erasure raises the epoch."""
    record_ends: bool = True
    """A commit that is taken, and giving back, end the record of the build."""
    beyond: bool = True
    """A commit must cover more than the active summary and the standby."""
    staged: int = 0
    """Edits and removals by a staged copy,"""
    stages_rewinds: bool = False
    """and rewinds."""
    change_clears_stage: bool = True
    """A change ends what another one has staged."""
    change_ends_record: bool = True
    """A change at or below the recorded covers_to ends the record of the build, beside raising the epoch."""
    forks: int = 0
    page: int = 2
    """Turns that one step of a staged copy takes."""
    limits: tuple[int, ...] = ()
    """Other hard limits that a PUT may set, each in turn."""
    clock: bool = True
    """Leases expire, builders renew or give up."""
    calls: int = 1
    """Calls of one assistant turn with calls."""
    thinking: bool = False
    """Turns with calls carry thinking blocks."""
    hard: int = 9
    soft: int = 5
    low: int = 6
