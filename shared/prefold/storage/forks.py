"""Forks: a session made of another one's turns. The two may live on different servers, so the turns pass through here.

The copy is pushed in pages to the new session's stage and published in one step, between two looks at the source: a
source that changed before the first starts the copy anew, one that changed before the second takes the fork back. Until
the second look the fork is unchecked: a caller who finds it so (the first one died, or its answer was lost) looks itself.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from prefold.errors import ConflictError, GoneError, InvalidInputError
from prefold.storage import limits
from prefold.storage.append import Argument
from prefold.storage.changes import not_found, wait_for_turn
from prefold.storage.client import redis_failures
from prefold.storage.keys import SessionKeys
from prefold.storage.memory_types import TurnSpan, spans_of
from prefold.storage.scripts import script
from prefold.storage.state import SessionState

__all__ = ["CutState", "Fork"]

CutState = Callable[[bytes, Sequence[TurnSpan]], bytes]
"""A stored pinned state, and turns of which nothing may be left in it. May be called several times."""

_PATIENCE_SECONDS = 15.0
"""A source that keeps changing is copied anew so long."""
_PAGE = 16
"""Turns a read: a turn may have a megabyte."""
_PAIRS = 1_000
"""Ids a step."""
_KEPT_NUMBERS = ("hard", "ratio", "adapt", "idle", "lead", "keep", "cal", "seen", "systok", "tooltok", "pintok", "ver")
_KEPT_FIELDS = (
    "user",
    "model",
    "system",
    "tools",
    "metadata",
    "shared_prefix",
    "pinned",
    "state_version",
    "state_cap",
    "proposals",
)


class _SourceChangedError(Exception):
    """The copy is worth nothing."""


@dataclass(frozen=True, slots=True)
class _Source:
    """What a fork takes over beside turns and summaries."""

    state: SessionState
    kept: Mapping[str, bytes]
    copied: bytes
    """"seq ms" of a source that is a fork itself: turns up to there were stored by then; empty: it is none."""
    forget: Sequence[TurnSpan]
    """Changed turns that may still have left something in the pinned state."""

    @property
    def settings(self) -> tuple[object, ...]:
        """What appends do not change."""
        state = self.state
        ratio = state.adapt or state.ratio
        return (state.hard, state.adapt, ratio, state.keep, state.systok, state.tooltok, self.kept)


@dataclass(frozen=True, slots=True)
class _Found:
    """A fork that is published."""

    incarnation: str
    changes: int | None
    """The source's when it was copied, as long as nobody has looked at the source since; None: somebody was told of it."""


class Fork:
    """One fork, from its first look to its last."""

    def __init__(
        self,
        client: Redis,
        source: SessionKeys,
        target: SessionKeys,
        *,
        now: str | int,
        retention_ms: int,
        cut_state: CutState | None = None,
    ):
        self._client = client
        self._source = source
        self._target = target
        self._now = now
        self._retention_ms = retention_ms
        self._cut_state = cut_state

    async def run(self, session: str, new_session: str, at_seq: int | None) -> None:
        """Makes the fork, unless it is there already.

        ``ConflictError`` (session_exists), ``InvalidInputError`` (seq_ahead), ``NotFoundError`` (session_not_found),
        ``OverloadedError`` when the source changes all the time, or another fork of that name is under way.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            meta = await self._look()
            if meta is None:
                raise not_found(session)
            token = secrets.token_hex(8)
            try:
                return await self._copy(meta, token, new_session, at_seq, deadline)
            except _SourceChangedError:
                with suppress(ConflictError):
                    await self._run(["drop", "", token], new_session, deadline)
                await wait_for_turn(50, deadline)

    async def _look(self) -> _Source | None:
        with redis_failures():
            fields: list[Any] = await self._client.hmget(
                self._source.meta, ["state", "forget", "copied", *_KEPT_FIELDS]
            )
        if fields[0] is None:
            return None
        kept = {name: value for name, value in zip(_KEPT_FIELDS, fields[3:], strict=True) if value is not None}
        return _Source(SessionState.unpack(fields[0]), kept, fields[2] or b"", spans_of(fields[1] or b""))

    def _kept(self, seen: _Source, upto: int) -> Mapping[str, bytes]:
        """Fields of the fork's own."""
        is_copied_on = bool(seen.copied) and upto <= int(seen.copied.split()[0])
        kept = {**seen.kept, "copied": seen.copied if is_copied_on else b"%d %d" % (upto, seen.state.spoken)}
        if self._cut_state is not None and "pinned" in kept:
            later = TurnSpan(upto + 1, seen.state.head + 1)
            kept["pinned"] = self._cut_state(kept["pinned"], [*seen.forget, later])
        return kept

    async def _check(self, seen: _Source) -> None:
        found, state = await self._look(), seen.state
        if found is None or (found.state.incarnation, found.state.chg) != (state.incarnation, state.chg):
            raise _SourceChangedError
        if found.settings != seen.settings:
            raise _SourceChangedError

    async def _copy(
        self,
        seen: _Source,
        token: str,
        new_session: str,
        at_seq: int | None,
        deadline: float,
    ) -> None:
        state = seen.state
        if at_seq is not None and at_seq > state.head:
            raise InvalidInputError(f"the newest turn has seq {state.head}", code="seq_ahead", field="at_seq")
        upto = state.head if at_seq is None else at_seq
        origin = f"{self._source.label}:{state.incarnation} {upto}"
        last = await self._push(origin, token, upto, new_session, deadline)
        if isinstance(last, _Found):
            await self._confirm(last, seen, origin, new_session, deadline)
            return
        calls = await self._call_ids(upto)
        summaries, segments = await self._summaries(upto), await self._segments(upto)
        for start in range(0, len(calls), 2 * _PAIRS):
            pairs = calls[start : start + 2 * _PAIRS]
            await self._run(["push", origin, token, 0, len(pairs) // 2, *pairs], new_session, deadline)
        await self._check(seen)
        incarnation = secrets.token_hex(6)
        numbers = " ".join(f"{name}={getattr(state, name)}" for name in _KEPT_NUMBERS)
        fields = [part for pair in self._kept(seen, upto).items() for part in pair]
        args: list[Argument] = ["publish", origin, token, last, incarnation, self._retention_ms, numbers]
        args += [state.chg, len(fields) // 2, *fields, len(summaries) // 2, *summaries]
        args += [len(segments) // 2, *segments]
        await self._note(state, new_session)
        found = await self._run(args, new_session, deadline) or _Found(incarnation, state.chg)
        await self._confirm(found, seen, origin, new_session, deadline, is_own=True)

    async def _confirm(
        self,
        found: "_Found",
        seen: _Source,
        origin: str,
        new_session: str,
        deadline: float,
        *,
        is_own: bool = False,
    ) -> None:
        """The second look: from then on the fork may be told of."""
        if found.changes is None:
            return
        now = await self._look()
        is_same = now is not None and (now.state.incarnation, now.state.chg) == (seen.state.incarnation, found.changes)
        if now is None or not is_same or (is_own and now.settings != seen.settings):
            await self._take_back(found.incarnation)
            raise _SourceChangedError
        await self._run(["confirm", origin, found.incarnation, self._retention_ms], new_session, deadline)

    async def _push(self, origin: str, token: str, upto: int, new_session: str, deadline: float) -> "int | _Found":
        """The last seq that was pushed, or this very fork, which exists already."""
        last = 0
        while True:
            with redis_failures():
                page: Any = await self._client.xrange(self._source.turns, f"({last}-0", f"{upto}-0", count=_PAGE)
                ids = [fields[b"r"].split(b"\n", 1)[0].split(b" ", 9)[9] for _, fields in page]
                names = [b"t:" + one for one in ids]
                known: list[Any] = await self._client.hmget(self._source.ids, names) if names else []
            for part in _parts(list(zip(page, names, known, strict=True))):
                found = await self._run(["push", origin, token, *part], new_session, deadline)
                if found is not None:
                    return found
            if page:
                last = int(page[-1][0].split(b"-")[0])
            if len(page) < _PAGE:
                return last

    async def _call_ids(self, upto: int) -> list[Argument]:
        """What calls up to ``upto`` are called in the context: ``c:`` and ``r:`` of the ids."""
        seqs: dict[bytes, int] = {}
        renamed: dict[bytes, bytes] = {}
        with redis_failures():
            async for name, value in self._client.hscan_iter(self._source.ids, count=1000):
                if name.startswith(b"c:") and int(value) <= upto:
                    seqs[name[2:]] = int(value)
                elif name.startswith(b"r:"):
                    renamed[name] = value
        pairs: list[Argument] = []
        for call_id, seq in seqs.items():
            pairs += (b"c:" + call_id, seq)
        for name, value in renamed.items():
            if name[2:] in seqs:
                pairs += (name, value)
        return pairs

    async def _summaries(self, upto: int) -> list[Argument]:
        pairs: list[Argument] = []
        with redis_failures():
            stored: Any = await self._client.hgetall(self._source.summaries)
        for version, body in stored.items():
            if int(body.split(b" ", 1)[0]) <= upto:
                pairs += (version, body)
        return pairs

    async def _segments(self, upto: int) -> list[Argument]:
        with redis_failures():
            stored: Any = await self._client.hgetall(self._source.segments)
        return [part for span, body in stored.items() if int(span.rpartition(b"-")[2]) <= upto for part in (span, body)]

    async def _note(self, state: SessionState, new_session: str) -> None:
        args = [self._source.label, state.incarnation, new_session]
        with redis_failures():
            noted = await script("note_fork").run(self._client, self._source.script_keys(), args)
        if not noted:
            raise _SourceChangedError

    async def _run(self, args: list[Argument], new_session: str, deadline: float) -> "_Found | None":
        """None: done; otherwise the fork that exists already."""
        while True:
            with redis_failures():
                given = [self._now, self._target.label, *args]
                reply = await script("fork_log").run(self._client, self._target.change_keys(), given)
            verdict = str(reply[0].decode())
            if verdict == "changing":
                await wait_for_turn(reply[1], deadline)
                continue
            if verdict == "exists":
                raise ConflictError(f"there is a session {new_session!r} already", code="session_exists")
            if verdict == "gone":
                raise GoneError(f"session {new_session!r} was erased as soon as it was made")
            if verdict == "restart":
                raise _SourceChangedError
            if verdict == "same":
                return _Found(reply[1].decode(), int(reply[2]) if reply[2] else None)
            return None

    async def _take_back(self, incarnation: str) -> None:
        """Removes a fork whose source changed as it was published, unless another caller was told of it before."""
        keep_tomb_ms = self._retention_ms + limits.milliseconds(limits.TOMBSTONE_EXTRA)
        args = [self._now, self._target.label, keep_tomb_ms, incarnation, "unchecked"]
        with redis_failures():
            await script("erase_session").run(self._client, self._target.change_keys(), args)


def _parts(turns: Sequence[tuple[Any, bytes, bytes | None]]) -> Iterator[list[Argument]]:
    """What one step pushes: entries up to the bound of a step, then what is known of their ids."""
    entries: list[Argument] = []
    pairs: list[Argument] = []
    count = size = 0
    for (entry_id, fields), name, known in turns:
        if count and size >= limits.STAGE_BYTES:
            yield [count, *entries, len(pairs) // 2, *pairs]
            entries, pairs, count, size = [], [], 0, 0
        entries += (entry_id, 2 * len(fields), *(part for pair in fields.items() for part in pair))
        pairs += (name, known) if known is not None else ()
        count, size = count + 1, size + sum(map(len, fields.values()))
    yield [count, *entries, len(pairs) // 2, *pairs]
