"""A whole deployment with keys for all tenants, and ways to look into each of its stores."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from redis import Redis

from prefold.stack.embedded import EmbeddedStack, temporary_stack
from tests.support.canaries import uncompressed
from tests.support.embedding_server import DIMENSION, embedding_server
from tests.support.seeds import tell
from tests.support.tenants.asked import Asked, looking_proxy
from tests.support.tenants.people import write_keys
from tests.support.vectors import running_vectors


@dataclass
class Town:
    """Real processes: gateway, dispatcher, workers, two Redis servers, the vector store behind a proxy."""

    stack: EmbeddedStack
    asked: Asked
    vectors_url: str
    embedded: list[str] = field(default_factory=list)
    """Every text that the embedder was given."""

    def complaints(self) -> list[str]:
        """What its processes logged as errors."""
        logs = sorted(self.stack.folder.logs.iterdir())
        return [line for log in logs for line in log.read_text("utf-8").splitlines() if '"error"' in line]

    @contextmanager
    def redis(self) -> Iterator[Redis]:
        with Redis.from_url(self.stack.redis_url) as client:
            yield client

    @contextmanager
    def queue(self) -> Iterator[Redis]:
        with Redis.from_url(self.stack.queue_url) as client:
            yield client


@contextmanager
def running_town(folder: Path, tenants: int) -> Iterator[Town]:
    """The embedder's vectors follow from the texts by a hash: near in meaning is nothing, so every tenant's turns are
    as near to a query as any other's, and a filter that fails shows at once."""
    heard: list[str] = []
    with (
        embedding_server(heard) as embedder,
        running_vectors(folder / "vectors") as vectors,
        looking_proxy(vectors.url) as asked,
        temporary_stack(
            qdrant_url=asked.url,
            api_keys_file=write_keys(folder / "keys", tenants),
            embedder="http",
            embedder_url=embedder,
            embedder_model="by-hash",
            embedder_dimension=DIMENSION,
        ) as stack,
    ):
        town = Town(stack, asked, vectors.url, heard)
        for client in (town.redis, town.queue):
            with client() as server:
                uncompressed(server)
        try:
            yield town
        finally:
            for line in town.complaints()[:20]:
                tell(line[:2_000])
