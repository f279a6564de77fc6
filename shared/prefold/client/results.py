"""What the calls return. Tokens are served tokens (calibrated by the usage that a backend reports)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

JsonObject = dict[str, Any]
Format = Literal["anthropic", "openai"]
Status = Literal["ok", "soft", "swapped", "degraded"]
Ttl = Literal["5m", "1h"]
"""How long a provider keeps a cached prefix that nobody reads."""


@dataclass(frozen=True, slots=True)
class AppendedTurn:
    id: str
    seq: int
    tokens: int
    duplicate: bool
    """It was stored before, with the same content: nothing has changed."""


@dataclass(frozen=True, slots=True)
class ContextState:
    """Where the session's context stands after an append."""

    version: int
    swaps: int
    tokens: int
    window_tokens: int
    hard_limit_tokens: int
    status: Status


@dataclass(frozen=True, slots=True)
class Appended:
    """Every turn of the call is stored."""

    turns: tuple[AppendedTurn, ...]
    context: ContextState
    durability: str
    """``durable`` or ``fast``: what a crash of the store can lose."""


@dataclass(frozen=True, slots=True)
class Context:
    """What to send to the model, never over the session's hard limit."""

    version: int
    covers_to: int
    """The summary stands for turns 1 to here; 0: there is none yet."""
    status: Status
    format: Format
    system: str
    """For ``openai`` it also is the first of ``messages``."""
    messages: tuple[JsonObject, ...]
    tokens: int
    sections: Mapping[str, int]
    """Tokens of each part; they add up to ``tokens``."""
    recalled: tuple[JsonObject, ...]
    left_out: tuple[JsonObject, ...]
    system_blocks: tuple[JsonObject, ...] = ()
    """``system`` with its cache breakpoint, where breakpoints were asked for."""
    open_calls: tuple[str, ...] = ()
    """Tool calls at the end that still wait for their results."""

    def anthropic(self) -> JsonObject:
        """Arguments for Anthropic's ``messages.create``: ``messages``, and ``system`` where there is one.

        ValueError for a context that was read in another format.
        """
        self._require("anthropic")
        messages: JsonObject = {"messages": list(self.messages)}
        return {"system": list(self.system_blocks) or self.system, **messages} if self.system else messages

    def openai(self) -> JsonObject:
        """Arguments for OpenAI's ``chat.completions.create``: ``messages``, the system message first.

        ValueError for a context that was read in another format.
        """
        self._require("openai")
        return {"messages": list(self.messages)}

    def _require(self, wanted: Format) -> None:
        if self.format != wanted:
            raise ValueError(f"this context was read with format={self.format!r}; read it with format={wanted!r}")


@dataclass(frozen=True, slots=True)
class SummaryFacts:
    """How a summary came about."""

    engine: str | None = None
    """``extractive`` or ``anthropic``."""
    instead_of: str | None = None
    """The engine that should have written it, and could not."""
    because: str | None = None
    """Why it could not: a code."""
    coverage: float | None = None
    """Share of the exact values, constraints and corrections of its turns that summary and ledger carry."""
    coverage_before: float | None = None
    """The share that the summary carried alone."""
    built_at: str | None = None


@dataclass(frozen=True, slots=True)
class StandbyState:
    """The next summary, waiting for the limit."""

    covers_to: int
    tokens: int
    """Of the whole context once it is swapped in, the turns after ``covers_to`` included."""
    coverage: float | None
    facts: SummaryFacts = SummaryFacts()


@dataclass(frozen=True, slots=True)
class SoftThreshold:
    """From where the next summary is built, and why from there."""

    tokens: int
    ratio: float
    adaptive: bool
    tokens_per_minute: float
    build_seconds: float


@dataclass(frozen=True, slots=True)
class SummaryUsage:
    """What the model calls for the session's summaries took."""

    calls: int
    input_tokens: int
    """Not from the cache."""
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class BuildState:
    """A summary that is being written."""

    covers_to: int


@dataclass(frozen=True, slots=True)
class ForkOrigin:
    """The session that another was forked from, and the last turn that both share."""

    session: str
    at_seq: int


@dataclass(frozen=True, slots=True)
class Session:
    session: str
    user: str | None
    hard_limit_tokens: int
    soft_threshold_tokens: int
    head_seq: int
    version: int
    swaps: int
    status: Status
    degraded: bool
    tokens: int
    log_tokens: int
    """Raw tokens of every turn: what the whole conversation would cost."""
    covers_to: int
    standby: StandbyState | None
    build: BuildState | None
    limit_crossings: int
    ready_crossings: int
    """How many of them found a standby ready."""
    embedded_to: int
    """Seq up to which the turns can be searched."""
    forked_from: ForkOrigin | None = None
    active: SummaryFacts = SummaryFacts()
    """Of the summary that stands for turns 1 to ``covers_to``."""
    soft_threshold: SoftThreshold | None = None
    usage: SummaryUsage | None = None
    last_build_error: str | None = None
    """Why the last build came to nothing; None once one succeeds."""
    resting_until_tokens: int | None = None
    """Builds gained nothing: none before ``log_tokens`` is so many."""
    shared_prefix: JsonObject | None = None
    model: str | None = None
    keep_recent_turns: int = 0
    calibration: float = 1.0
    """Served tokens = ceil(raw tokens x calibration), learnt from reported usage."""
    system: str | None = None
    tools: tuple[JsonObject, ...] | None = None
    metadata: JsonObject | None = None
    close_after_seconds: int = 0
    closed_at: str | None = None
    """None: it is open."""
    remembered_to: int = 0
    """Facts were taken out of the turns up to this one."""
    state_cap_tokens: int = 0
    proposals: str = "hold"
    created_at: str = ""
    updated_at: str = ""
    hidden: bool = False
    """The key may write and not read: user, model, system, tools, metadata, prefix and origin are not told."""


@dataclass(frozen=True, slots=True)
class Found:
    """A hit of a search: a turn verbatim from the log, a fact as a sentence, or a summary."""

    kind: str
    """``turn``, ``fact``, ``summary`` or ``segment``."""
    text: str
    score: float
    session: str = ""
    """Empty for a fact, which is the user's."""
    turn_id: str = ""
    seq: int = 0
    role: str = ""
    copies: int = 0
    """So many others were found that say the same."""
    fact_id: str = ""
    sources: tuple[JsonObject, ...] = ()
    """Of a fact: the turns in which it was said."""
    first_seq: int = 0
    """Of a summary or a segment: the turns that it stands for."""
    last_seq: int = 0


@dataclass(frozen=True, slots=True)
class Remains:
    """Where a trace of old words may still lie, and what ends it."""

    where: str
    until: str


@dataclass(frozen=True, slots=True)
class Rewound:
    """The session ends with turn ``to_seq``."""

    session: str
    to_seq: int
    turns: int
    """Taken back by this call; 0: there was nothing after ``to_seq``."""
    head_seq: int
    """The last seq that was given out: the next turn gets the one after it."""
    context: ContextState
    vectors_left: int | None
    """None: the vector store did not answer, and workers remove them."""
    remains: tuple[Remains, ...]
    durability: str


@dataclass(frozen=True, slots=True)
class ChangedTurn:
    id: str
    seq: int
    tokens: int
    revision: int
    """How often it was changed."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A turn says something else now, or nothing."""

    turn: ChangedTurn
    changed: bool
    """False: it was so already."""
    removed: bool
    context: ContextState
    vectors_left: int | None
    """None: the vector store did not answer, and workers remove them."""
    remains: tuple[Remains, ...]
    durability: str
