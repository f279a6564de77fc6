"""Shapes of the calls about what is known of a user."""

from datetime import datetime
from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from prefold.facts.rows import CATEGORIES, Category, Origin
from prefold.gateway.answers import Count, Name, Remains
from prefold.gateway.recall_answers import FactSource

CATEGORY_NAMES: Final = CATEGORIES
AFTER_PATTERN: Final = "^[0-9]{1,15}_[A-Za-z0-9-]{1,64}$"

Subject = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\S")]
Relation = Annotated[str, Meta(pattern="^[a-z][a-z0-9_]{0,63}$")]
Words = Annotated[str, Meta(min_length=1, max_length=500, pattern=r"\S")]
Share = Annotated[float, Meta(ge=0, le=1)]
Moment = Annotated[datetime, Meta(tz=True)]


class FactWritten(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which fact was written: all that a write tells a key without the scope ``read``."""

    id: str


class FactAnswer(FactWritten, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A row. It is served while nothing superseded it and its time has not come."""

    subject: str
    """``user``, or the name of an entity."""
    relation: str
    object: str
    category: Category
    confidence: Share
    """As of now: it decays by the half-life of its category."""
    sources: list[FactSource]
    """Why this is known; empty for what the backend said without naming turns."""
    said: str
    """The user's own sentence; empty for what the backend said."""
    text: str
    """As a context shows it."""
    origin: Origin
    is_entity: bool
    """The object is a name of its own: an edge of the graph."""
    first_seen: str
    last_confirmed: str
    expires_at: str | None
    superseded_by: str | None
    """Id of the fact that took its place; its own id: it was taken back."""
    superseded_at: str | None


class FactsAnswer(Struct, frozen=True, kw_only=True):
    """A page of facts, the newest first."""

    facts: list[FactAnswer]
    next_after: Annotated[str, Meta(pattern=AFTER_PATTERN)] | None
    """``after`` of the next page; ``null``: this is the last one."""


class SourceBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A turn of one of the user's own sessions."""

    session: Name
    turn_id: Annotated[str, Meta(min_length=1, max_length=256)]


class FactBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a backend says of a user."""

    relation: Relation
    """snake_case: ``lives_in``."""
    object: Words
    subject: Subject = "user"
    category: Category | None = None
    """Default: the relation's own, else ``other``."""
    confidence: Share | None = None
    """Default 1."""
    expires_at: Moment | None = None
    """Default: the category's own life, if it has one."""
    sources: Annotated[list[SourceBody], Meta(max_length=16)] = []
    """With sources the fact goes when the last of these turns does."""
    is_entity: bool | None = None
    """Whether ``object`` is a name of its own, so that the fact is an edge. Default: as the relation has it."""


class FactChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A correction: what is absent stays as it was."""

    relation: Relation | UnsetType = UNSET
    object: Words | UnsetType = UNSET
    subject: Subject | UnsetType = UNSET
    category: Category | UnsetType = UNSET
    confidence: Share | UnsetType = UNSET
    expires_at: Moment | UnsetType | None = UNSET
    """``null``: the category's own life."""
    is_entity: bool | UnsetType = UNSET


class FactDeletedAnswer(Struct, frozen=True, kw_only=True):
    """The fact is served, found and learnt no more."""

    id: str
    facts_left: Count
    """Rows of this id that a second look found."""
    vectors_left: Count | None
    """``null``: the vector store does not answer, and a memory worker removes it."""
    remains: list[Remains]


class GraphNode(Struct, frozen=True, kw_only=True):
    """One entity, however it was written."""

    id: str
    name: str
    """As it was written last."""
    facts: list[str]
    """Ids of the facts about it, also those that are no edges."""


class GraphEdge(Struct, frozen=True, kw_only=True):
    """A fact between two entities."""

    source: str
    """Id of the subject's node."""
    target: str
    relation: str
    fact: str
    confidence: Share
    sources: list[FactSource]


class GraphAnswer(Struct, frozen=True, kw_only=True):
    """What is known of a user as a graph."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]
