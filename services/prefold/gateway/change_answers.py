"""Shapes of the calls that branch and correct."""

from typing import Annotated

from msgspec import Meta, Struct

from prefold.gateway.answers import ContextNumbers, Count, Durability, Name, Remains

Seq = Annotated[int, Meta(ge=0, le=2**53)]


class RewindBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to go back to."""

    to_seq: Seq
    """The newest turn that stays; 0: none does. A seq that was given out is never given out again."""


class RewindAnswer(Struct, frozen=True, kw_only=True):
    """The session ends with turn ``to_seq``; what was said after it is read, found and served no more."""

    session: str
    to_seq: Count
    turns: Count
    """Taken back by this call; 0: there was nothing after ``to_seq``."""
    head_seq: Count
    """The last seq that was given out: the next turn gets the one after it."""
    vectors_left: Count | None
    """Of the turns taken back. ``null``: the vector store does not answer, and workers remove them."""
    facts_withdrawn: Count | None
    """What was known of the user from them alone. ``null``: not known, and workers withdraw it."""
    context: ContextNumbers
    remains: list[Remains]
    durability: Durability


class ForkBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The new session, and the last turn that it shares."""

    session: Name
    at_seq: Seq | None = None
    """Default: the newest turn."""


class ChangedTurn(Struct, frozen=True, kw_only=True):
    """A turn after its change. Tokens are served tokens."""

    id: str
    seq: Count
    tokens: Count
    revision: Count
    """How often it was changed."""


class ChangeAnswer(Struct, frozen=True, kw_only=True):
    """The answer to a correction or a removal: what was derived from the old words is void."""

    turn: ChangedTurn
    changed: bool
    """``false``: it was so already."""
    removed: bool
    """``true``: a fixed marker stands in the turn's place, and its id takes no other content."""
    vectors_left: Count | None
    """Of the old words. ``null``: the vector store does not answer, and workers remove them."""
    facts_withdrawn: Count | None
    """What was known of the user from them alone. ``null``: not known, and workers withdraw it."""
    context: ContextNumbers
    remains: list[Remains]
    durability: Durability
