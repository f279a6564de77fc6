"""How fast the built-in embedder is alone: the floor that embedding through the worker is compared with."""

import time
from collections.abc import Callable

from prefold.embedding import create_embedder

_SHORT = "Caroline (8 May 2023): I went to the support group yesterday and it was so powerful, number {}."
_LONG = "To set this up, first open the settings of the project and choose the region in step {}. " * 20
_SHORT_TEXTS = 128
_LONG_TEXTS = 16
_QUERIES = 20


def run() -> dict[str, float]:
    """Loads the embedder and returns seconds to load, texts a second (wall), and milliseconds a query."""
    started = time.perf_counter()
    embedder = create_embedder()
    load_seconds = time.perf_counter() - started
    short = [_SHORT.format(number) for number in range(_SHORT_TEXTS)]
    long = [_LONG.format(*range(20)) for _ in range(_LONG_TEXTS)]
    return {
        "load_seconds": load_seconds,
        "short_texts_per_second": _SHORT_TEXTS / _seconds(lambda: embedder.embed_documents(short)),
        "long_texts_per_second": _LONG_TEXTS / _seconds(lambda: embedder.embed_documents(long)),
        "query_ms": 1000 * _seconds(lambda: [embedder.embed_query(text) for text in short[:_QUERIES]]) / _QUERIES,
    }


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
