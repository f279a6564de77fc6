"""How much of everything a storm has."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of one run."""

    turns: int
    sessions: int
    kills: int
    """SIGKILLs, each of a process that ran."""
    tenants: int = 5
    turns_per_second: float = 50
    publishers: int = 16
    readers: int = 4
    reads_per_second: float = 12
    erasures: int = 2
    """Sessions that are erased on the way and begun anew, all in the first quarter."""
    limits: tuple[int, int] = (1_000, 3_000)
    """Bounds of the hard limits, in tokens."""
    drained_within_seconds: float = 120

    @property
    def turns_each(self) -> int:
        """Turns of one session, over all its lives."""
        return self.turns // self.sessions
