"""The keys of a real session as a state of the model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from prefold.conversation import Fragment, parse_lines
from prefold.storage import Sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.types import BuildTicket
from tests.property.histories.held import TENANT
from tests.property.histories.snapshot import Snapshot, StoredSummary, take_snapshot
from tests.property.protocol_model.state import Build, Line, Standby, State, Summary, Ticket, Turn, Version

HEADS = {"first_message": "first", "task": "task", "summary": "sum"}


@dataclass
class Builder:
    """A real ticket, and what its builder read."""

    ticket: BuildTicket
    life: int
    sources: tuple[Version, ...] = ()


@dataclass
class Known:
    """What the walker remembers, because the keys do not say it."""

    lives: dict[str, int] = field(default_factory=dict)
    """Number of each incarnation."""
    marks: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Seq and revision of the turn whose words have this mark."""
    builders: list[Builder] = field(default_factory=list)

    def life_of(self, incarnation: str) -> int:
        return self.lives.setdefault(incarnation, len(self.lives) + 1)


@dataclass(frozen=True)
class Seen:
    """One look at the session."""

    state: State
    real: Snapshot | None
    """None: the session does not exist."""


async def look(sessions: Sessions, session: str, known: Known) -> Seen:
    keys = SessionKeys.of(TENANT, session)
    client = sessions.client
    epoch = int(await client.hget(keys.tomb, "epoch") or 0)
    if not await client.exists(keys.meta):
        gone = State(life=len(known.lives), exists=False, epoch=epoch, tickets=_tickets(known, ()))
        return Seen(gone, None)
    real = await take_snapshot(sessions, TENANT, session)
    build_epoch = int(await client.hget(keys.meta, "build_epoch") or 0)
    return Seen(abstract(real, known, build_epoch, _now_ms(sessions)), real)


def _now_ms(sessions: Sessions) -> int:
    assert sessions.now_ms is not None
    return sessions.now_ms


def abstract(real: Snapshot, known: Known, build_epoch: int, now_ms: int) -> State:
    packed = real.state
    log = log_of(real)
    revs = {turn.seq: turn.rev for turn in log}
    summaries = [_summary(one, log, known) for one in real.summaries]
    build = Build(build_epoch, floor(log, packed.bcov), packed.blease > now_ms) if packed.bcov else None
    standby = None
    if real.standby is not None:
        following = parse_lines(real.following or b"{}")[1]
        standby = Standby(_summary(real.standby, log, known), lines_of(following, log, known, revs))
    return State(
        log=log,
        head_seq=packed.head,
        life=known.life_of(packed.incarnation),
        epoch=real.epoch,
        build=build,
        active=summaries[-1] if summaries else None,
        applied=tuple(summaries[:-1]),
        standby=standby,
        lines=lines_of(real.lines, log, known, revs),
        degraded=bool(packed.deg),
        limit=packed.room,
        tickets=_tickets(known, log),
        changes=packed.chg,
    )


def log_of(real: Snapshot) -> tuple[Turn, ...]:
    """Kind and revision of every turn. Revision 0: removed; the model counts from 1."""
    turns = []
    for entry, (_, fields) in zip(real.entries, real.raw_entries, strict=True):
        kind = {"p": entry.role, "c": "c", "r": "l" if entry.cut else "r"}[entry.kind]
        closes = cast("bytes", fields.get(b"k", b"")).count(b'"tool_use_id"')
        turns.append(Turn(entry.seq, kind, 0 if entry.is_removed else entry.revision + 1, closes))  # type: ignore[arg-type]
    return tuple(turns)


def floor(log: tuple[Turn, ...], covers_to: int) -> int:
    """The turn that ``covers_to`` really reaches: it may lie in a hole that a rewind left."""
    return max((turn.seq for turn in log if turn.seq <= covers_to), default=0)


def _summary(one: StoredSummary, log: tuple[Turn, ...], known: Known) -> Summary:
    carried = {line.part: _version_in(line, known) for line in one.lines}
    source = tuple(tuple(int(number) for number in word.split(".")) for word in one.sources)
    return Summary(
        floor(log, one.covers_to),
        cast("tuple[Version, ...]", source),
        carried.get("first_message"),
        carried.get("task"),
    )


def _version_in(line: Fragment, known: Known) -> tuple[int, int] | None:
    start = line.content.find(b"<")
    return known.marks.get(line.content[start + 1 : line.content.find(b">", start)].decode()) if start >= 0 else None


def _tickets(known: Known, log: tuple[Turn, ...]) -> tuple[Ticket, ...]:
    """Floored as everything is: a hole of the log is nobody's."""
    tickets = []
    for one in known.builders:
        ticket, now = one.ticket, known.lives.get(one.ticket.ref.incarnation)
        covers_to = floor(log, ticket.covers_to) or ticket.covers_to
        assert now == one.life
        first = ticket.first_user_seq if ticket.first_user_seq <= ticket.covers_to else 0
        tickets.append(
            Ticket(one.life, ticket.epoch, covers_to, first, ticket.carried_turn, one.sources, "running", False)
        )
    return tuple(tickets)


def lines_of(
    fragments: list[Fragment], log: tuple[Turn, ...], known: Known, revs: Mapping[int, int]
) -> tuple[Line, ...]:
    """The lines of a context as the model has them; their tokens are not compared."""
    kinds = {turn.seq: turn.kind for turn in log}
    lines: list[Line] = []
    closes = 0
    for one in fragments:
        if one.part == "closer":
            closes = one.content.count(b'"tool_use_id"')
        elif one.part == "gap":
            words = one.content.decode().split(" ")
            first, last = next(word for word in words if word[0].isdigit()).split("-")
            lines.append(Line("gap", int(first), int(last), 0))
        elif one.part in HEADS:
            seq, rev = _version_in(one, known) or (0, 0)
            covers_to = int(one.content.split(b"1-")[1].split(b"]")[0]) if one.part == "summary" else 0
            lines.append(Line(HEADS[one.part], floor(log, covers_to) if covers_to else seq, rev, 0))
        elif one.seq:
            _, rev = _version_in(one, known) or (one.seq, 0)
            lines.append(Line(kinds.get(one.seq, "?"), one.seq, rev, 0, closes))
            closes = 0
    return tuple(lines)
