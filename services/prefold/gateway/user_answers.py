"""Shape of the receipt of a user's erasure."""

from msgspec import Struct

from prefold.gateway.answers import Count, Remains


class UserErasureAnswer(Struct, frozen=True, kw_only=True):
    """What every store still had of the user when it was read again. A worker looks once more after each session."""

    user: str
    erased_at: str
    sessions: list[str]
    """Erased by this call, those among them that were forked from others."""
    turns: Count
    facts: Count
    """Rows that went, history included."""
    sessions_left: list[str]
    """That there was no time for, or that were opened meanwhile: repeat the call."""
    facts_left: Count
    keys_left: Count
    """Of the user and of the erased sessions in Redis, but for tombstones."""
    events_left: Count
    due_left: Count
    """Work that is still due for the sessions, but for the worker's look."""
    dead_letters_left: Count
    commands_left: Count | None
    """In the session store's log of slow commands, which quotes them. ``null``: not checked."""
    jobs_left: Count | None
    """That name one of the sessions on the job queue. ``null``: not checked."""
    vectors_left: Count | None
    """Of turns, summaries, segments and facts. ``null``: not checked."""
    not_checked: list[str]
    opened_anew: bool
    """Something of the user was written again meanwhile: that is a new beginning, and is counted here."""
    remains: list[Remains]
