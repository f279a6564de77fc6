"""Many summaries under way in one process: what one that is quick waits for the others, and what each takes in memory.

``python -m bench.builds_memory`` is the process that is measured; this module fills the sessions and asks it.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from redis import Redis

from bench.measure import ROUNDS, Row
from bench.servers import session_server
from prefold.compaction.build import SessionBuilder
from prefold.compaction.engine import Summary, SummaryInput
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.compaction.pool import BuildPool
from prefold.compaction.reading.turns import TurnCache
from prefold.conversation import prepare_turn
from prefold.conversation.turns import PreparedTurn
from prefold.storage import Sessions, connect_sessions
from prefold.storage.types import SessionOptions, SessionRef
from prefold.tokens import load_counter
from prefold.worker.verdicts import Ended
from prefold.worker.waiting import waiting

TENANT = "bench"
SLOW = 63
WORDS = (
    "parcel warehouse Leipzig Tuesday claim carrier order customer refund invoice address window driver depot label "
    "scanner morning answer ticket agent budget email deadline city allergy route weight customs form signature"
).split()
_AT_ONCE = 50


def build_rows(rounds: int = ROUNDS) -> list[Row]:
    """A quick build beside 63 that wait for their models, against the same alone."""
    with session_server("fast") as client:
        alone, beside = asyncio.run(_quick_builds(_url_of(client), rounds))
    return [Row("a build beside 63 that wait", "the same alone", "ms", _median(beside), _median(alone), most=2.0)]


def memory_rows(tokens: int, counts: Sequence[int] = (1, 16, 64)) -> list[Row]:
    """MB a build that waits for its model, over what the process takes without any, for sessions of ``tokens``."""
    with session_server("fast") as client, silent_model() as model:
        refs = asyncio.run(_filled(_url_of(client), [f"s{number}" for number in range(max(counts))], tokens))
        rows = []
        for count in counts:
            used = _measured(_url_of(client), model, refs[:count])
            each = (used["waiting_mb"] - used["idle_mb"]) / count
            name = f"memory of each of {count} builds, {tokens // 1000}k tokens"
            rows.append(Row(name, "a process without any", "MB", each, used["idle_mb"], notes=used))
    return rows


class Halting:
    """The extractive engine, but for sessions that are to wait as for a model that hangs."""

    name, prompt_version = "halting", "1"

    def __init__(self, real: ExtractiveSummarizer) -> None:
        self._real = real

    async def summarize(self, wanted: SummaryInput) -> Summary:
        if wanted.ref.session.startswith("slow"):
            async with waiting():
                await asyncio.get_running_loop().create_future()
        return await self._real.summarize(wanted)


async def _quick_builds(url: str, rounds: int) -> tuple[list[float], list[float]]:
    quick = [f"quick{number}" for number in range(2 * rounds + 1)]
    async with connect_sessions(url) as sessions:
        refs = {ref.session: ref for ref in await _fill(sessions, [*quick, *_slow()], 3_000)}
        cache = TurnCache(load_counter())
        builder = SessionBuilder(sessions, Halting(ExtractiveSummarizer(cache, load_counter())), cache, load_counter())
        times: list[float] = []
        for number, name in enumerate(quick):
            pool = BuildPool(builder, threading.Event())
            if number % 2:
                await _said(await pool.hand_over([refs[one] for one in _slow()]), is_waiting)
            began = time.perf_counter()
            await _said(await pool.hand_over([refs[name]]), has_ended)
            times.append((time.perf_counter() - began) * 1000)
            await pool.cancel()
    return times[2::2], times[1::2]  # the very first one warms up


def is_waiting(what: bool | Ended) -> bool:
    """Of what is told of a build: it waits for its model."""
    return what is True


def has_ended(what: bool | Ended) -> bool:
    """It is over."""
    return isinstance(what, Ended)


async def _said(handed: Ended, of: Callable[[bool | Ended], bool]) -> None:
    """Waits until it was told of each build."""
    for one in handed.ongoing.values():
        told = asyncio.Event()
        one.follow(lambda what, told=told: told.set() if of(what) else None)  # type: ignore[misc]
        await told.wait()


def _slow() -> list[str]:
    return [f"slow{number}" for number in range(SLOW)]


async def _filled(url: str, names: Sequence[str], tokens: int) -> list[SessionRef]:
    async with connect_sessions(url) as sessions:
        return await _fill(sessions, names, tokens)


async def _fill(sessions: Sessions, names: Sequence[str], tokens: int) -> list[SessionRef]:
    """Sessions of so many raw tokens, just past their soft threshold."""
    turns = _turns(tokens)
    refs = []
    for name in names:
        options = SessionOptions(hard_limit_tokens=max(1_000, int(tokens * 1.2)), soft_ratio=0.5)
        await sessions.open(TENANT, name, options)
        added = [
            await sessions.append(TENANT, name, turns[at : at + _AT_ONCE]) for at in range(0, len(turns), _AT_ONCE)
        ]
        refs.append(added[-1].ref)
    return refs


def _turns(tokens: int) -> list[PreparedTurn]:
    made: list[PreparedTurn] = []
    total = 0
    while total < tokens:
        number = len(made)
        words = [WORDS[(number * 7 + at * (1 + number % 5)) % len(WORDS)] for at in range(180)]
        text = (
            ". ".join(" ".join(words[at : at + 12]).capitalize() for at in range(0, 180, 12)) + f". Order A-{number}."
        )
        raw = {"id": f"t{number}", "role": "assistant" if number % 2 else "user", "content": text}
        made.append(prepare_turn(raw, 0, load_counter(), lambda: ""))
        total += made[-1].tokens
    return made


def _measured(url: str, model: str, refs: Sequence[SessionRef]) -> dict[str, float]:
    names = [[ref.tenant, ref.session, ref.incarnation] for ref in refs]
    environment = {
        **os.environ,
        "PREFOLD_REDIS_URL": url,
        "PREFOLD_QUEUE_URL": url,
        "PREFOLD_SUMMARIZER": "anthropic",
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_BASE_URL": model,
    }
    command = [sys.executable, "-m", "bench.builds_memory"]
    done = subprocess.run(
        command, input=json.dumps(names), env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return dict(json.loads(done.stdout))


@contextmanager
def silent_model() -> Iterator[str]:
    """URL of a server that reads what it is asked and never answers."""
    loop = asyncio.new_event_loop()

    async def read(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        while await reader.read(1 << 16):
            pass

    server = loop.run_until_complete(asyncio.start_server(read, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    loop.call_soon_threadsafe(loop.stop)
    thread.join(5)


def _url_of(client: Redis) -> str:
    return f"unix://{client.connection_pool.connection_kwargs['path']}"


def _median(times: Sequence[float]) -> float:
    return sorted(times)[len(times) // 2]
