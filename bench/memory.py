"""What a session takes in Redis, by key, against its text; and what compressing old log entries would give.

``./run bench memory`` for the promise; ``./run python -m bench.memory`` also tells the parts, and other lengths. ``PREFOLD_DATA`` names a
folder of recorded conversations (JSONL) for texts as people write them; without it they are made.
"""

import asyncio
import json
import os
import random
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from redis import Redis

from bench.builds import WORDS
from bench.measure import Row
from bench.servers import session_server
from prefold.conversation import prepare_turn
from prefold.conversation.turns import PreparedTurn
from prefold.storage import connect_sessions
from prefold.storage.memory_types import MemoryTicket
from prefold.storage.types import SessionRef
from prefold.tokens import load_counter

TENANT = "bench"
TURNS, TURN_BYTES = 60, 600
LENGTHS = (10, 30, 61, 90, 100, 150, 200)
"""Of other sessions, in turns."""
SESSIONS = 300
MOST_TIMES = 3.0
"""Of the text itself, with the whole window verbatim."""
_AT_ONCE = 32
_WARM = 1_000
_BATCHES = (1, 8, 32, 100)
"""Log entries that are compressed together."""


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """Bytes of one session."""

    text: int
    """What its turns say, UTF-8."""
    used: float
    """By ``used_memory``: with every overhead of the server."""
    by_key: Mapping[str, float]
    """By MEMORY USAGE."""

    @property
    def times(self) -> float:
        return self.used / self.text


def session_memory_rows(sessions: int) -> list[Row]:
    """The promise about a session whose whole window stands verbatim."""
    spoken, ended = measured(sessions)
    return [
        _row(f"memory, {TURNS} turns of {TURN_BYTES} B, just spoken", spoken),
        _row(f"memory, {TURNS} turns of {TURN_BYTES} B, at rest", ended),
    ]


def _row(name: str, found: SessionMemory) -> Row:
    notes = {f"{key}_bytes": float(round(size)) for key, size in found.by_key.items()}
    return Row(name, "its text", "KB", found.used / 1000, found.text / 1000, MOST_TIMES, notes)


def measured(
    sessions: int, options: Mapping[str, str] | None = None, *, turns: int = TURNS
) -> tuple[SessionMemory, SessionMemory]:
    """Just after the last turn, and once the sessions have ended.

    Of a fresh server with ``sessions`` sessions of ``turns`` turns; ``options``: CONFIG SET before them.
    """
    texts = list(pieces(TURN_BYTES, sessions * turns))
    with session_server("fast") as client:
        for name, value in (options or {}).items():
            client.config_set(name, value)
        url = f"unix://{client.connection_pool.connection_kwargs['path']}"
        # One turn each: what a partition's streams take whatever is in them is not the sessions'.
        warm = asyncio.run(_fill(url, [f"warm-{number}" for number in range(_WARM)], texts, turns=1))
        asyncio.run(_end(url, warm[:1]))  # nor are the scripts
        before = (_settled(client), _by_key(client))
        refs = asyncio.run(_fill(url, [f"conversation-{number}" for number in range(sessions)], texts, turns=turns))
        text = round(sum(len(one.encode()) for one in texts) / sessions)
        spoken = _since(client, before, text, sessions)
        asyncio.run(_end(url, refs))
        ended = _since(client, before, text, sessions)
    return spoken, ended


async def _end(url: str, refs: Sequence[SessionRef]) -> None:
    """As a memory worker ends sessions that nothing is learnt from."""
    async with connect_sessions(url) as sessions:
        for ref in refs:
            await sessions.ask_close(ref.tenant, ref.session)
            ticket = await sessions.begin_memory(ref, lease_ms=10_000)
            assert isinstance(ticket, MemoryTicket), ticket
            await sessions.end_memory(ticket, upto=ticket.upto, closed=True)


async def _fill(url: str, names: Sequence[str], texts: Sequence[str], *, turns: int) -> list[SessionRef]:
    counter = load_counter()
    places = asyncio.Semaphore(_AT_ONCE)
    async with connect_sessions(url) as sessions:

        async def fill(number: int, name: str) -> SessionRef:
            async with places:
                refs = [await append(number, name, at) for at in range(turns)]
            return refs[-1]

        async def append(number: int, name: str, at: int) -> SessionRef:
            raw = {"id": f"{name}-{at:04d}", "role": "assistant" if at % 2 else "user"}
            text = texts[(number * turns + at) % len(texts)]
            turn = prepare_turn({**raw, "content": text}, 0, counter, lambda: "")
            return (await sessions.append(TENANT, name, [turn])).ref

        return await asyncio.gather(*(fill(number, name) for number, name in enumerate(names)))


def _settled(client: Redis) -> int:
    """Bytes that the data takes: without buffers of connections and of the file."""
    stats: Any = client.memory_stats()
    return int(stats["total.allocated"] - stats["clients.normal"] - stats.get("aof.buffer", 0))


def _by_key(client: Redis) -> Counter[str]:
    """Bytes by the last part of a key's name; MEMORY USAGE counts every element."""
    sums: Counter[str] = Counter()
    for key in client.scan_iter("pf1:*", count=1000):
        sums[key.decode().rpartition(":")[2]] += int(client.memory_usage(key, samples=0) or 0)
    return sums


def _since(client: Redis, before: tuple[int, Counter[str]], text: int, sessions: int) -> SessionMemory:
    by_key = _by_key(client)
    by_key.subtract(before[1])
    each = {name: total / sessions for name, total in by_key.most_common()}
    return SessionMemory(text, (_settled(client) - before[0]) / sessions, each)


def pieces(size: int, count: int) -> Iterator[str]:
    """Texts of about ``size`` bytes each, recorded ones where there are any."""
    made = 0
    source = random.Random(1)
    recorded = " ".join(" ".join(recorded_texts()).split())  # no piece of nothing but blanks
    while made < count:
        if recorded:
            at = source.randrange(max(1, len(recorded) - 2 * size))
            text = recorded[at : at + size]
        else:
            text = " ".join(source.choices(WORDS, k=size // 7 + 1))[:size]
        yield text.encode()[:size].decode(errors="ignore")
        made += 1


def recorded_texts() -> list[str]:
    """Messages of recorded conversations in plain words; none without ``PREFOLD_DATA``."""
    folder = os.environ.get("PREFOLD_DATA")
    lines = (line for path in sorted(Path(folder).glob("beam-100k-*.jsonl")) for line in _lines(path)) if folder else ()
    return [line["content"] for line in lines if isinstance(line.get("content"), str)]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text("utf-8").splitlines():
        yield json.loads(line)


def compression(entries: Sequence[bytes]) -> dict[str, float]:
    """Compressed over plain size of the log's own entries, so many together, by zlib level 1 and 6 (and zstd, if there)."""
    found = {}
    for name, compress in _compressors().items():
        for batch in _BATCHES:
            packed = sum(len(compress(group)) for group in _grouped(entries, batch))
            found[f"{name}, {batch} together"] = packed / sum(map(len, entries))
    return found


def _compressors() -> dict[str, Callable[[bytes], bytes]]:
    made: dict[str, Callable[[bytes], bytes]] = {
        "zlib 1": lambda raw: zlib.compress(raw, 1),
        "zlib 6": lambda raw: zlib.compress(raw, 6),
    }
    with suppress(ModuleNotFoundError):
        made["zstd 3"] = import_module("zstandard").ZstdCompressor(level=3).compress
    return made


def _grouped(entries: Sequence[bytes], size: int) -> Iterator[bytes]:
    for at in range(0, len(entries), size):
        yield b"".join(entries[at : at + size])


def log_entries(turns: Iterable[PreparedTurn]) -> list[bytes]:
    """What the log keeps of turns, as bytes."""
    return [turn.envelope + turn.content + (turn.short or b"") for turn in turns]


def main() -> int:
    """Tells the parts."""
    spoken, ended = measured(SESSIONS)
    for when, found in (("just spoken", spoken), ("at rest", ended)):
        print(f"{when}: text {found.text} B, used_memory {found.used:.0f} B: {found.times:.2f} times")
        for name, size in found.by_key.items():
            print(f"  {name:<12} {size:>8.0f} B  {size / found.text:>5.2f}")
    for turns in LENGTHS:
        each = measured(max(30, SESSIONS * TURNS // turns // 3), turns=turns)
        print(f"{turns:>4} turns: just spoken {each[0].times:.2f} times, at rest {each[1].times:.2f} times")
    for name, share in compression(sample_entries()).items():
        print(f"  log entries by {name:<24} {share:>5.2f} of their size")
    return 0 if max(spoken.times, ended.times) <= MOST_TIMES else 1


def sample_entries() -> list[bytes]:
    """Entries of the log of turns of that length."""
    counter = load_counter()
    raw = ({"id": f"t{at}", "role": "user", "content": text} for at, text in enumerate(pieces(TURN_BYTES, 2_000)))
    return log_entries(prepare_turn(one, 0, counter, lambda: "") for one in raw)


if __name__ == "__main__":
    sys.exit(main())
