"""What each part may take of the room, and by what steps the window gives way. Tokens are raw.

The marked text beside the newest user turn has shares of its own: noted entries of the pinned state, the user's
profile, what was recalled. Everything else follows the precedence of ``plan``.

*Recall's share is reserved.* Where a budget makes the window yield anyway, it yields for what was found, too. Where the
stored context fits as it is, but is so near its limit that less than ``_LEAST_RECALL`` tokens are left for what was found,
the oldest turns of the window yield, never the head. Every token after such a cut is new to the provider's prompt cache,
so a cut is rare, and it stays where it is: it is counted from the window's beginning and moves by steps, and the reserve
is rounded up, so that neither growth by less than a step nor a question that finds a little more moves it. Measured on
three recorded conversations of long messages at a limit of 16,000, 2,250 tokens found for every user turn: recall that
takes what is left gets 2,019 tokens a read and nothing at 3.5 % of the reads, with 1,540 tokens a read that no cache
knows; room for all that was found, 2,246 and 2.3 %, with 3,892; as it is done here, 2,097 and 3.0 %, with 2,016.

*A read without a query never makes room*, because its bytes only grow within a version: profile and noted entries take
what is free then, by whole lines, the most useful first, and it is said what did not fit.
"""

from dataclasses import dataclass

__all__ = ["Shares", "least_recall", "rounded_reserve", "window_step"]

_NOTED = 0.05
_PROFILE = 0.1
_RECALL = 0.15
_RECALL_OF_SMALL = 0.25
_RECALL_AIM = 1_000
"""Where most of what matters has been found; up to here a quarter of the room is not too much."""
_LEAST_RECALL = 512
_STEPS = 20
_LEAST_RESERVE = 64
_LEAST_CACHED = 2_048
"""Providers cache no shorter prefix than one of about 1,024 to 4,096 tokens: below, room is better than a steady cut."""


@dataclass(frozen=True, slots=True)
class Shares:
    """The most that each part of the text beside the newest turn may take."""

    noted: int
    profile: int
    recall: int

    @classmethod
    def of(cls, room: int) -> "Shares":
        """Those of a room: the budget, or the limit where that is less."""
        recall = max(int(room * _RECALL), min(int(room * _RECALL_OF_SMALL), _RECALL_AIM))
        return cls(int(room * _NOTED), int(room * _PROFILE), recall)

    @property
    def total(self) -> int:
        """All of them."""
        return self.noted + self.profile + self.recall


def least_recall(needed: int) -> int:
    """Recall that makes room for itself in a context that fits as it is stored."""
    return min(needed, _LEAST_RECALL)


def window_step(room: int) -> int:
    """By so many tokens at least the window gives way: a twentieth of the room, where a cache is worth it."""
    return room // _STEPS if room >= _LEAST_CACHED else 1


def rounded_reserve(needed: int, most: int, room: int) -> int:
    """What is kept free for something of ``needed`` tokens: the next power of two, where a cache is worth it, or ``most``."""
    if needed <= 0 or room < _LEAST_CACHED:
        return min(needed, most)
    return min(1 << (max(needed, _LEAST_RESERVE) - 1).bit_length(), most)
