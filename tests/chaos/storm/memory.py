"""What is to be remembered of the sessions: turns that recall finds, segments, digests, facts; nothing of other lives."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from prefold.client.results import JsonObject
from prefold.facts import Fact, FactBook, text_of
from prefold.recall.derived import text_digest
from prefold.recall.index_text import index_turn
from prefold.recall.keeping import why_not
from prefold.recall.names import COLLECTION_PREFIX, derived_point_id
from prefold.storage import Sessions
from prefold.storage.types import SessionRef
from tests.chaos.storm.authors import HOME
from tests.chaos.storm.oracle import Faults, Talk

Refs = Sequence[tuple[Talk, SessionRef]]
Points = Mapping[str, JsonObject]


def to_be_found(turns: Sequence[JsonObject]) -> Iterator[int]:
    """Seqs of the turns that are embedded: all that have words, but what leads as system prompt and what the rule leaves."""
    said: list[bytes | None] = [None, *(orjson.dumps(turn) for turn in turns), None]
    leads = True
    for seq, turn in enumerate(turns, 1):
        leads = leads and turn["role"] == "system"
        raw = said[seq]
        if raw and not leads and index_turn(raw).text and why_not(raw, said[seq - 1], said[seq + 1]) is None:
            yield seq


def homes_in(turns: Sequence[JsonObject]) -> dict[int, str]:
    """Where the user says to live, by seq."""
    told = {seq: HOME.search(str(turn["content"])) for seq, turn in enumerate(turns, 1) if turn["role"] == "user"}
    return {seq: found[1] for seq, found in told.items() if found}


class MemoryCheck:
    """Compares what is kept of sessions that are closed; every difference becomes a fault."""

    def __init__(self, sessions: Sessions, faults: Faults) -> None:
        self._sessions = sessions
        self._book = FactBook(sessions.users, None)
        self._faults = faults
        self.totals: Counter[str] = Counter()

    async def look(self, refs: Refs, points: Points) -> None:
        """``points`` of all collections; those of turns are looked at elsewhere."""
        expected: dict[str, tuple[Talk, str, str]] = {}
        for talk, ref in refs:
            await self._closed(talk)
            for kind, key, text in [*await self._texts(talk, ref), *await self._facts(talk, ref)]:
                origin = ("", "") if kind == "fact" else (ref.session, ref.incarnation)
                point_id = derived_point_id(ref.tenant, talk.user, kind, *origin, key)
                expected[point_id] = (talk, f"{kind} {key}", text_digest(text))
                self.totals[f"{kind}s with a vector"] += 1
        self._points(expected, points)

    async def _closed(self, talk: Talk) -> None:
        view = await self._sessions.view(talk.tenant_name, talk.name)
        if not view.closed_at_ms or view.remembered_to != len(talk.turns):
            self._faults.tell("a session was not closed:", talk, f"remembered to {view.remembered_to}")

    async def _texts(self, talk: Talk, ref: SessionRef) -> list[tuple[Any, str, str]]:
        digest = await self._sessions.read_digest(ref.tenant, ref.session)
        if digest is None or digest.upto != len(talk.turns):
            self._faults.tell("a closed session has no digest of all its turns", talk)
        segments = await self._sessions.read_segments(ref)
        texts = [("segment", f"{one.level}:{one.first_seq}-{one.last_seq}", one.text) for one in segments]
        return texts + ([("summary", "digest", digest.text)] if digest else [])

    async def _facts(self, talk: Talk, ref: SessionRef) -> list[tuple[Any, str, str]]:
        """The one that holds and those before it: exactly what was said in this life, once each, by the turns that say so."""
        homes = homes_in(talk.turns)
        now_ms = time.time_ns() // 1_000_000
        rows = await self._book.list(ref.tenant, talk.user, history=True, now_ms=now_ms)
        kept = {one.object: one for one in rows if one.relation == "lives_in"}
        if len(kept) != len(rows) or set(kept) != set(homes.values()):
            found = [(one.relation, one.object) for one in rows]
            self._faults.tell("other facts than were stated:", talk, f"{found} instead of {homes}")
        for seq, home in homes.items():
            if home in kept and [(one.incarnation, one.seq) for one in kept[home].sources] != [(ref.incarnation, seq)]:
                self._faults.tell("a fact has other sources:", talk, str(kept[home].sources), seq)
        live = await self._book.list(ref.tenant, talk.user, now_ms=now_ms)
        self._newest(talk, homes, live)
        return [("fact", one.id, text_of(one)) for one in live]

    def _newest(self, talk: Talk, homes: Mapping[int, str], live: Sequence[Fact]) -> None:
        newest = list(homes.values())[-1:]
        if [one.object for one in live] != newest:
            self._faults.tell(
                "another fact holds than the newest:", talk, f"{[one.object for one in live]}, not {newest}"
            )

    def _points(self, expected: Mapping[str, tuple[Talk, str, str]], points: Points) -> None:
        found = {
            name: one["payload"] for name, one in points.items() if not one["collection"].startswith(COLLECTION_PREFIX)
        }
        for name, (talk, what, digest) in expected.items():
            payload = found.pop(name, None)
            if payload is None:
                self._faults.tell("a derived text has no vector:", talk, what)
            elif (payload["tenant"], payload["digest"]) != (talk.tenant_name, digest):
                self._faults.tell("a vector is of another text than is kept:", talk, what)
        for payload in found.values():
            self._faults.tell("a vector of nothing that is kept:", None, str({**payload, "bag": "…"}))
