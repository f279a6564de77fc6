"""A turn as the storage scripts take it: finished bytes that they join and never decode.

A *block* is one content block in Anthropic's form, as JSON. "Blocks" below are blocks joined by commas,
without the brackets around them, UTF-8.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

Role = Literal["user", "assistant"]


class TurnKind(StrEnum):
    """What the append script has to know of a turn to keep the context valid."""

    PLAIN = "p"
    """Text (or media) of the user or the assistant."""
    CALLS = "c"
    """An assistant turn with at least one tool call."""
    RESULTS = "r"
    """A turn with at least one tool result, perhaps with plain blocks beside it."""
    SYSTEM = "y"
    """A system turn: goes to the system prompt while it leads, later it is marked user text."""


@dataclass(frozen=True, slots=True)
class ResultPart:
    """One tool result."""

    call_id: str
    """The call's id as it stands in the context: ``[A-Za-z0-9_-]{1,64}``."""
    attributes: bytes
    """``b""`` or ``b',"is_error":true'``."""
    content: bytes
    """A JSON string, quotes included (``is_text``), or blocks. Never empty."""
    is_text: bool
    short: bytes | None
    """A JSON string that stands for it when room is short; None: it is short already."""


class PreparedTurn(NamedTuple):
    """One published turn, ready to be stored. A tuple, because every append makes one."""

    id: str
    """The producer's id, or one that we made."""
    digest: str
    """Hash of what was published (role, content, name): tells a repeat from a conflict."""
    kind: TurnKind
    role: Role
    """In the context."""
    envelope: bytes
    """What is kept beside ``content`` to give the turn back verbatim: see ``verbatim``."""
    verbatim: Literal["text", "blocks", "whole"]
    """How the log gives the turn back.

    ``text``: envelope is the members before content, as a JSON object (``{"id":"a","role":"user"}``), then, where
    members follow the content, a line end and those as a second object; the published content was the string inside
    the single text block ``content``. ``blocks``: the same, the published content was exactly ``[content]``.
    ``whole``: envelope is the whole published turn. Only PLAIN turns are ever other than ``whole``.
    """
    content: bytes
    """Blocks. For RESULTS the plain blocks beside the results (may be empty); for CALLS empty (``pieces``);
    for SYSTEM the marked user text that serves when it does not lead."""
    short: bytes | None
    """Blocks that stand for ``content`` when room is short; None: it is short already."""
    tokens: int
    """Raw tokens of the whole turn in the context, overheads included."""
    short_tokens: int
    """The same for the short form; equal to ``tokens`` where there is none."""
    call_ids: tuple[str, ...] = ()
    """CALLS: ids of the calls in order, in the context's form; distinct within the turn."""
    pieces: tuple[bytes, ...] = ()
    """CALLS: content is pieces[0] + id[0] + pieces[1] + … + pieces[n] (a reused id gets a suffix)."""
    short_pieces: tuple[bytes, ...] = ()
    """CALLS: the same for the short form; empty: it is short already."""
    results: tuple[ResultPart, ...] = ()
    system_text: bytes = b""
    """SYSTEM: the text as a JSON string without its quotes, for the system prompt."""
    system_tokens: int = 0
    """SYSTEM: raw tokens of ``system_text``."""
    has_thinking: bool = False
    usage_input_tokens: int = 0
    """What the provider reported for the call that made this turn: input + cache read + cache write; 0: none."""

    @property
    def has_short(self) -> bool:
        """True when the short form differs from the full one."""
        return self.short_tokens < self.tokens
