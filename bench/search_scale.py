"""Search at 100,000 turns of 100 tenants, against a bare vector query on the same server in the same run.

The texts are made up, but behave like speech: words by Zipf's law, topics that come back within a session, names,
dates, numbers. The vectors are made up, too, in clusters by topic and as long as MiniLM's; the store searches them
exactly, so only their number and length matter for the time.
"""

import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
import uvloop
from numpy.typing import NDArray

from bench.measure import ROUNDS, Row
from prefold.embedding import create_embedder
from prefold.recall import CollectionSpec, TurnPoint, index_turn
from prefold.recall.index import VectorIndex
from prefold.recall.points import DENSE
from prefold.recall.scope import Scope
from prefold.recall.server import VectorServer
from prefold.recall.transport import HttpTransport
from prefold.stack.leash import leashed
from prefold.storage.types import SessionRef

TENANTS: Final = 100
SESSION_TURNS: Final = 50
DIMENSION: Final = 384
MOST_MS: Final = 5.0
LIMIT: Final = 20
_CALLS: Final = 80
"""In a round. No question is asked twice in a run."""
_WARMING: Final = 400
"""Searches before the first that counts, so that every tenant's turns have been read before, as in a long run."""
SEED: Final = 20_260_801

_ONSETS: Final = "b c d f g h j k l m n p r s t v w br cl dr fl gr pl pr sh st tr".split()
_VOWELS: Final = "a e i o u ai ea oo ou".split()
_ENDS: Final = ["", "n", "r", "s", "t", "l", "nd", "st", "ck"]
_LITTLE: Final = "the a and to of i my is it in that for we was on with have at so but they will you about".split()
_NAMES: Final = "Ada Ben Carla Dario Esra Fatou Goran Hana Ivo Jun".split()

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Said:
    """A turn and its vector."""

    text: str
    name: str
    ts: str
    vector: Vector


class Store(NamedTuple):
    """A running vector store."""

    url: str
    pid: int

    def cpu_seconds(self) -> float:
        """What it has used; 0 where the system does not tell."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Town:
    """What the tenants talk about."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._numbers = np.random.default_rng(seed)
        words = {self._word() for _ in range(12_000)}
        self._words = sorted(words, key=lambda word: (len(word), word))[:8_000]
        ranks = np.arange(1, len(self._words) + 1)
        self._shares = np.cumsum(1 / ranks) / np.sum(1 / ranks)
        self._topics = self._directions(400)
        self._topic_words = [self._random.sample(self._words, 60) for _ in range(400)]

    def session(self, length: int) -> list[Said]:
        """The turns of one session of three topics."""
        topics = self._random.sample(range(len(self._topics)), 3)
        names = self._random.sample(_NAMES, 2)
        day = f"2026-{self._random.randint(1, 12):02}-{self._random.randint(1, 28):02}T10:00:00"
        turns = []
        for number in range(length):
            topic = self._random.choice(topics)
            turns.append(Said(self._sentence(topic), names[number % 2], day, self.near(self._topics[topic])))
        return turns

    def question(self, said: Said) -> str:
        """A question that an answer with these words fits, in part."""
        given = [word for word in said.text.split() if word not in _LITTLE]
        kept = self._random.sample(given, min(len(given), 5))
        return f"When did {said.name} say that the {' '.join(kept)} was {self._word()}?"

    def near(self, vector: Vector) -> Vector:
        """A direction about 0.7 away by its cosine, as turns on one topic are."""
        there = vector + 0.9 * self._directions(1)[0]
        found: Vector = (there / np.linalg.norm(there)).astype(np.float32)
        return found

    def _sentence(self, topic: int) -> str:
        pieces = []
        for _ in range(self._random.randint(8, 40)):
            kind = self._random.random()
            if kind < 0.45:
                pieces.append(self._random.choice(_LITTLE))
            elif kind < 0.65:
                pieces.append(self._random.choice(self._topic_words[topic]))
            elif kind < 0.98:
                pieces.append(self._words[int(np.searchsorted(self._shares, self._random.random()))])
            else:
                pieces.append(str(self._random.randint(2, 9_999)))
        return " ".join(pieces)

    def _word(self) -> str:
        syllable = [self._random.choice(part) for part in (_ONSETS, _VOWELS, _ENDS)]
        return "".join(syllable) + self._random.choice(
            ["", "".join(map(self._random.choice, (_ONSETS, _VOWELS, _ENDS)))]
        )

    def _directions(self, count: int) -> Vector:
        drawn = self._numbers.standard_normal((count, DIMENSION)).astype(np.float32)
        found: Vector = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        return found


def search_rows(points: int) -> list[Row]:
    """One search at a time, tenants in turn; the query's embedding is a row of its own."""
    with vector_server() as store:
        found = uvloop.run(_measured(store, points))
    return [*found, _embedding_row()]


@contextmanager
def vector_server() -> Iterator[Store]:
    """``prefold vectors``, a process on a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="pf-bench-", dir="/tmp"))
    command = [sys.executable, "-m", "prefold.cli.main", "vectors", "--log-format", "json", "--vectors-port", "0"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            leashed([*command, "--data-dir", str(folder)]), stdin=subprocess.PIPE, stdout=log, stderr=log
        )
    try:
        yield _store_in(folder / "log")
    finally:
        process.terminate()
        process.wait(30)
        if process.stdin is not None:
            process.stdin.close()
        shutil.rmtree(folder, ignore_errors=True)


def _store_in(log: Path) -> Store:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for line in log.read_bytes().splitlines():
            if line.startswith(b"{") and line.endswith(b"}") and b'"vectors_ready"' in line:
                ready = orjson.loads(line)
                return Store(str(ready["url"]), int(ready["pid"]))
        time.sleep(0.05)
    raise TimeoutError("the vector store does not start: " + log.read_text("utf-8")[-2000:])


async def _measured(store: Store, points: int) -> list[Row]:
    town = Town(SEED)
    wait = timedelta(seconds=30)
    transport = HttpTransport(store.url, headers={}, connect_timeout=wait, request_timeout=wait, max_connections=4)
    async with transport:
        server = VectorServer(transport)
        index = VectorIndex(server, CollectionSpec("bench", DIMENSION))
        await index.ensure()
        asked = await _filled(index, town, points)
        return await _compared(index, server, town, asked, store)


async def _filled(index: VectorIndex, town: Town, points: int) -> list[tuple[str, Said]]:
    """Stores the turns; one of each session comes back, to be asked for."""
    asked = []
    sessions = points // SESSION_TURNS
    for number in range(sessions):
        tenant = f"tenant-{number % TENANTS}"
        turns = town.session(SESSION_TURNS)
        ref = SessionRef(tenant, f"session-{number}", f"life-{number}")
        await index.upsert([_point(ref, seq, said) for seq, said in enumerate(turns, 1)])
        asked.append((tenant, turns[number % SESSION_TURNS]))
    return asked


def _point(ref: SessionRef, seq: int, said: Said) -> TurnPoint:
    role = "assistant" if seq % 2 else "user"
    found = index_turn(orjson.dumps({"role": role, "name": said.name, "ts": said.ts, "content": said.text}))
    return TurnPoint(
        ref=ref,
        user=f"user-{ref.session}",
        seq=seq,
        revision=0,
        role=role,
        ts_ms=found.ts_ms,
        vector=said.vector,
        words=found.words(),
        speaker=found.speaker_words(),
    )


async def _compared(
    index: VectorIndex, server: VectorServer, town: Town, asked: list[tuple[str, Said]], store: Store
) -> list[Row]:
    """Rounds of ours and of the floor, in turn: both meet the same noise."""
    wanted = itertools.islice(itertools.cycle(asked), _WARMING + ROUNDS * _CALLS)
    questions = [(tenant, town.question(said), town.near(said.vector)) for tenant, said in wanted]

    async def ours(number: int) -> int:
        tenant, text, vector = questions[number]
        return len(await index.search(tenant, query=text, vector=vector, limit=LIMIT))

    async def floor(number: int) -> int:
        tenant, _, vector = questions[number]
        chosen = Scope(tenant=tenant).filter()
        search = {"query": vector, "using": DENSE, "filter": chosen, "limit": LIMIT, "with_payload": True}
        [hits] = await server.search(index.collection, [search])
        return len(hits)

    for call in (ours, floor):
        await _times(call, range(_WARMING))
    taken: dict[str, list[float]] = {"ours": [], "floor": []}
    cpu = {"client": 0.0, "server": 0.0}
    for start in range(_WARMING, _WARMING + ROUNDS * _CALLS, _CALLS):
        taken["floor"] += await _times(floor, range(start, start + _CALLS))
        before = time.process_time(), store.cpu_seconds()
        taken["ours"] += await _times(ours, range(start, start + _CALLS))
        cpu["client"] += time.process_time() - before[0]
        cpu["server"] += store.cpu_seconds() - before[1]
    return _rows(taken, {f"{who}_cpu": round(1000 * used / (ROUNDS * _CALLS), 2) for who, used in cpu.items()})


def _rows(taken: dict[str, list[float]], cpu_ms: dict[str, float]) -> list[Row]:
    p50, p99 = (_share(taken["ours"], share) for share in (0.5, 0.99))
    floor_p50, floor_p99 = (_share(taken["floor"], share) for share in (0.5, 0.99))
    quickest, floors = (
        {"fastest": round(_share(taken[who], 0.0), 2), "p10": round(_share(taken[who], 0.1), 2)}
        for who in ("ours", "floor")
    )
    return [
        Row("search in a tenant's turns, p50", "promised", "ms", p50, MOST_MS, 1.0, {**quickest, **cpu_ms}),
        Row("… p50", "bare vector query, p50", "ms", p50, floor_p50, None, floors),
        Row("… p99", "bare vector query, p99", "ms", p99, floor_p99),
    ]


async def _times(call: Callable[[int], Coroutine[Any, Any, int]], numbers: Sequence[int]) -> list[float]:
    """Milliseconds of each. Every one has to find as much as it was asked for."""
    taken = []
    for number in numbers:
        start = time.perf_counter()
        found = await call(number)
        taken.append(1000 * (time.perf_counter() - start))
        if found < LIMIT // 2:
            raise AssertionError(f"only {found} turns were found")
    return taken


def _share(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def _embedding_row() -> Row:
    """What the query's vector takes, apart."""
    embedder = create_embedder()
    taken = []
    for number in range(60):
        start = time.perf_counter()
        embedder.embed_query(f"When did Ada say that parcel {number} had left the harbour of Genoa?")
        taken.append(1000 * (time.perf_counter() - start))
    embedder.close()
    return Row("the query's embedding, p50 (apart)", "promised for the search", "ms", _share(taken, 0.5), MOST_MS)


def main(argv: list[str]) -> int:
    """``python -m bench.search_scale [POINTS]``."""
    rows = search_rows(int(argv[0]) if argv else 100_000)
    for row in rows:
        print(
            f"{row.name:<40} {row.value:>8.2f} {row.unit}  {row.floor_name:<26} {row.floor:>8.2f}  ×{row.ratio:.2f} {row.notes}"
        )
    return 0 if all(row.kept for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
