"""Cleaning at both ends of a model: texts on the way in, vectors on the way out."""

import numpy as np
from numpy.typing import NDArray

from prefold.embedding.protocol import Matrix


def clean_text(text: str, limit_chars: int) -> str:
    """The first ``limit_chars`` of a text as a model can take it: no NUL, no lone surrogate."""
    clipped = text[:limit_chars].replace("\x00", " ")
    return clipped.encode("utf-8", "replace").decode("utf-8")


def unit_rows(raw: NDArray[np.floating]) -> Matrix:
    """The rows scaled to length 1; rows without a direction (zero, NaN, infinite) become the even vector."""
    rows = np.asarray(raw, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
    usable = np.isfinite(norms[:, 0]) & (norms[:, 0] > 0)
    unit = np.full(rows.shape, 1.0 / np.sqrt(rows.shape[1]) if rows.shape[1] else 0.0)
    np.divide(rows, norms, out=unit, where=usable[:, None])
    return unit.astype(np.float32)
