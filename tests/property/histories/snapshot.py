"""A session's keys at one moment, read apart from the storage's own code."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from prefold.conversation import Fragment, parse_lines
from prefold.storage import Sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.state import SessionState

CUT_BEFORE_USER = 2
ANY_MARK = re.compile(rb"<m\d+(\.\d+)?>")


@dataclass(frozen=True)
class Entry:
    """What a line of the log counts, and what stands around it."""

    seq: int
    tokens: int
    total: int
    """Raw tokens of the log up to it."""
    closer_tokens: int
    cut: int
    """0: no summary may end before it, 1: one may, 2: and it is a plain user turn."""
    kind: str
    role: str
    revision: int
    is_removed: bool
    open_after: str
    """Calls that are open after it."""
    is_shown: bool
    """False for a system turn that leads: it has no line of its own."""

    @classmethod
    def of(cls, entry_id: bytes, fields: Mapping[bytes, bytes]) -> "Entry":
        record = fields[b"r"].split(b"\n", 1)[0].decode().split(" ", 9)
        return cls(
            seq=int(entry_id.split(b"-")[0]),
            tokens=int(record[0]),
            total=int(record[2]),
            closer_tokens=int(record[3]),
            cut=int(record[4]),
            kind=record[5],
            role=record[6],
            revision=int(record[8]),
            is_removed=b"d" in fields,
            open_after=fields.get(b"o", b"").decode()[3:],
            is_shown=fields[b"c"] != b"",
        )


@dataclass(frozen=True)
class StoredSummary:
    """One summary as a builder of ours committed it."""

    version: int
    """Of the context when it was applied; 0: the standby."""
    covers_to: int
    head_tokens: int
    carries: bool
    """The head holds the newest user turn that it covers."""
    sources: list[str]
    """What the builder says that it read."""
    lines: list[Fragment]

    @classmethod
    def of(cls, version: int, body: bytes) -> "StoredSummary":
        first, lines = body.split(b"\n", 1)
        covers_to, tokens, carries, record = first.split(b" ", 3)
        sources = orjson.loads(record)["sources"]
        fragments = parse_lines(b'{"version":0}\n' + lines)[1]
        return cls(version, int(covers_to), int(tokens), carries == b"1", sources, fragments)


@dataclass(frozen=True)
class Snapshot:
    body: bytes
    following: bytes | None
    """The standby's context."""
    state: SessionState
    raw_entries: Sequence[Any]
    system: str
    epoch: int
    summaries: tuple[StoredSummary, ...]
    """Applied ones, oldest first."""
    standby: StoredSummary | None
    segments: dict[int, list[str]]
    """Last turn of each and what its builder says that it read."""
    keys: frozenset[str]
    """Names of all keys of the session, without what they have in common."""

    @cached_property
    def header(self) -> dict[str, Any]:
        return parse_lines(self.body)[0]

    @cached_property
    def lines(self) -> list[Fragment]:
        return parse_lines(self.body)[1]

    @cached_property
    def entries(self) -> list[Entry]:
        return [Entry.of(*raw) for raw in self.raw_entries]

    def window_after(self, seq: int) -> list[Entry]:
        return [entry for entry in self.entries if entry.seq > seq and entry.is_shown]


async def take_snapshot(sessions: Sessions, tenant: str, session: str) -> Snapshot:
    """The session must live."""
    keys = SessionKeys.of(tenant, session)
    async with sessions.client.pipeline(transaction=True) as pipe:
        pipe.get(keys.context)
        pipe.get(keys.next)
        pipe.hget(keys.meta, "state")
        pipe.xrange(keys.turns)
        pipe.hget(keys.tomb, "epoch")
        pipe.hgetall(keys.summaries)
        pipe.hget(keys.standby, "body")
        pipe.hgetall(keys.segments)
        pipe.keys(own_keys(keys))
        body, following, packed, entries, epoch, summaries, standby, segments, names = await pipe.execute()
    read = await sessions.read_context(tenant, session)
    applied = sorted((int(version), stored) for version, stored in summaries.items())
    return Snapshot(
        body=body,
        following=following,
        state=SessionState.unpack(packed),
        raw_entries=entries,
        system=read.system,
        epoch=int(epoch or 0),
        summaries=tuple(StoredSummary.of(*pair) for pair in applied),
        standby=StoredSummary.of(0, standby) if standby else None,
        segments={int(field.rpartition(b"-")[2]): sources_of(value) for field, value in segments.items()},
        keys=frozenset(name.decode().rpartition(":")[2] for name in names),
    )


def sources_of(segment: bytes) -> list[str]:
    sources: list[str] = orjson.loads(orjson.loads(segment)["record"])["sources"]
    return sources


def own_keys(keys: SessionKeys) -> str:
    """A pattern of all keys of the session, known ones or not. Its name has nothing that a pattern means."""
    return f"*:s:{keys.label}:*"


async def marks_left(sessions: Sessions, keys: SessionKeys, marks: set[str]) -> dict[str, list[str]]:
    """Keys of the session whose stored bytes have one of the marks. Streams keep what was deleted, so this sees it."""
    client: Any = sessions.client
    left: dict[str, list[str]] = {}
    for name in await client.keys(own_keys(keys)):
        stored = await client.dump(name) or b""
        if b"<m" in stored and (found := [mark for mark in marks if f"<{mark}>".encode() in stored]):
            left[name.decode()] = found
    return left


async def words_beside(sessions: Sessions) -> list[str]:
    """Keys of no session (events, due entries) that have a mark of any turn in them."""
    client: Any = sessions.client
    names = [name for name in await client.keys("*") if b":s:" not in name]
    return [name.decode() for name in names if ANY_MARK.search(await client.dump(name) or b"")]
