"""What still holds the old words once a store has let them go, and until when."""

from collections.abc import Sequence

from prefold.gateway.answers import Remains
from prefold.gateway.rewriting import LogRewrites


async def remaining(
    rewrites: LogRewrites, *keys: str, has_vectors: bool = False, forks: Sequence[str] = ()
) -> list[Remains]:
    """What a receipt has to name; starts what ends it, at the servers of ``keys``. Raises ``UnavailableError``.

    ``has_vectors``: they could not be deleted now. ``forks``: sessions that were begun with turns of this one.
    """
    vectors = Remains(where="vectors", until="the workers have deleted them, once the vector store answers")
    shared = Remains(
        where=f"sessions forked from it: {', '.join(forks)}", until="they are changed or erased themselves"
    )
    return [
        *([vectors] if has_vectors else []),
        *([shared] if forks else []),
        *await rewrites.ask(*keys),
        Remains(where="working memory of gateways and workers", until="newer turns displace it, or they are restarted"),
        Remains(where="vector store files", until="the store has vacuumed and its write-ahead log has moved on"),
        Remains(where="backups that you keep", until="you replace them"),
    ]
