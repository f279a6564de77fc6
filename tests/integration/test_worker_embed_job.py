"""The embed job as RQ calls it: by its name, with JSON, in a process that has a runtime."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from prefold.conversation import prepare_turn
from prefold.errors import InvalidInputError, UnavailableError
from prefold.jobs import EMBED_QUEUE, TO_HEAD, JobQueue, encode_spans, hint_queue, queue_connection
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.types import SessionRef
from prefold.tokens import load_counter
from prefold.worker.embed_job import embed_turns
from prefold.worker.hint_worker import HintWorker
from prefold.worker.runtime import Runtime, close_runtime, install
from prefold.worker.settings import WorkerSettings
from tests.support.embedding import FakeEmbedder
from tests.support.vectors import RunningVectors, running_vectors

COUNTER = load_counter()


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path) as server:
        yield server


@pytest.fixture
def shared(redis_url: str, queue_url: str, vectors: RunningVectors) -> Iterator[Runtime]:
    settings = WorkerSettings(redis_url=redis_url, queue_url=queue_url, qdrant_url=vectors.url)
    built = Runtime(settings, threading.Event())
    built.__dict__["embedder"] = FakeEmbedder()  # in place of the cached property's value
    install(built)
    yield built
    close_runtime()


def say(shared: Runtime, *texts: str) -> SessionRef:
    raws = [{"id": text, "role": "user", "content": text} for text in texts]
    turns = [prepare_turn(raw, place, COUNTER, lambda: "unused") for place, raw in enumerate(raws)]
    return shared.run(shared.sessions.append("acme", "s", turns)).ref


def payload(ref: SessionRef) -> list[list[str | int]]:
    spans = encode_spans([EmbedSpan(ref.tenant, ref.session, ref.incarnation, 1, TO_HEAD)])
    decoded: list[list[str | int]] = json.loads(json.dumps(spans))
    return decoded


def test_the_job_embeds_and_says_how_much(shared: Runtime) -> None:
    ref = say(shared, "one", "two")
    with capture_logs() as logs:
        embed_turns(payload(ref))
    assert shared.run(shared.index.count("acme")) == 2
    assert [(entry["turns"], entry["refused"]) for entry in logs if entry["event"] == "turns_embedded"] == [(2, 0)]


def test_a_payload_that_cannot_be_read_is_refused_for_good(shared: Runtime) -> None:
    with pytest.raises(InvalidInputError):
        embed_turns([["acme", "s"]])


def test_a_vector_store_that_is_away_makes_the_job_transient(shared: Runtime, vectors: RunningVectors) -> None:
    ref = say(shared, "one")
    vectors.kill()
    with pytest.raises(UnavailableError):
        embed_turns(payload(ref))


def test_the_worker_runs_what_the_dispatcher_enqueues(shared: Runtime, queue_url: str) -> None:
    ref = say(shared, "one", "two")
    with queue_connection(queue_url) as connection:
        JobQueue(connection).embed([EmbedSpan(ref.tenant, ref.session, ref.incarnation, 1, 2)], occasion="events")
        assert HintWorker(hint_queue(EMBED_QUEUE, connection), shared.stop).work(burst=True)
    assert shared.run(shared.sessions.embedded_to(ref, shared.index.collection)) == 2
