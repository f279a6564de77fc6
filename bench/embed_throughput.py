"""Turns embedded by a pass of the embed worker, against the embedder alone on the same texts.

The pass runs in this process, on a session server and a vector store of their own: what it adds is reading, judging,
indexing, storing and marking. The texts are as long as chat is.
"""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import orjson
import uvloop

from bench.measure import ROUNDS, Row
from bench.search_scale import vector_server
from bench.servers import make_turn, session_server
from prefold.embedding import Embedder, create_embedder
from prefold.recall import CollectionSpec, VectorIndex, connect_vectors, index_turn
from prefold.storage import Sessions, connect_sessions
from prefold.storage.embed_types import EmbedSpan
from prefold.worker.embed_pass import EmbedPass
from prefold.worker.turn_store import MadeIndex

MOST: float = 1.25
"""Times the embedder alone: 80 % of its rate."""
SESSIONS = 10
_SHORT = "Parcel {} left the warehouse in Leipzig on day {} and is due at gate {}, said the carrier this morning."
_LONG = "To set this up, open the settings of project {} first and choose the region in step {} or {}. " * 6


def pass_rows(turns: int) -> list[Row]:
    """Rounds of a pass over new sessions and of the embedder alone, in turn."""
    embedder = create_embedder()
    rows = []
    for name, text, count in (("short turns", _SHORT, turns), ("long turns", _LONG, max(SESSIONS, turns // 4))):
        texts = [text.format(*[number, number % 28 + 1, number % 9] * 6) for number in range(count)]
        rows.append(uvloop.run(_compared(embedder, name, texts)))
    embedder.close()
    return rows


async def _compared(embedder: Embedder, name: str, texts: Sequence[str]) -> Row:
    taken: dict[str, list[float]] = {"pass": [], "alone": []}
    spec = CollectionSpec(embedder.id, embedder.dimension)
    with session_server("fast") as redis, vector_server() as store:
        url = f"unix://{redis.connection_pool.connection_kwargs['path']}"
        async with (
            connect_sessions(url) as sessions,
            connect_vectors(store.url, spec, request_timeout=timedelta(seconds=30)) as index,
        ):
            await MadeIndex(index).upsert([])
            for number in range(ROUNDS + 1):
                with _timed(taken["alone"]):
                    embedder.embed_documents([index_turn(_published(text)).text for text in texts])
                spans = await _appended(sessions, f"r{number}", texts)
                with _timed(taken["pass"]):
                    await _passed(sessions, index, embedder, spans, len(texts))
    alone, ours = (1000 * statistics.median(taken[who][1:]) / len(texts) for who in ("alone", "pass"))
    return Row(f"a turn embedded by a pass, {name}", "the embedder alone", "ms", ours, alone, MOST)


async def _appended(sessions: Sessions, prefix: str, texts: Sequence[str]) -> list[EmbedSpan]:
    spans = []
    for number in range(min(SESSIONS, len(texts))):
        name, said = f"{prefix}-{number}", texts[number::SESSIONS]
        ref = (await sessions.append("acme", name, [make_turn(place, text) for place, text in enumerate(said)])).ref
        spans.append(EmbedSpan("acme", name, ref.incarnation, 1, len(said)))
    return spans


async def _passed(
    sessions: Sessions, index: VectorIndex, embedder: Embedder, spans: Sequence[EmbedSpan], turns: int
) -> None:
    embedded = 0
    while embedded < turns:
        report = await EmbedPass(sessions, MadeIndex(index), embedder, lambda: False).run(spans)
        embedded += report.embedded
        if not report.embedded:
            raise AssertionError(f"only {embedded} of {turns} turns were embedded: {report}")


def _published(text: str) -> bytes:
    return orjson.dumps({"role": "user", "content": text})


@contextmanager
def _timed(seconds: list[float]) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds.append(time.perf_counter() - start)
