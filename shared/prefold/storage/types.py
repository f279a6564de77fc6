"""What the storage gives and takes. Tokens are *served* tokens (calibrated) unless a name says raw."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Status = Literal["ok", "soft", "swapped", "degraded"]
Proposals = Literal["hold", "apply"]
"""What becomes of entries of the pinned state that a worker proposes: they wait for the backend, or stand at once."""


@dataclass(frozen=True, slots=True)
class SessionRef:
    """One life of a session: ``incarnation`` is new at each creation."""

    tenant: str
    session: str
    incarnation: str


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What a PUT sets. None leaves the value as it is (or the default at creation)."""

    user: str | None = None
    model: str | None = None
    hard_limit_tokens: int | None = None
    soft_ratio: float | None = None
    keep_recent_turns: int | None = None
    system: str | None = None
    system_tokens: int = 0
    """Raw tokens of ``system``."""
    tools: str | None = None
    """JSON array as the provider takes it."""
    tools_tokens: int = 0
    metadata: str | None = None
    """JSON object."""
    shared_prefix: str | None = None
    """JSON object: how this session's summaries use the chat's own prompt prefix; ``{}`` switches it off."""
    adaptive: bool = False
    """True gives up a ``soft_ratio`` that was set: the threshold adapts again."""
    close_after_seconds: int | None = None
    """Idle time after which the session is closed; 0: only by an explicit call."""
    state_cap_tokens: int | None = None
    """Raw tokens that the pinned state may take."""
    proposals: Proposals | None = None
    """What becomes of entries of the pinned state that a worker proposes."""


class AppendedTurn(NamedTuple):
    id: str
    seq: int
    tokens: int
    duplicate: bool


class AppendResult(NamedTuple):
    ref: SessionRef
    turns: tuple[AppendedTurn, ...]
    version: int
    swaps: int
    tokens: int
    window_tokens: int
    hard_limit_tokens: int
    status: Status
    swapped_now: bool
    """This very call swapped."""
    crossed: bool = False
    """This very call passed the hard limit, whether a standby was ready or not."""


@dataclass(frozen=True, slots=True)
class StoredContext:
    """One consistent snapshot: the context string with what stands beside it."""

    ref: SessionRef
    body: bytes
    """JSON Lines: the header, then fragments."""
    version: int
    covers_to: int
    head_seq: int
    status: Status
    system: str
    system_tokens: int
    """Raw."""
    tools_tokens: int
    """Raw."""
    calibration: float
    """Served tokens = ceil(raw tokens x calibration)."""
    hard_limit_tokens: int
    model: str
    open_calls: tuple[str, ...]
    """Calls of the newest round that have no result yet."""
    degraded: bool
    user: str
    asked_version: int = 0
    """Version when the newest plain user turn came; as long as it holds, what was served then stands unchanged."""
    state: bytes = b""
    """The pinned state as ``put_state`` stored it (JSON of ``PinnedState``), empty without one."""
    state_tokens: int = 0
    """Raw tokens of its rendered text, which stands in the system prompt: counted within the limit by the scripts."""
    context_tokens: int | None = None
    """Raw tokens of all fragments, where they are known without reading them."""
    begin: int = 0
    """Bytes of the context string before ``body``, for a reader who knew them."""
    length: int | None = None
    """Of the context string, as the scripts counted it; None: not known."""


@dataclass(frozen=True, slots=True)
class StandbyView:
    covers_to: int
    built_at_ms: int
    coverage: float | None
    tokens: int
    record: str = ""
    """JSON that the build stored with the summary: engine, coverage before and after, sizes, durations."""


@dataclass(frozen=True, slots=True)
class ActiveView:
    """The summary that stands in the context; ``record`` as in ``StandbyView``."""

    covers_to: int
    record: str


@dataclass(frozen=True, slots=True)
class Pace:
    """Why the soft threshold is where it is."""

    adaptive: bool
    """False: the session was given a fixed share."""
    tokens_per_minute: float
    """Raw tokens that came lately."""
    build_seconds: float
    """p95 of the tenant's builds as it was known at the last append, or the engine's prior."""
    ratio: float
    """The threshold as a share of the room, within 0.4 to 0.85."""


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """Tokens that model calls took, as the provider reports them, and what they cost by the price table."""

    calls: int = 0
    input_tokens: int = 0
    """Uncached input. All input = input + cache_read + cache_write."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    micro_usd: int = 0
    """Millionths of a US dollar."""


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """The summary of an immutable run of source turns, or of several such summaries."""

    level: int
    """0: made from source turns. n: merged from neighbours of lower levels."""
    first_seq: int
    last_seq: int
    source_hash: str
    """Hex digest of what the summarizer was given to stand for (source turns with their revisions, or the hashes of the merged)."""
    prompt_version: str
    """Of engine, model and prompt: another makes another summary."""
    text: str
    tokens: int
    """Raw tokens of ``text``."""
    source_tokens: int
    """Raw tokens of the source turns that it stands for."""
    record: str = "{}"
    """JSON: model, request ids, seconds, usage; no text of the conversation."""


@dataclass(frozen=True, slots=True)
class BuildView:
    covers_to: int
    epoch: int
    lease_until_ms: int


@dataclass(frozen=True, slots=True)
class ForkOrigin:
    """What a session was made of."""

    session: str
    at_seq: int


@dataclass(frozen=True, slots=True)
class SessionView:
    ref: SessionRef
    user: str
    model: str
    hard_limit_tokens: int
    soft_threshold_tokens: int
    keep_recent_turns: int
    head_seq: int
    version: int
    swaps: int
    status: Status
    degraded: bool
    tokens: int
    window_tokens: int
    fixed_tokens: int
    undegraded_tokens: int
    log_tokens: int
    """Raw tokens of all turns of the log."""
    covers_to: int
    embedded_to: int
    standby: StandbyView | None
    build: BuildView | None
    last_build_error: str
    limit_crossings: int
    """How often an append passed the hard limit."""
    ready_crossings: int
    """How many of them found a standby ready."""
    created_at_ms: int
    updated_at_ms: int
    calibration: float
    system: str
    tools: str
    metadata: str
    soft_ratio: float | None
    changes: int
    """Edits, removals, rewinds and a late setting of the user so far."""
    forked_from: ForkOrigin | None = None
    forks: tuple[str, ...] = ()
    """Sessions that were forked from this one; some may be gone by now."""
    active: ActiveView | None = None
    pace: Pace | None = None
    usage: ModelUsage = ModelUsage()
    """Of the summarizer's model calls for this session."""
    shared_prefix: str = ""
    """JSON object of the session's shared-prefix setting; empty: not set."""
    resting_until_tokens: int = 0
    """No build before the log has so many raw tokens: builds without gain; 0: none such."""
    remembered_to: int = 0
    """Up to this turn facts were taken out of the log."""
    closed_at_ms: int = 0
    """When the session was closed; 0: it is open. An append opens it again."""
    close_after_seconds: int = 0
    state_cap_tokens: int = 0
    proposals: Proposals = "hold"


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """One entry of the log. ``verbatim_json`` is the turn as it was published, with ``seq`` added."""

    seq: int
    id: str
    role: str
    """In the context: user or assistant."""
    kind: str
    """A ``TurnKind`` value."""
    content: bytes
    """Blocks as they stand in the context."""
    short: bytes
    """Blocks of the short form, or empty."""
    tokens: int
    """Raw."""
    short_tokens: int
    is_cut: bool
    """A summary may end right before this turn."""
    revision: int
    verbatim_json: bytes
    """``{"seq":5,"id":…,"role":…,"content":…}``."""
    removed: bool = False
    """Something fixed stands in place of what was said."""


@dataclass(frozen=True, slots=True)
class BuildTicket:
    """Leave to build the summary of turns 1..covers_to. Worth nothing once ``epoch`` has moved on."""

    ref: SessionRef
    epoch: int
    covers_to: int
    base_covers_to: int
    """What the active summary covers now."""
    lease_ms: int
    hard_limit_tokens: int
    fixed_tokens: int
    """Raw tokens of system and tools."""
    calibration: float
    carried_turn: int
    """0, or the seq of the newest plain user turn, which the head must carry verbatim ("task")."""
    first_user_seq: int
    """Seq of the first user turn, 0 without one."""
    is_urgent: bool = False
    """The context is degraded or over its limit now: a summary at once, even a plainer one."""
    wanted_at_ms: int = 0
    """When the session first asked for this summary; 0: not known."""
    head_seq: int = 0
    """Newest turn when the build began."""


@dataclass(frozen=True, slots=True)
class HeadFragment:
    """One piece of the head, user text, blocks with its markers."""

    part: Literal["first_message", "task", "ledger", "summary"]
    content: bytes
    tokens: int


@dataclass(frozen=True, slots=True)
class BuiltSummary:
    """What a build commits. Fragments in the order in which they stand."""

    fragments: tuple[HeadFragment, ...]
    record: str
    """JSON: engine, coverage, durations, sizes: kept with the summary."""
    coverage: float | None


@dataclass(frozen=True, slots=True)
class CommitResult:
    outcome: Literal["standby", "swapped", "stale", "no_gain"]
    version: int = 0
    tokens: int = 0
    waited_ms: int = 0
    """From when the session wanted a build until now: waiting, failures and pauses included."""


@dataclass(frozen=True, slots=True)
class ErasedSession:
    """What an erasure took out of Redis, and what a second look still found."""

    session: str
    incarnation: str
    """Empty: the session had been erased before."""
    turns: int
    keys_left: int
    """Keys of the session that still exist, its tombstone apart. 0, unless it was opened anew meanwhile."""
    forks: tuple[str, ...] = ()
    """Sessions that were forked from it: each is a session of its own and stays."""


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """What an edit, a removal or a rewind did. The same call again changes nothing and says so."""

    ref: SessionRef
    changed: bool
    """False: it was so already."""
    turns: int
    """Turns that were taken back (rewind), or 1."""
    first_seq: int
    last_seq: int
    """Range whose derived data is void: its vectors have to go. Empty (last < first) when nothing changed."""
    head_seq: int
    """Last seq that was given out; a rewind does not give it back."""
    version: int
    tokens: int
    window_tokens: int
    hard_limit_tokens: int
    swaps: int
    status: Status


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """One entry of a partition's event stream."""

    partition: int
    entry_id: str
    ref: SessionRef
    first_seq: int
    last_seq: int
    build_due: bool


@dataclass(frozen=True, slots=True)
class DueItem:
    """One entry of a partition's ``due`` set."""

    partition: int
    kind: Literal["embed", "compact", "remember", "expire"]
    ref: SessionRef
    due_at_ms: int
