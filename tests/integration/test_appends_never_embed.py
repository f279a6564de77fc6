"""What an append waits for: never the embedder, never the vector store, however they hang."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.support.gateway_process import running_gateway

APPENDS = 40


@dataclass
class Mute:
    """A server that takes connections and requests, and never says a word."""

    url: str
    heard: list[bytes] = field(default_factory=list)


@contextmanager
def mute_server() -> Iterator[Mute]:
    """What each connection sends is in ``heard``."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as held:
        mute = Mute(f"http://127.0.0.1:{listener.getsockname()[1]}")

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection = held.enter_context(listener.accept()[0])
                    mute.heard.append(connection.recv(65_536))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield mute
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_appends_go_on_and_ask_for_no_vector_while_embedder_and_vector_store_hang(
    redis_url: str, tmp_path: Path
) -> None:
    with ExitStack() as living:
        embedder, vectors = living.enter_context(mute_server()), living.enter_context(mute_server())
        settings = {"redis-url": redis_url, "qdrant-url": vectors.url, "durability": "fast", "embedder": "http"}
        settings |= {"embedder-url": embedder.url, "embedder-model": "m", "embedder-dimension": "4"}
        flags = [word for name, value in settings.items() for word in (f"--{name}", value)]
        _, url = living.enter_context(running_gateway(tmp_path, *flags))
        client = living.enter_context(httpx.Client(base_url=url, timeout=10))
        for number in range(APPENDS):
            role = "assistant" if number % 2 else "user"
            turn = {"id": f"t{number}", "role": role, "content": f"Parcel {number} has left Leipzig."}
            answer = client.post("/v1/sessions/s/turns", json=turn)
            assert (answer.status_code, answer.json()["turns"][0]["seq"]) == (201, number + 1)
        edited = client.put("/v1/sessions/s/turns/t3", json={"role": "assistant", "content": "It is in Halle."})
        assert edited.status_code == 200
        assert client.get("/v1/sessions/s/context").status_code == 200
        assert embedder.heard == []
        # The same embedder is what a query waits for, and no longer than its deadline.
        answer = client.get("/v1/sessions/s/context", params={"query": "Where is parcel 7?", "budget_tokens": "300"})
        assert answer.status_code == 200
        assert len(embedder.heard) == 1
