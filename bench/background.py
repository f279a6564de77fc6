"""What happens behind the conversation: embedding."""

import os
import time

from bench.measure import Row
from prefold.client import Prefold
from prefold.embedding import Embedder, create_embedder
from prefold.stack.embedded import temporary_stack

DEADLINE_SECONDS = 300


def embed_rows(turns: int) -> list[Row]:
    """Appended to searchable, one embed worker, against the embedder alone on the same texts, both as urgent."""
    os.environ["PREFOLD_EMBED_NICE"] = "0"
    texts = [
        f"Parcel {i} left the warehouse in Leipzig on day {i % 28 + 1} and is due at gate {i % 9}."
        for i in range(turns)
    ]
    embedder = create_embedder()
    embedder.embed_documents(texts[:8])
    alone = _alone_seconds(embedder, texts)
    with temporary_stack(durability="fast") as stack, Prefold(stack.gateway_url) as sdk:
        sdk.append("warm", "user", "hello there, is anybody in?")
        _wait_embedded(sdk, ["warm"])
        sessions = [f"s{i}" for i in range(10)]
        start = time.perf_counter()
        for number, text in enumerate(texts):
            sdk.append(sessions[number % len(sessions)], "user", text)
        _wait_embedded(sdk, sessions)
        through = time.perf_counter() - start
    alone = (alone + _alone_seconds(embedder, texts)) / 2  # before and after: the machine may be busy in between
    each = 1000 / turns
    return [Row("a turn embedded, all in (1 worker)", "the embedder alone", "ms", each * through, each * alone)]


def _alone_seconds(embedder: Embedder, texts: list[str]) -> float:
    start = time.perf_counter()
    embedder.embed_documents(texts)
    return time.perf_counter() - start


def _wait_embedded(sdk: Prefold, sessions: list[str]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    for session in sessions:
        while True:
            state = sdk.session(session)
            if state.embedded_to >= state.head_seq:
                break
            if time.monotonic() > deadline:
                raise TimeoutError("the embed worker did not keep up")
            time.sleep(0.02)
