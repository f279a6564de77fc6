"""The smallest thing that a summary can quote."""

from dataclasses import dataclass

from prefold.compaction.reading.cue import Cue
from prefold.compaction.reading.values import Value


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence (or clause, list item, tool call, tool result) with its features."""

    kind: str
    """A ``SpanKind`` value, or call, result, image."""
    text: str
    """As in its turn, white space folded to single spaces."""
    part: int
    """Which part of its turn."""
    start: int
    end: int
    """Where it stands in its part."""
    opens: bool
    closes: bool
    tokens: int
    cues: Cue
    values: tuple[Value, ...]
    is_error: bool = False
    name: str = ""
    """Calls: the tool."""
    call_id: str = ""
    quoted: bool = False
    """In a turn of a person, but not their words: pasted, forwarded, cited."""
