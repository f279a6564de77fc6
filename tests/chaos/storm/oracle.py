"""What must be true, kept in the simplest way: what was acknowledged, and what went wrong."""

import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from prefold.client.results import JsonObject
from tests.chaos.storm.authors import has_mark

_FAULTS_KEPT = 40
_FAULTS_OF_ONE_KIND = 5
_KILLS_NAMED = 4


@dataclass
class Talk:
    """One session as its publisher knows it."""

    tenant: int
    number: int
    hard_limit_tokens: int
    turns: list[JsonObject] = field(default_factory=list)
    """Acknowledged turns of this life: seq is the place, from 1."""
    unmarked: set[int] = field(default_factory=set)
    """Seqs of turns whose text cannot be told from others."""
    sent: int = 0
    """Turns of this life that were sent at least once."""
    life: int = 0
    is_open: bool = False
    """Between a PUT that was answered and an erasure that was asked for."""

    @property
    def tenant_name(self) -> str:
        return f"tenant-{self.tenant}"

    @property
    def name(self) -> str:
        """The same in every tenant, so that a look across the fence is seen."""
        return f"chat@{self.number}"

    @property
    def user(self) -> str:
        """Of each session another, so that whatever is recalled of earlier sessions is this one's."""
        return f"visitor@{self.number}"

    def acknowledged(self, turns: Iterable[JsonObject]) -> None:
        for turn in turns:
            self.turns.append(turn)
            if not has_mark(turn):
                self.unmarked.add(len(self.turns))

    def begin_anew(self) -> None:
        """The session is being erased: nothing of it may be seen again."""
        self.turns, self.unmarked, self.sent = [], set(), 0
        self.life += 1
        self.is_open = False


class Faults:
    """Broken promises, each with what one needs to look into it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.count = 0
        self.lines: list[str] = []
        self._kills: deque[tuple[float, str]] = deque(maxlen=_KILLS_NAMED)
        self._seen: dict[str, int] = {}

    def killed(self, name: str) -> None:
        self._kills.append((time.monotonic(), name))

    def tell(self, kind: str, talk: Talk | None, detail: str = "", seq: int | None = None) -> None:
        """``kind`` is a sentence without numbers, so that a flood of one kind hides no other."""
        self.count += 1
        self._seen[kind] = self._seen.get(kind, 0) + 1
        if self._seen[kind] > _FAULTS_OF_ONE_KIND or len(self.lines) >= _FAULTS_KEPT:
            return
        place = "" if talk is None else f" {talk.tenant_name}/{talk.name!r} life {talk.life}"
        place += "" if seq is None else f" seq {seq}"
        self.lines.append(f"[seed {self.seed}]{place}: {kind} {detail} (last kills: {self._last_kills()})")

    def note(self, talk: Talk, detail: str) -> None:
        """More about the fault told last: beside the first few only."""
        if self.count == len(self.lines) and len(self.lines) < _FAULTS_OF_ONE_KIND:
            self.lines[-1] += f"\n    {talk.name}: {detail}"

    def report(self) -> str:
        """All kinds with their numbers, then examples."""
        counts = [f"{count} x {kind}" for kind, count in self._seen.items()]
        return "\n".join([f"{self.count} faults; PREFOLD_SEED={self.seed} repeats the storm", *counts, *self.lines])

    def _last_kills(self) -> str:
        now = time.monotonic()
        kills: Sequence[tuple[float, str]] = list(self._kills)
        return ", ".join(f"{name} {now - at:.1f} s ago" for at, name in reversed(kills)) or "none"
