"""One session name in a history: what must be true of it, and who builds for it."""

from dataclasses import dataclass, field

from prefold.storage.keys import SessionKeys
from prefold.storage.types import BuildTicket
from tests.property.histories.oracle import Oracle
from tests.property.histories.promises import Promises

TENANT = "acme"


@dataclass
class Builder:
    """One ticket, and what the oracle knows of it."""

    ticket: BuildTicket | None
    """None: the answer was lost, so nobody has it."""
    life: str
    covers_to: int
    lease_until_ms: int
    sources: list[str]
    """What it read when it began."""
    over: bool = False
    """Committed, given up, or void because turns that it covers changed."""


@dataclass
class Held:
    name: str
    keys: SessionKeys
    oracle: Oracle | None = None
    """None: no life now."""
    promises: Promises | None = None
    erased: bool = False
    """Appends are refused until it is opened."""
    incarnation: str = ""
    former: set[str] = field(default_factory=set)
    """Incarnations of its former lives."""
    builders: list[Builder] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    """Marks of words that may stand in no key of it."""
    staged_until_ms: int = 0
    """A change that nobody finishes holds the stage so long."""
    may_be_staged: bool = False
    forks: set[str] = field(default_factory=set)
    """Made of its present life."""
    before_interruption: "tuple[Oracle | None, str]" = (None, "")
    """Its life, when something last came between the calls of a step."""
    origin: tuple[str, str, int] | None = None
    """Of a fork: name and life of its source, and the last seq that was asked for."""
    unconfirmed: int | None = None
    """Changes of its source when a fork was made of which nobody was told."""

    @classmethod
    def of(cls, name: str) -> "Held":
        return cls(name, SessionKeys.of(TENANT, name))

    @property
    def life(self) -> Oracle:
        """What must be true of the present life. There must be one."""
        assert self.oracle is not None
        return self.oracle

    def begins(self, oracle: Oracle, incarnation: str) -> None:
        """A new life."""
        self.oracle, self.promises = oracle, Promises(oracle)
        self.erased, self.forks, self.origin, self.unconfirmed = False, set(), None, None
        self.incarnation = incarnation

    def ends(self, *, erased: bool) -> None:
        """Nothing of it may be left."""
        self.gone |= self.life.marks()
        self.former.add(self.incarnation)
        self.oracle = self.promises = None
        self.erased = erased
        self.may_be_staged, self.staged_until_ms = False, 0

    def changed(self, intact: int, gone: set[str]) -> None:
        """Turns after ``intact`` changed: who builds with them is refused, and their words are nowhere."""
        self.gone |= gone
        for builder in self.builders:
            if builder.covers_to > intact:
                builder.over = True

    def holder(self, now_ms: int) -> Builder | None:
        """Who has the lease."""
        newest = self.builders[-1] if self.builders else None
        if newest is None or newest.over or newest.life != self.incarnation:
            return None
        return newest if newest.lease_until_ms > now_ms else None
