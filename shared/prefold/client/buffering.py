"""What append buffers have in common: turns that wait, and how many of them go out together."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar

from prefold.client.calls import json_body, named
from prefold.client.results import Appended, JsonObject
from prefold.errors import (
    ConflictError,
    InvalidInputError,
    OverloadedError,
    PrefoldError,
    RefusedError,
    TooLargeError,
    TransientError,
)

T = TypeVar("T")

MOST_TURNS: Final = 100
"""Of one request: what a gateway takes."""
MOST_BYTES: Final = 1_048_576
"""Of one request, unless a single turn is larger."""
MOST_WAITING: Final = 10_000
"""Turns; a backend that publishes faster than they are stored has to wait itself."""

_OF_THE_TURN: Final = (InvalidInputError, ConflictError, TooLargeError)
"""Refusals that say something about a turn: others (no such key, an erased session) hold for all of them."""
MOST_KEPT: Final = 1_000
"""Tickets that a buffer remembers without looking which of them are done."""


@dataclass(frozen=True, slots=True)
class Waiting(Generic[T]):
    """A turn on its way; ``ticket`` is where its answer is put."""

    turn: JsonObject
    size: int
    ticket: T


class WaitingTurns(Generic[T]):
    """Turns of one session in their order. Not safe between threads: its owner sees to that."""

    def __init__(self) -> None:
        self._turns: deque[Waiting[T]] = deque()

    def __len__(self) -> int:
        return len(self._turns)

    def add(self, turn: Mapping[str, Any], ticket: T) -> None:
        """Checked as far as it can be without asking. OverloadedError (buffer_full): too many wait."""
        if len(self._turns) >= MOST_WAITING:
            raise OverloadedError(
                f"{MOST_WAITING:,} turns wait to be published", code="buffer_full", retry_after=timedelta(seconds=1)
            )
        whole = named(turn)
        self._turns.append(Waiting(whole, len(json_body(whole)), ticket))

    def take(self) -> list[Waiting[T]]:
        """Those that go out in the next request, the oldest first."""
        taken: list[Waiting[T]] = []
        size = 0
        while self._turns and len(taken) < MOST_TURNS and (not taken or size + self._turns[0].size <= MOST_BYTES):
            taken.append(self._turns.popleft())
            size += taken[-1].size
        return taken

    def take_all(self) -> list[Waiting[T]]:
        """All of them: the request before them came to nothing, and no turn overtakes another."""
        taken = list(self._turns)
        self._turns.clear()
        return taken


def answers_of(appended: Appended, turns: int) -> list[Appended]:
    """For each turn of a request its own answer. ``PrefoldError`` (unexpected_answer): there are not so many."""
    if len(appended.turns) != turns:
        told = f"{turns} turns were published, and the answer is about {len(appended.turns)}"
        raise PrefoldError(told, code="unexpected_answer")
    return [Appended((turn,), appended.context, appended.durability) for turn in appended.turns]


def stops(error: Exception) -> bool:
    """Whether turns behind one that failed so must not go out: whatever is no refusal of that turn loses their order."""
    return not isinstance(error, _OF_THE_TURN)


def is_one_by_one(error: Exception, turns: int) -> bool:
    """Whether the turns of a failed request are worth trying singly: the failure may be about one of them alone."""
    is_known = isinstance(error, RefusedError | TransientError) or not isinstance(error, PrefoldError)
    return turns > 1 and (not stops(error) or not is_known)


def closed_buffer() -> InvalidInputError:
    """Appending to a buffer that was closed."""
    return InvalidInputError("the buffer is closed", code="buffer_closed")
