"""Fakes of what the dispatcher talks to. They keep the promises of ``prefold.dispatcher.ports``."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from prefold.errors import UnavailableError
from prefold.jobs import Ask, QueueName, decode_sessions, decode_spans
from prefold.jobs.names import WorkKind
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

    async def read_more(self, consumer: str, count: int, partitions: Sequence[int]) -> list[TurnEvent]:
        self._enter("read_more")
        given = [one for one in self.new if one.partition in partitions][:count]
        self.new = [one for one in self.new if one not in given]
        self.own += given
        return given

    async def pending(self, consumer: str) -> list[TurnEvent]:
        self._enter("pending")
        return list(self.own)

    async def claim(self, consumer: str, min_idle_ms: int) -> list[TurnEvent]:
        self._enter("claim")
        given, self.claimable = self.claimable, []
        self.own += given
        return given

    async def newest(self, partitions: Sequence[int], count: int) -> list[TurnEvent]:
        self._enter("newest")
        here = [[one for one in (*self.own, *self.new) if one.partition == partition] for partition in partitions]
        return [one for stream in here for one in reversed(stream[-count:])]

    async def ack(self, events: Sequence[TurnEvent]) -> None:
        self._enter("ack")
        gone = {one.entry_id for one in events}
        self.own = [one for one in self.own if one.entry_id not in gone]
        self.acked += events


@dataclass
class FakeJobs:
    """A queue in memory whose jobs nobody runs. ``depth_now`` stands for jobs of others."""

    waiting: list[Ask] = field(default_factory=list)
    """In the order in which workers take them."""
    occasions: list[str] = field(default_factory=list)
    depth_now: int = 0
    full: QueueName | None = None
    """A queue that others have filled."""
    fail_next: int = 0
    _seen: set[str] = field(default_factory=set)

    def _enter(self) -> None:
        if self.fail_next:
            self.fail_next -= 1
            raise UnavailableError("the job queue does not answer")

    def put(self, asks: Sequence[Ask]) -> list[bool]:
        self._enter()
        return [self._put(ask) for ask in asks]

    def _put(self, ask: Ask) -> bool:
        if ask.id in self._seen:
            return False
        self._seen.add(ask.id)
        self.occasions.append(ask.occasion)
        self.waiting.insert(0 if ask.at_front else len(self.waiting), ask)
        return True

    @property
    def embeds(self) -> list[list[EmbedSpan]]:
        return [decode_spans(ask.rows) for ask in self.waiting if ask.kind == "embed"]

    @property
    def builds(self) -> list[list[SessionRef]]:
        return self._sessions("compact")

    @property
    def ends(self) -> list[list[SessionRef]]:
        return self._sessions("expire")

    @property
    def remembered(self) -> list[list[SessionRef]]:
        return self._sessions("remember")

    def _sessions(self, kind: WorkKind) -> list[list[SessionRef]]:
        return [decode_sessions(ask.rows) for ask in self.waiting if ask.kind == kind]

    def depth(self, queue: QueueName) -> int:
        self._enter()
        waiting = sum(ask.queue == queue for ask in self.waiting)
        return self.depth_now + waiting + (1_000_000 if queue == self.full else 0)


@dataclass
class FakeDueSets:
    """Due sets in memory; an entry stays until a test takes it out, as in life."""

    items: list[DueItem] = field(default_factory=list)
    fail_next: int = 0
    finds_beyond: bool = True

    async def due(self, now_ms: int, limit: int, partitions: Sequence[int]) -> list[DueItem]:
        if self.fail_next:
            self.fail_next -= 1
            raise UnavailableError("the session store does not answer")
        found: list[DueItem] = []
        for partition in partitions:
            here = [item for item in self.items if item.partition == partition and item.due_at_ms <= now_ms]
            found += sorted(here, key=lambda item: item.due_at_ms)[:limit]
        return found

    async def beyond(self, now_ms: int, limit: int, partitions: Sequence[int]) -> list[DueItem]:
        if not self.finds_beyond:
            return []
        return [item for partition in partitions for item in self._newest(now_ms, partition)[:limit]]

    def _newest(self, now_ms: int, partition: int) -> list[DueItem]:
        here = [item for item in self.items if item.partition == partition and item.due_at_ms <= now_ms]
        return sorted(here, key=lambda item: -item.due_at_ms)
