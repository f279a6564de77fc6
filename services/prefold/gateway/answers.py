"""Shapes of requests and answers: what the handlers encode is what ``/openapi.json`` documents."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from prefold.gateway.summary_answers import (
    ActiveSummary,
    SharedPrefixState,
    SoftThreshold,
    Standby,
    SummaryUsage,
)
from prefold.storage.session_options import NAME_PATTERN, Name, SessionBody
from prefold.storage.types import Proposals

__all__ = ["NAME_PATTERN", "Name", "SessionBody"]

Status = Literal["ok", "soft", "swapped", "degraded"]
Durability = Literal["durable", "fast"]
Count = Annotated[int, Meta(ge=0)]


class ContextNumbers(Struct, frozen=True, kw_only=True):
    """Where the session's context stands after an append. Tokens are served tokens."""

    version: Count
    swaps: Count
    tokens: Count
    window_tokens: Count
    hard_limit_tokens: Count
    status: Status
    """``swapped`` once after each swap, also one that a finished summary made since the last append."""


class AcceptedTurn(Struct, frozen=True, kw_only=True):
    """A stored turn. ``duplicate``: it was already there with the same content, and nothing changed."""

    id: str
    seq: Count
    tokens: Count
    duplicate: bool


class AppendAnswer(Struct, frozen=True, kw_only=True):
    """The answer to an append: all of its turns are stored, in order."""

    turns: list[AcceptedTurn]
    context: ContextNumbers
    durability: Durability
    """``durable``: on disk, and on replicas where there are any. ``fast``: a crash of the store may lose the last turns."""


class Limits(Struct, frozen=True, kw_only=True):
    """What bounds the session's context."""

    hard_limit_tokens: Count
    soft_threshold_tokens: Count
    keep_recent_turns: Count
    soft_ratio: float | None
    """Share of the room beside system and tools that the soft threshold is now; ``soft_threshold`` says why."""


class TokenNumbers(Struct, frozen=True, kw_only=True):
    """Served tokens, but for ``log``: raw tokens of every turn ever stored, as a naive backend would send them."""

    total: Count
    window: Count
    fixed: Count
    """System and tools."""
    undegraded: Count
    log: Count


class Build(Struct, frozen=True, kw_only=True):
    """A summary being written now."""

    covers_to: Count
    epoch: Count
    lease_until: str


class ForkOrigin(Struct, frozen=True, kw_only=True):
    """The session that this one was forked from, and the last turn that both share."""

    session: str
    at_seq: Count


class SessionWritten(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A session's numbers: all that a write tells a key without the scope ``read``."""

    session: str
    limits: Limits
    head_seq: Count
    version: Count
    swaps: Count
    status: Status
    degraded: bool
    tokens: TokenNumbers
    calibration: float
    """Served tokens = ceil(raw tokens x calibration), learnt from reported usage."""
    active: ActiveSummary
    standby: Standby | None
    build: Build | None
    last_build_error: str | None
    """Why the last build came to nothing, and how often in a row; ``null`` once one succeeds."""
    resting_until_tokens: Count | None
    """Builds gained nothing, so none begins before ``tokens.log`` is so many; ``null``: builds as usual."""
    soft_threshold: SoftThreshold
    usage: SummaryUsage
    limit_crossings: Count
    ready_crossings: Count
    """How many of them found a standby ready."""
    embedded_to: Count
    close_after_seconds: Count
    closed_at: str | None
    """When it was closed; ``null``: it is open. A turn opens it again."""
    remembered_to: Count
    """Facts were taken out of the turns up to this one."""
    state_cap_tokens: Count
    proposals: Proposals
    created_at: str
    updated_at: str


class SessionAnswer(SessionWritten, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A session as it stands."""

    user: str | None
    model: str | None
    shared_prefix: SharedPrefixState | None
    """``null``: off."""
    system: str | None
    tools: list[Any] | None
    metadata: dict[str, Any] | None
    forked_from: ForkOrigin | None


class LoggedTurn(Struct, frozen=True, kw_only=True):
    """A turn verbatim as it was published, or corrected last, with its ``seq``."""

    seq: Count
    id: str
    role: str
    content: str | list[dict[str, Any]] | None
    name: str | UnsetType = UNSET
    ts: str | int | float | UnsetType = UNSET
    usage: dict[str, Any] | UnsetType = UNSET
    tool_calls: list[dict[str, Any]] | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    removed: bool | UnsetType = UNSET
    """``true``: the turn was removed, and ``content`` is a fixed marker."""


class TurnsAnswer(Struct, frozen=True, kw_only=True):
    """Turns of the log, ascending."""

    turns: list[LoggedTurn]


class Remains(Struct, frozen=True, kw_only=True):
    """Where a trace may still lie, and what ends it."""

    where: str
    until: str


class ErasureAnswer(Struct, frozen=True, kw_only=True):
    """The receipt of an erasure: what every store still had when it was read again. A worker looks once more later."""

    session: str
    erased_at: str
    turns: int
    """Removed by this call; 0 when the session had been erased before."""
    keys_left: int
    """Of the session in Redis, its tombstone apart."""
    events_left: int
    due_left: int
    """Work that is still due for it, but for the worker's look."""
    dead_letters_left: int
    commands_left: int | None
    """In the session store's log of slow commands, which quotes them. ``null``: not checked."""
    jobs_left: int | None
    """That name it on the job queue. ``null``: not checked."""
    vectors_left: int | None
    """``null``: not checked."""
    facts_withdrawn: int | None
    """What was known of the user from this session alone; 0 when it had gone before. ``null``: not yet, a worker will."""
    facts_left: int | None
    """That still name the session as where they come from. ``null``: not checked."""
    not_checked: list[str]
    """Stores that did not answer or do not let us look; ``remains`` says what becomes of what they hold."""
    opened_anew: bool
    """Somebody has opened the session again meanwhile; ``jobs_left`` may name the new life."""
    forks: list[str]
    """Sessions that were made of its turns: each is a session of its own, and stays."""
    remains: list[Remains]


class TurnBody(Struct, frozen=True, kw_only=True):
    """One message event: roles and content blocks of Anthropic's and OpenAI's message formats."""

    role: Literal["user", "assistant", "system", "developer", "tool"]
    content: str | list[dict[str, Any]] | None
    id: Annotated[str, Meta(min_length=1, max_length=256)] | UnsetType = UNSET
    """The producer's id: publishing twice with it changes nothing. Without one a retry may store a turn twice."""
    name: str | UnsetType = UNSET
    ts: str | int | float | UnsetType = UNSET
    usage: dict[str, Any] | UnsetType = UNSET
    """Of an assistant turn, as the provider reported it: teaches how the model counts."""
    tool_calls: list[dict[str, Any]] | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    """Of a turn of role ``tool``."""
    metadata: dict[str, Any] | UnsetType = UNSET
    """The producer's own: kept in the log, in no context."""


class TurnsBody(Struct, frozen=True, kw_only=True):
    """Several turns, stored all or not at all."""

    turns: list[TurnBody]


class Health(Struct, frozen=True, kw_only=True):
    """``ok``, or what is not."""

    status: Literal["ok", "unready"]
    checks: dict[str, str]


class EntryTokens(Struct, frozen=True, kw_only=True):
    """An entry of a pinned state, as a path, and the raw tokens of its lines."""

    entry: str
    tokens: Count


class Problem(Struct, frozen=True, kw_only=True):
    """RFC 9457 problem document."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    """Stable."""
    field: str | UnsetType = UNSET
    """Path into the body (``turns[2].content``) or the name of a parameter or header."""
    quota: str | UnsetType = UNSET
    """With ``quota_exceeded``: which."""
    tokens: Count | UnsetType = UNSET
    """With ``state_too_long``: what the state takes,"""
    cap_tokens: Count | UnsetType = UNSET
    """what it may take,"""
    entries: list[EntryTokens] | UnsetType = UNSET
    """and what each entry takes, the longest first."""
