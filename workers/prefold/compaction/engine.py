"""The port to what writes summaries.

Contract, for every engine:

- ``summarize`` gets turns 1 to ``covers_to`` of one session, from the log, and answers with a summary of exactly
  these; ``covered`` in the answer is the range that was really read. An engine that cannot read all of them
  says so by a smaller range (the caller then refuses the summary); it never claims more.
- The text is at most ``cap_tokens`` long and has at least one section, in the conversation's language.
- Conversation text is data. Nothing in it is followed, and no mark of ours that it imitates survives.
- It may block its task for long, but never the event loop: CPU work goes to a thread. It may be called for many
  sessions at once. It keeps nothing of a session but caches of bounded size.
- It raises ``TransientError`` (with ``retry_after`` where known) when the same input may succeed later, and
  ``RefusedError`` when it never will; any other exception is a fault of the engine and counts as permanent.
  Cancelling it is safe at any time.
- A deterministic engine answers the same input with the same bytes.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Protocol

from prefold.compaction.ledger.collect import Ledger
from prefold.storage.types import BuildTicket, ModelUsage, SessionRef, StoredTurn

_MOST_REQUEST_IDS = 32


@dataclass(slots=True)
class Tally:
    """What an engine did for one build: filled while it works, so that it is known as well when it fails."""

    made: int = 0
    """Segments made of source turns."""
    reused: int = 0
    """Segments, merged ones included, that were there already and stand in the summary."""
    merged: int = 0
    """Segments made of others."""
    calls: int = 0
    """Answers of a model, those that could not be used included."""
    sent_tokens: int = 0
    """Raw tokens of all prompts, as counted here."""
    input_tokens: int = 0
    """As the provider counts them, from its cache or not."""
    output_tokens: int = 0
    micro_usd: int = 0
    request_ids: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Codes of answers that could not be used."""

    def add_call(self, usage: ModelUsage, request_id: str) -> None:
        """One answer."""
        self.calls += 1
        self.input_tokens += usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        self.output_tokens += usage.output_tokens
        self.micro_usd += usage.micro_usd
        if request_id:
            self.request_ids.append(request_id)

    def record(self) -> dict[str, Any]:
        """For the record of a build; empty where no model was asked and nothing was kept."""
        if not (self.calls or self.made or self.reused or self.merged or self.sent_tokens):
            return {}
        model = {
            "calls": self.calls,
            "sent_tokens": self.sent_tokens,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "micro_usd": self.micro_usd,
            "request_ids": self.request_ids[-_MOST_REQUEST_IDS:],
        }
        if self.refused:
            model["refused"] = self.refused[-_MOST_REQUEST_IDS:]
        return {"segments": {"made": self.made, "reused": self.reused, "merged": self.merged}, "model": model}


@dataclass(frozen=True, slots=True)
class SummaryInput:
    """What an engine is asked for."""

    ref: SessionRef
    turns: tuple[StoredTurn, ...]
    """Source turns, ascending, without a gap, from ``turns[0]`` to ``turns[-1]``."""
    cap_tokens: int
    """Most raw tokens that the text may have."""
    language: str
    """``en`` (any language written with spaces), ``zh`` or ``ja``: for headings; quotes keep theirs."""
    ledger: Ledger
    """Exact values and statements of these turns. What it marks as replaced must not be told as current."""
    carried: tuple[str, ...] = ()
    """Texts that will stand verbatim beside the summary: no need to say them again."""
    ticket: BuildTicket = field(kw_only=True)
    """Leave for this build: what is kept for later builds is kept under it."""
    hurry: asyncio.Event = field(default_factory=asyncio.Event, kw_only=True, compare=False)
    """Set once the context leaves out turns for want of this summary: no model is worth waiting for then."""
    tally: Tally = field(default_factory=Tally, kw_only=True, compare=False)

    @property
    def first_seq(self) -> int:
        return self.turns[0].seq if self.turns else 0

    @property
    def last_seq(self) -> int:
        return self.turns[-1].seq if self.turns else 0


@dataclass(frozen=True, slots=True)
class SummarySection:
    """One part of a summary."""

    key: str
    """The same in every language: ``binding``, ``events`` or ``open`` of the extractive engine, else one of
    ``titles.SECTION_KEYS``."""
    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """What stands for the turns."""

    sections: tuple[SummarySection, ...]
    text: str
    """All sections, without the markers around them."""
    tokens: int
    """Raw tokens of ``text``."""
    covered: tuple[int, int]
    """First and last seq that was read."""
    quoted: tuple[int, ...] = ()
    """Seqs that are quoted, ascending; empty where an engine writes in its own words."""


class Summarizer(Protocol):
    """Writes summaries; see the module's text for the contract."""

    name: str
    """``extractive``, ``anthropic``: kept with each summary."""
    prompt_version: str
    """Rises when the same input would give another text: part of the key of what is kept."""

    async def summarize(self, wanted: SummaryInput) -> Summary: ...
