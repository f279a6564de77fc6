"""Fakes of what the dispatcher talks to. They keep the promises of ``prefold.dispatcher.ports``."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from prefold.errors import UnavailableError
from prefold.jobs import QueueName
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.types import DueItem, SessionRef, TurnEvent


def ref(name: str, tenant: str = "acme") -> SessionRef:
    return SessionRef(tenant, name, f"life-{name}")


def event(
    name: str, first: int, last: int | None = None, *, build: bool = False, entry: str = "", partition: int = 0
) -> TurnEvent:
    last = first if last is None else last
    return TurnEvent(partition, entry or f"{name}-{first}-{last}", ref(name), first, last, build)


class ManualClock:
    """Milliseconds that pass when a test says so."""

    def __init__(self, now_ms: int = 1_000_000) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms

    async def wall(self) -> int:
        return self.now_ms


@dataclass
class FakeEvents:
    """A consumer group in memory. ``fail_next`` calls raise; whatever was handed out stays pending until acked."""

    new: list[TurnEvent] = field(default_factory=list)
    own: list[TurnEvent] = field(default_factory=list)
    claimable: list[TurnEvent] = field(default_factory=list)
    acked: list[TurnEvent] = field(default_factory=list)
    fail_next: int = 0
    lose_replies: int = 0
    """So many reads assign their events to us and then fail, as when a reply is lost."""
    calls: list[str] = field(default_factory=list)

    def _enter(self, call: str) -> None:
        self.calls.append(call)
        if self.fail_next:
            self.fail_next -= 1
            raise UnavailableError("the session store does not answer")

    async def ensure_groups(self) -> None:
        self._enter("ensure_groups")

    async def read(self, consumer: str, count: int, block_ms: int) -> list[TurnEvent]:
        self._enter("read")
        assert 0 <= block_ms < 5_000
        given, self.new = self.new[:count], self.new[count:]
        self.own += given
        if given and self.lose_replies:
            self.lose_replies -= 1
            raise UnavailableError("the reply was lost")
        return given

    async def pending(self, consumer: str) -> list[TurnEvent]:
        self._enter("pending")
        return list(self.own)

    async def claim(self, consumer: str, min_idle_ms: int) -> list[TurnEvent]:
        self._enter("claim")
        given, self.claimable = self.claimable, []
        self.own += given
        return given

    async def ack(self, events: Sequence[TurnEvent]) -> None:
        self._enter("ack")
        gone = {one.entry_id for one in events}
        self.own = [one for one in self.own if one.entry_id not in gone]
        self.acked += events


@dataclass
class FakeJobs:
    """A queue in memory whose jobs nobody runs. ``depth_now`` stands for jobs of others."""

    embeds: list[list[EmbedSpan]] = field(default_factory=list)
    builds: list[list[SessionRef]] = field(default_factory=list)
    ends: list[list[SessionRef]] = field(default_factory=list)
    remembered: list[list[SessionRef]] = field(default_factory=list)
    occasions: list[str] = field(default_factory=list)
    depth_now: int = 0
    full: QueueName | None = None
    """A queue that others have filled."""
    fail_next: int = 0
    _seen: set[tuple[object, ...]] = field(default_factory=set)

    def _enter(self) -> None:
        if self.fail_next:
            self.fail_next -= 1
            raise UnavailableError("the job queue does not answer")

    def _is_new(self, *job: object) -> bool:
        self._enter()
        if job in self._seen:
            return False
        self._seen.add(job)
        self.occasions.append(str(job[-1]))
        return True

    def embed(self, spans: Sequence[EmbedSpan], *, occasion: str) -> bool:
        if not self._is_new("embed", tuple(spans), occasion):
            return False
        self.embeds.append(list(spans))
        return True

    def compact(self, sessions: Sequence[SessionRef], *, occasion: str) -> bool:
        if not self._is_new("compact", tuple(sessions), occasion):
            return False
        self.builds.append(list(sessions))
        return True

    def remember(self, sessions: Sequence[SessionRef], *, occasion: str) -> bool:
        if not self._is_new("remember", tuple(sessions), occasion):
            return False
        self.remembered.append(list(sessions))
        return True

    def expire(self, sessions: Sequence[SessionRef], *, occasion: str) -> bool:
        if not self._is_new("expire", tuple(sessions), occasion):
            return False
        self.ends.append(list(sessions))
        return True

    def depth(self, queue: QueueName) -> int:
        self._enter()
        waiting = {
            "embed": len([*self.embeds, *self.ends]),
            "compact": len(self.builds),
            "memory": len(self.remembered),
        }
        return self.depth_now + waiting[queue] + (1_000_000 if queue == self.full else 0)


@dataclass
class FakeDueSets:
    """Due sets in memory; an entry stays until a test takes it out, as in life."""

    items: list[DueItem] = field(default_factory=list)
    fail_next: int = 0

    async def due(self, now_ms: int, limit: int, partitions: Sequence[int]) -> list[DueItem]:
        if self.fail_next:
            self.fail_next -= 1
            raise UnavailableError("the session store does not answer")
        found: list[DueItem] = []
        for partition in partitions:
            here = [item for item in self.items if item.partition == partition and item.due_at_ms <= now_ms]
            found += sorted(here, key=lambda item: item.due_at_ms)[:limit]
        return found
