"""What every embedder promises."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
"""One row a text."""
Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class CosineScale:
    """Brings a model's cosines onto the scale that the fusion weights were chosen on (MiniLM's).

    Models differ in where their cosines lie: e5's unrelated texts score 0.75, MiniLM's 0.05.
    """

    floor: float = 0.0
    """The cosine that becomes 0."""
    span: float = 1.0
    """How much cosine above ``floor`` becomes 1."""

    def apply(self, cosine: float) -> float:
        """The cosine on the common scale; may leave 0..1 at both ends."""
        return (cosine - self.floor) / self.span


class Embedder(Protocol):
    """Turns texts into vectors of one length and one meaning.

    Every call blocks: local ones are CPU-bound (the model releases the GIL while it computes), the HTTP one
    waits for its server. An event loop calls them in a thread. Calls from several threads at once are legal.

    The same text always gives the same vector, within 1e-3 a component, whatever else is in the batch. Any
    text is legal: empty, longer than the model reads (what is beyond is ignored), with lone surrogates or NUL.
    Every row is finite and of length 1; a text for which the model has nothing to say gets the even vector
    1/sqrt(dimension), which resembles no text in particular.

    Raises ``UnavailableError`` or ``OverloadedError`` where a retry may help, ``RefusedError`` where not.
    Local embedders raise ``ConfigurationError`` when they are built, and nothing afterwards.
    """

    @property
    def id(self) -> str:
        """Names model and precision. Vectors of two ids must never share a collection."""

    @property
    def dimension(self) -> int:
        """Length of every vector."""

    @property
    def max_batch(self) -> int:
        """How many texts one call should carry to stay short. More are legal and are split inside."""

    @property
    def scale(self) -> CosineScale:
        """Where this model's cosines lie."""

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """One row a text, in order; shape (0, dimension) for no text."""

    def embed_query(self, text: str) -> Vector:
        """The vector to search with; models that tell questions from passages are told here."""

    def close(self) -> None:
        """Lets go of connections and memory. Twice is legal."""
