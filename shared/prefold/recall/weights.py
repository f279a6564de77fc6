"""What counts how much. One set for all conversations; which of them apply follows from the shape of what was found."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Weights:
    """Added to a turn's score, in units of cosine."""

    words: float = 0.8
    """A full match of the query's words, in the turn and in its window."""
    window: float = 0.5
    """Share of the window in that, for a turn that is short."""
    long: float = 0.5
    """Share of the best passage's own words in that, for a turn that is long."""
    neighbour: float = 0.15
    """Of the better neighbour's score."""
    speaker: float = 0.15
    """The query names one participant, and it is the speaker."""
    date: float = 0.1
    """The query names a date, and the turn was said then."""
    sitting: float = 0.4
    """Of the best score among the turns of its sitting, as a share of the best of all."""
    user: float = 0.2
    """The turn is a nameless user's, in a chat of long answers."""
    user_short: float = 0.1
    """The same where the turns are short."""


RECIPE: Final = Weights()
