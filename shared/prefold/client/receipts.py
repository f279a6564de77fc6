"""What an erasure leaves, counted in every store after it. None: not checked, and ``remains`` says what becomes of it."""

from dataclasses import dataclass

from prefold.client.results import Remains


@dataclass(frozen=True, slots=True)
class ErasedSession:
    """The receipt of a session's erasure; a worker looks once more later."""

    session: str
    erased_at: str
    turns: int
    """Removed by this call; 0: it had been erased before."""
    keys_left: int
    events_left: int
    due_left: int
    dead_letters_left: int
    commands_left: int | None
    jobs_left: int | None
    vectors_left: int | None
    facts_withdrawn: int | None
    """What was known of the user from this session alone."""
    facts_left: int | None
    not_checked: tuple[str, ...]
    opened_anew: bool
    forks: tuple[str, ...]
    """Sessions made of its turns: they stay."""
    remains: tuple[Remains, ...]


@dataclass(frozen=True, slots=True)
class ErasedUser:
    """The receipt of a user's erasure. With ``sessions_left`` repeat the call."""

    user: str
    erased_at: str
    sessions: tuple[str, ...]
    turns: int
    facts: int
    sessions_left: tuple[str, ...]
    facts_left: int
    keys_left: int
    events_left: int
    due_left: int
    dead_letters_left: int
    commands_left: int | None
    jobs_left: int | None
    vectors_left: int | None
    not_checked: tuple[str, ...]
    opened_anew: bool
    remains: tuple[Remains, ...]


@dataclass(frozen=True, slots=True)
class DeletedFact:
    """The fact is served, found and learnt no more."""

    id: str
    facts_left: int
    vectors_left: int | None
    remains: tuple[Remains, ...]
