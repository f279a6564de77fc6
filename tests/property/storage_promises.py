"""What the storage promises of one session, checked on a snapshot of its keys against a small oracle."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import orjson

from prefold.conversation import (
    Fragment,
    PreparedTurn,
    TurnKind,
    anthropic_messages,
    check_anthropic,
    check_openai,
    openai_messages,
    parse_lines,
)
from prefold.conversation.markers import OPENER_TOKENS
from prefold.storage.log import stored_turn
from prefold.storage.state import SessionState
from tests.support.contexts import recount

HEAD_PARTS = ("first_message", "task", "ledger", "summary")
CARRIED_TOKENS = 40
"""Of a turn that a build put into the head."""


@dataclass
class Oracle:
    """What must be true, kept in the simplest way."""

    published: list[dict[str, Any]] = field(default_factory=list)
    """One a seq."""
    prepared: list[PreparedTurn] = field(default_factory=list)
    heads: dict[int, int] = field(default_factory=lambda: {0: 0})
    """Tokens of the head that was committed, by what it covers."""

    def seq_of(self, turn_id: str) -> int | None:
        return next((n for n, raw in enumerate(self.published, 1) if raw["id"] == turn_id), None)

    def newest_user(self) -> int:
        """Seq of the newest plain user turn; 0: none."""
        plain = (n for n, t in enumerate(self.prepared, 1) if t.kind is TurnKind.PLAIN and t.role == "user")
        return max(plain, default=0)

    def users(self) -> set[int]:
        """What may count as a user's turn: plain ones, and words beside results for calls that are not open; 0: none."""
        spoke = (TurnKind.PLAIN, TurnKind.RESULTS)
        return {0, *(n for n, t in enumerate(self.prepared, 1) if t.role == "user" and t.kind in spoke and t.content)}

    def mark(self, seq: int) -> str:
        """The words with which the turn's text begins: no other text has them."""
        return f"<{self.published[seq - 1]['id']}>"


@dataclass(frozen=True)
class Entry:
    """What a line of the log counts."""

    seq: int
    tokens: int
    closer_tokens: int
    is_shown: bool
    """False for a system turn that leads: it has no line of its own."""


@dataclass(frozen=True)
class Snapshot:
    """The session's keys at one moment."""

    body: bytes
    following: bytes | None
    """The standby's context."""
    state: SessionState
    raw_entries: Sequence[Any]
    system: str

    @cached_property
    def header(self) -> dict[str, Any]:
        return parse_lines(self.body)[0]

    @cached_property
    def lines(self) -> list[Fragment]:
        return parse_lines(self.body)[1]

    @cached_property
    def entries(self) -> list[Entry]:
        return [_entry(*raw) for raw in self.raw_entries]

    def window_after(self, seq: int) -> list[Entry]:
        return [entry for entry in self.entries if entry.seq > seq and entry.is_shown]


class Promises:
    """Remembers the snapshot before, for what must only grow."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._body = b""
        self._version = 0
        self._covers_to = 0
        self._checked_to = 0

    def hold(self, now: Snapshot) -> None:
        """Raises ``AssertionError`` at the first promise that does not."""
        self._log_is_whole(now)
        self._counts_are_right(now)
        self._is_valid(now.lines, now.system)
        self._grows_only_at_its_end(now)
        self._covers_the_log(now)
        self._newest_user_is_there(now)
        self._standby_is_ready(now)

    def _log_is_whole(self, now: Snapshot) -> None:
        published = self._oracle.published
        assert len(now.raw_entries) == len(published) == now.state.head, "turns lost or doubled"
        for seq in range(self._checked_to + 1, len(published) + 1):
            kept = stored_turn(*now.raw_entries[seq - 1])
            assert kept.seq == seq
            assert orjson.loads(kept.verbatim_json) == {"seq": seq, **published[seq - 1]}, "not as it was published"
        self._checked_to = len(published)

    def _counts_are_right(self, now: Snapshot) -> None:
        state, lines = now.state, now.lines
        head = sum(line.tokens for line in lines if line.part in HEAD_PARTS)
        assert now.header["head_tokens"] == state.htok == head, "the count of the head differs from its lines"
        assert state.tok == sum(line.tokens for line in lines), "the count of the context differs from its lines"
        assert state.served(state.tok + state.fix) <= state.hard, "over the limit"
        assert sum(map(_recount, lines)) <= state.tok, "a line counts less than it costs"
        assert state.log == sum(entry.tokens + entry.closer_tokens for entry in now.entries)
        assert state.full == self._undegraded(now), "the undegraded count is wrong"

    def _undegraded(self, now: Snapshot) -> int:
        """Tokens of the active head (or the opener) and all turns after it, the first without its closer."""
        window = now.window_after(now.state.cov)
        opener = OPENER_TOKENS if now.state.opens and not now.state.cov else 0
        closer = window[0].closer_tokens if window else 0
        head = self._oracle.heads[now.state.cov]
        return head + opener + sum(entry.tokens + entry.closer_tokens for entry in window) - closer

    def _is_valid(self, lines: list[Fragment], system: str) -> None:
        if lines or system:
            assert check_anthropic(anthropic_messages(lines), system or None) == []
            assert check_openai(openai_messages(lines, system)) == []

    def _grows_only_at_its_end(self, now: Snapshot) -> None:
        version = now.state.ver
        assert now.header["version"] == version >= self._version, "the version fell"
        if version == self._version:
            assert now.body.startswith(self._body), "a version changed before its end"
        self._body, self._version = now.body, version

    def _covers_the_log(self, now: Snapshot) -> None:
        state = now.state
        assert now.header["covers_to"] == state.cov
        whole = self._is_whole(now, now.lines, state.cov)
        assert whole or state.deg, "turns are missing, and the session is not called degraded"
        held = state.open_calls and state.thinks
        assert state.cov == self._covers_to or not held, "a swap inside an open round with thinking"
        self._covers_to = state.cov
        if state.deg:
            assert state.full > state.room, "degraded although the whole context fits"
            assert not state.nx or held, "degraded beside a usable standby"

    def _is_whole(self, now: Snapshot, lines: list[Fragment], covers_to: int) -> bool:
        """Summary, a marked gap or none, then every turn once; True when nothing is left out or shortened."""
        gaps = [line for line in lines if line.part == "gap"]
        summaries = [line for line in lines if line.part == "summary"]
        assert len(gaps) <= 1
        assert gaps or summaries or not covers_to, "no summary, and no marker in its place"
        if summaries:
            assert f"[summary 1-{covers_to}]".encode() in summaries[0].content, "another summary than covers_to says"
        reached = covers_to
        if gaps:
            first, reached = _gap_range(gaps[0])
            assert first == (covers_to + 1 if summaries else 1), "the marker begins elsewhere"
        shown = [line.seq for line in lines if line.seq and line.part in ("", "short")]
        assert shown == [entry.seq for entry in now.window_after(reached)], "a gap, or an overlap"
        return not gaps and not any(line.part == "short" for line in lines)

    def _newest_user_is_there(self, now: Snapshot) -> None:
        """Unless the newest group alone, which is kept whole, leaves no room for its short form."""
        newest = now.state.lu
        assert newest in self._oracle.users() and newest >= self._oracle.newest_user()
        if newest and not self._shows(now.lines, newest):
            heads = [line for line in now.lines if line.part in HEAD_PARTS]
            most = now.state.tok + max(CARRIED_TOKENS, self._oracle.prepared[newest - 1].short_tokens)
            assert now.state.deg and not heads and most > now.state.room, "the newest user turn is missing"

    def _shows(self, lines: list[Fragment], seq: int) -> bool:
        mark = self._oracle.mark(seq).encode()
        return any(mark in line.content for line in lines if line.role == "user")

    def _standby_is_ready(self, now: Snapshot) -> None:
        state = now.state
        if now.following is None:
            assert state.nx == 0
            return
        header, lines = parse_lines(now.following)
        assert header["covers_to"] == state.nx > state.cov
        assert state.ntok == sum(line.tokens for line in lines), "the count of the standby differs from its lines"
        assert state.ntok < state.full, "the standby is not smaller"
        assert self._is_whole(now, lines, state.nx)
        self._is_valid(lines, "")
        assert not state.lu or self._shows(lines, state.lu), "the standby lacks the newest user turn"


def _entry(entry_id: bytes, fields: dict[bytes, bytes]) -> Entry:
    record = fields[b"r"].split(b"\n", 1)[0].split(b" ", 9)
    return Entry(int(entry_id.split(b"-")[0]), int(record[0]), int(record[3]), fields[b"c"] != b"")


def _gap_range(line: Fragment) -> tuple[int, int]:
    said = orjson.loads(line.content)["text"].split(" ")
    first, last = next(word for word in said if word[0].isdigit()).split("-")
    assert int(last) == line.seq
    return int(first), int(last)


@lru_cache(maxsize=100_000)
def _recount(line: Fragment) -> int:
    return recount(b'[{"role":"user","content":[' + line.content + b"]}]", "")
