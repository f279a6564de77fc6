"""Shapes of contexts, of their records, and of searches."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from prefold.gateway.answers import Count, Status

Kind = Literal["turn", "segment", "summary", "fact"]


class FactSource(Struct, frozen=True, kw_only=True):
    """The turn in which a fact was said."""

    session: str
    turn_id: str
    seq: Count


class RecalledItem(Struct, frozen=True, kw_only=True):
    """Something stored that was put beside the newest user turn."""

    kind: Kind
    id: str
    """Of the turn or the fact; ``level:first-last`` of a segment, ``digest`` of a session's summary."""
    score: float
    """Of its likeness to the query; 0 for a fact that belongs to the question without resembling it."""
    tokens: Count
    seq: Count | UnsetType = UNSET
    """Of a turn."""
    role: str | UnsetType = UNSET
    session: str | UnsetType = UNSET
    """Where a summary or a segment is from."""
    copies: Count | UnsetType = UNSET
    """So many others say the same."""
    sources: list[FactSource] | UnsetType = UNSET
    """Of a fact: where it was said."""


class LeftOut(Struct, frozen=True, kw_only=True):
    """What yielded, how many served tokens that spared, and why."""

    part: str
    """A section of the context, or ``proposals``: noted entries of the pinned state, which yield before it does."""
    tokens: Count | None
    """``None``: not known."""
    reason: str
    first_seq: Count | UnsetType = UNSET
    last_seq: Count | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    """Of something recalled that is no turn, or that could not be looked for."""
    id: str | UnsetType = UNSET
    count: Count | UnsetType = UNSET
    """Of facts that had no room within the profile's own cap (reason ``over_cap``)."""


class ContextTokens(Struct, frozen=True, kw_only=True):
    """Served tokens. The sections add up to the total."""

    total: Count
    sections: dict[str, int]


class ContextAnswer(Struct, frozen=True, kw_only=True):
    """What to send to the model, within the limit and any smaller budget asked for."""

    version: Count
    covers_to: Count
    status: Status
    system: str | list[dict[str, Any]]
    """What was registered, then the pinned state. Blocks where ``cache`` was asked for."""
    messages: list[dict[str, Any]]
    tokens: ContextTokens
    recalled: list[RecalledItem]
    left_out: list[LeftOut]
    open_calls: list[str]
    """Calls at the end that still wait for their results."""


class ContextRecord(Struct, frozen=True, kw_only=True):
    """What one context held, in numbers and ids: no word of the conversation, nor of the query."""

    at: str
    version: Count
    covers_to: Count
    head_seq: Count
    with_query: bool
    format: str
    budget_tokens: Count | None
    """``None``: none was asked for."""
    tokens: ContextTokens
    recalled: list[RecalledItem]
    left_out: list[LeftOut]
    """The first 200."""
    summary_rewritten: bool | None
    """Another summary stands in it than in the context before; ``null`` for the oldest that is kept."""
    etag: str


class ContextsAnswer(Struct, frozen=True, kw_only=True):
    """Records of the last contexts, newest first. One is written after its answer, and may be missing under load."""

    contexts: list[ContextRecord]


class SearchBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to look for, within the tenant."""

    query: Annotated[str, Meta(min_length=1, max_length=8000)]
    user: str | None = None
    session: str | None = None
    """Facts belong to users, not to sessions: with a session there are none."""
    kinds: Annotated[list[Kind], Meta(max_length=4)] | None = None
    """Default: all."""
    limit: Annotated[int, Meta(ge=1, le=100)] = 10


class SearchResult(Struct, frozen=True, kw_only=True):
    """One hit, as it is stored now: a turn verbatim from the log, a fact as a sentence, a summary."""

    kind: Kind
    text: str
    score: float
    """0 for a fact that belongs to the query without resembling it."""
    copies: Count
    """So many others were found that say the same."""
    session: str | UnsetType = UNSET
    """Of all but facts."""
    turn_id: str | UnsetType = UNSET
    seq: Count | UnsetType = UNSET
    role: str | UnsetType = UNSET
    fact_id: str | UnsetType = UNSET
    sources: list[FactSource] | UnsetType = UNSET
    """Of a fact: where it was said."""
    first_seq: Count | UnsetType = UNSET
    """Of a summary or a segment: the turns that it stands for."""
    last_seq: Count | UnsetType = UNSET


class SearchAnswer(Struct, frozen=True, kw_only=True):
    """Hits, best first."""

    results: list[SearchResult]
