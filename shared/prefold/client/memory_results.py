"""What the calls about a session's state and a user's memory return."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from prefold.client.results import JsonObject


@dataclass(frozen=True, slots=True)
class Proposal:
    """An entry of the pinned state that a worker proposes."""

    id: str
    field: str
    """``goal``, ``constraints``, ``decisions``, ``plan``, or ``entities.`` and a name."""
    value: str
    sources: tuple[JsonObject, ...]
    status: Literal["proposed", "applied"]


@dataclass(frozen=True, slots=True)
class State:
    """The pinned state of a session."""

    version: int
    """Give it back as ``if_version`` so that no other's write is lost; 0: nothing was ever written."""
    tokens: int
    """Raw tokens of its text."""
    cap_tokens: int
    state: JsonObject
    """``goal``, ``constraints``, ``entities``, ``decisions`` and ``plan``, those that are there."""
    proposals: tuple[Proposal, ...]
    hidden: bool = False
    """The key may write and not read: ``state`` and ``proposals`` are empty because they are not told."""


@dataclass(frozen=True, slots=True)
class Closed:
    """How far a session's end is; a turn that comes opens it again."""

    session: str
    closed: bool
    closed_at: str | None
    head_seq: int
    remembered_to: int
    turns_open: int
    """Turns that are still to be looked through."""


@dataclass(frozen=True, slots=True)
class ContextRecord:
    """What one served context held, in numbers and ids."""

    at: str
    version: int
    covers_to: int
    head_seq: int
    with_query: bool
    format: str
    budget_tokens: int | None
    tokens: int
    sections: Mapping[str, int]
    recalled: tuple[JsonObject, ...]
    left_out: tuple[JsonObject, ...]
    summary_rewritten: bool | None
    """Another summary than in the context before; None: not known."""
    etag: str


@dataclass(frozen=True, slots=True)
class FactSource:
    """A turn in which a fact was said."""

    session: str
    turn_id: str
    seq: int


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of a user."""

    id: str
    subject: str
    relation: str
    object: str
    category: str
    confidence: float
    """As of now: it decays."""
    sources: tuple[FactSource, ...]
    said: str
    """The user's own sentence; empty for what the backend said."""
    text: str
    """As a context shows it."""
    origin: str
    is_entity: bool
    first_seen: str
    last_confirmed: str
    expires_at: str | None
    superseded_by: str | None
    superseded_at: str | None
    hidden: bool = False
    """The key may write and not read: only ``id`` is told."""


@dataclass(frozen=True, slots=True)
class FactPage:
    """Facts, the newest first."""

    facts: tuple[Fact, ...]
    next_after: str | None
    """``after`` of the next page; None: this is the last one."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    id: str
    name: str
    facts: tuple[str, ...]
    """Ids of the facts about it."""


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """A fact between two nodes, given by their ids."""

    source: str
    target: str
    relation: str
    fact: str
    confidence: float
    sources: tuple[FactSource, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


@dataclass(frozen=True, slots=True)
class DayUsage:
    """What the summaries of a tenant took on one day in UTC."""

    day: str
    calls: int
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    cost_usd: float
    held_usd: float
    failed_calls: int
    estimated_calls: int
    unpriced_calls: int
    budget_usd: float | None
