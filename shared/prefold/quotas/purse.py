"""What one process holds of one quota."""

from dataclasses import dataclass


@dataclass(slots=True)
class Purse:
    """Credits that were granted and not spent, or below zero: spent and not granted. Times are of a monotonic clock, in s."""

    batch: int
    """Asked for at a time."""
    most_debt: int = 0
    """As much may be spent before it is granted; 0: a batch."""
    credits: int = 0
    ends: float = 0.0
    """When credits left over are worth nothing any more."""
    empty_until: float = 0.0
    """Nothing more is granted before then."""

    def seconds_to_wait(self, now: float) -> float:
        """Until something may be spent; 0: now. Drops what is worth nothing any more."""
        if now >= self.ends and self.credits > 0:
            self.credits = 0
        return max(0.0, self.empty_until - now) if self.credits <= 0 else 0.0

    @property
    def is_deep(self) -> bool:
        """As much was spent that nobody granted as may be."""
        return self.credits <= -(self.most_debt or self.batch)

    def is_low(self, now: float) -> bool:
        """It is time to ask for more, and there may be some."""
        return self.credits < (self.batch + 1) // 2 and now >= self.empty_until

    @property
    def debt(self) -> int:
        return max(0, -self.credits)

    @property
    def wanted(self) -> int:
        return max(0, self.batch - max(0, self.credits))

    def fill_alone(self, rate: float, now: float) -> None:
        """A batch, for as long as it lasts at the rate (a second)."""
        self.credits += self.batch
        self.ends = self.empty_until = now + self.batch / rate

    def let_through(self) -> None:
        """A batch more may be spent before it is granted."""
        self.most_debt = self.debt + self.batch

    def fill(self, owed: int, granted: int, *, now: float, lasts: float, wait: float) -> None:
        """What was owed is counted now, and this much more is here. Without any, nothing comes before ``wait`` is over."""
        self.credits += owed + granted
        self.most_debt = 0
        self.ends = now + lasts
        self.empty_until = now + wait if granted == 0 and wait > 0 else 0.0
