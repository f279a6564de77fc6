"""Shape of the answer to a session's end."""

from msgspec import Struct

from prefold.gateway.answers import Count


class CloseAnswer(Struct, frozen=True, kw_only=True):
    """How far the session's end is. The call may be repeated until it is closed; a turn that comes opens it again."""

    session: str
    closed: bool
    """Its turns, if it has any, are remembered and it has its summary. ``false``: a memory worker has it to do, at once."""
    closed_at: str | None
    head_seq: Count
    remembered_to: Count
    """Facts were taken out of the turns up to this one."""
    turns_open: Count
    """Turns that are still to be looked through."""
