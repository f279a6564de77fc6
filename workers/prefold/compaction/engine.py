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

from dataclasses import dataclass
from typing import Protocol

from prefold.compaction.ledger import Ledger
from prefold.storage.types import SessionRef, StoredTurn


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
    """``binding``, ``events`` or ``open``: the same in every language."""
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
