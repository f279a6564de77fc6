"""What of a pinned state stands in a context, read from the stored bytes once."""

from dataclasses import dataclass
from functools import lru_cache

from prefold.pinned import decode

__all__ = ["NOTHING", "PinnedText", "pinned_text"]


@dataclass(frozen=True, slots=True)
class PinnedText:
    """The two texts of a pinned state."""

    stated: str = ""
    """What a backend wrote: stands in the system prompt."""
    noted: str = ""
    """What a worker proposed and the session lets stand: text of the user, with marks."""


NOTHING = PinnedText()


@lru_cache(maxsize=256)
def pinned_text(body: bytes) -> PinnedText:
    """Of a stored state; nothing for an empty body."""
    if not body:
        return NOTHING
    pinned = decode(body)
    return PinnedText(pinned.text, pinned.noted_text)
