"""What the storage promises of one life of a session, checked on a snapshot of its keys against a small oracle."""

from functools import lru_cache
from typing import Any

import orjson

from prefold.conversation import (
    Fragment,
    anthropic_messages,
    check_anthropic,
    check_openai,
    openai_messages,
    parse_lines,
)
from prefold.conversation.markers import OPENER_TOKENS
from prefold.storage.log import stored_turn
from tests.property.histories.oracle import Oracle
from tests.property.histories.snapshot import CUT_BEFORE_USER, Snapshot, StoredSummary
from tests.support.contexts import recount

HEAD_PARTS = ("first_message", "task", "ledger", "summary")
CARRIED_TOKENS = 40
"""Of a turn that a build put into the head."""
KEYS = {"meta", "tomb", "turns", "ids", "context", "next", "standby", "summaries", "segments"}
STAGE_KEYS = {"staged", "staged_ids"}


class Promises:
    """Remembers the snapshot before, for what must only grow."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._body = b""
        self._version = 0
        self._covers_to: int | None = None
        self._epoch = 0
        self._incarnation = ""
        self._checked: dict[bytes, Any] = {}

    def hold(self, now: Snapshot, *, may_be_staged: bool = False) -> None:
        """Raises ``AssertionError`` at the first promise that does not."""
        self._log_is_whole(now)
        self._counts_are_right(now)
        self._is_one_life(now, may_be_staged)
        self._is_valid(now.lines, now.system)
        self._grows_only_at_its_end(now)
        self._summaries_are_true(now)
        self._covers_the_log(now)
        self._newest_user_is_there(now)
        self._standby_is_ready(now)

    def _log_is_whole(self, now: Snapshot) -> None:
        said = self._oracle.said
        assert [entry.seq for entry in now.entries] == list(said), "turns lost, doubled or out of order"
        assert now.state.head == self._oracle.head, "a seq was given back, or given twice"
        for raw in now.raw_entries:
            if self._checked.get(raw[0]) != raw[1]:
                kept = stored_turn(*raw)
                one = said[kept.seq]
                assert orjson.loads(kept.verbatim_json) == one.given_back(kept.seq), "not as it was published"
                assert (kept.revision, kept.removed) == (one.revision, one.removed), "another revision"
        self._checked = dict(now.raw_entries)

    def _counts_are_right(self, now: Snapshot) -> None:
        state, lines = now.state, now.lines
        head = sum(line.tokens for line in lines if line.part in HEAD_PARTS)
        assert now.header["head_tokens"] == state.htok == head, "the count of the head differs from its lines"
        assert state.tok == sum(line.tokens for line in lines), "the count of the context differs from its lines"
        assert state.served(state.tok + state.fix) <= state.hard, "over the limit"
        assert sum(map(_recount, lines)) <= state.tok, "a line counts less than it costs"
        total = 0
        for entry in now.entries:
            total += entry.tokens + entry.closer_tokens
            assert entry.total == total, "the running total of the log is wrong"
        assert state.log == total
        assert state.full == self._undegraded(now), "the undegraded count is wrong"
        assert state.bytes == len(now.body) and state.nbytes == len(now.following or b"")

    def _undegraded(self, now: Snapshot) -> int:
        """Tokens of the active head (or the opener) and all turns after it, the first without its closer."""
        window = now.window_after(now.state.cov)
        opener = OPENER_TOKENS if now.state.opens and not now.state.cov else 0
        closer = window[0].closer_tokens if window else 0
        head = self._oracle.heads[now.state.cov]
        return head + opener + sum(entry.tokens + entry.closer_tokens for entry in window) - closer

    def _is_one_life(self, now: Snapshot, may_be_staged: bool) -> None:
        state = now.state
        self._incarnation = self._incarnation or state.incarnation
        assert state.incarnation == self._incarnation, "another life"
        assert now.epoch >= self._epoch, "the epoch fell"
        self._epoch = now.epoch
        assert state.chg == self._oracle.changes, "the count of changes is wrong"
        assert now.keys <= KEYS | (STAGE_KEYS if may_be_staged else set()), "a key that nobody knows"
        newest = now.entries[-1] if now.entries else None
        assert " ".join(state.open_calls) == (newest.open_after if newest else ""), "other calls are open"

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

    def _summaries_are_true(self, now: Snapshot) -> None:
        """Active, applied and standby were made of exactly the turns that they cover, as those are now."""
        state = now.state
        for one in (*now.summaries, *((now.standby,) if now.standby else ())):
            assert one.sources == self._oracle.versions(one.covers_to), "a summary of turns that are no more"
            assert one.head_tokens == sum(line.tokens for line in one.lines)
            assert one.covers_to <= state.head
        for last, sources in now.segments.items():
            assert sources == self._oracle.versions(last), "a segment of turns that are no more"
        assert [one.covers_to for one in now.summaries] == sorted({one.covers_to for one in now.summaries})
        newest = now.summaries[-1] if now.summaries else None
        assert (newest.version, newest.covers_to) == (state.sver, state.cov) if newest else not state.cov
        assert (now.standby.covers_to if now.standby else 0) == state.nx

    def _covers_the_log(self, now: Snapshot) -> None:
        state = now.state
        assert now.header["covers_to"] == state.cov
        whole = self._is_whole(now, now.lines, state.cov)
        assert whole or state.deg, "turns are missing, and the session is not called degraded"
        held = state.open_calls and state.thinks
        swapped = self._covers_to is not None and state.cov > self._covers_to
        assert not (swapped and held), "a swap inside an open round with thinking"
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
        for line in lines:
            if line.seq and line.part in ("", "short") and not self._oracle.said[line.seq].removed:
                assert self._oracle.mark(line.seq).encode() in line.content, "a turn in other words than it has now"
        return not gaps and not any(line.part == "short" for line in lines)

    def _newest_user_is_there(self, now: Snapshot) -> None:
        """Unless the newest group alone, which is kept whole, leaves no room for its short form."""
        newest = now.state.lu
        plain = [entry.seq for entry in now.entries if entry.cut == CUT_BEFORE_USER]
        assert (newest, now.state.fu) == (max(plain, default=0), min(plain, default=0))
        assert newest in self._oracle.users() and newest >= self._oracle.newest_user()
        if newest and not self._shows(now.lines, newest):
            heads = [line for line in now.lines if line.part in HEAD_PARTS]
            most = now.state.tok + max(CARRIED_TOKENS, self._oracle.said[newest].prepared.short_tokens)
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


def can_stand(now: Snapshot, covers_to: int, *, carries: bool) -> bool:
    """Whether a summary of the turns up to ``covers_to`` may stand before those that follow it now."""
    after = next((entry for entry in now.entries if entry.seq > covers_to), None)
    if after.cut == 0 if after else now.state.open_calls:
        return False
    newest = now.state.lu
    return newest in (0, now.state.fu) or newest > covers_to or carries


def summary_that_stands(now: Snapshot) -> StoredSummary | None:
    """The newest applied one."""
    fitting = [one for one in now.summaries if can_stand(now, one.covers_to, carries=one.carries)]
    return fitting[-1] if fitting else None


def _gap_range(line: Fragment) -> tuple[int, int]:
    said = orjson.loads(line.content)["text"].split(" ")
    first, last = next(word for word in said if word[0].isdigit()).split("-")
    assert int(last) == line.seq
    return int(first), int(last)


@lru_cache(maxsize=100_000)
def _recount(line: Fragment) -> int:
    return recount(b'[{"role":"user","content":[' + line.content + b"]}]", "")
