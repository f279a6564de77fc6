"""Names that say what they hold: of collections and of points."""

import json
import re
import uuid
from typing import Final

from prefold.storage.types import SessionRef

COLLECTION_PREFIX: Final = "turns_"
_POINTS: Final = uuid.UUID("6f1d2f7e-6f0e-5f53-9f0a-0c8b6a3c7d11")
"""Namespace of the points' ids. Changing it orphans every stored point."""
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9.-]+")


def collection_name(embedder: str, dimension: int) -> str:
    """``turns_<embedder>_<dimension>``: vectors of two models never meet in one collection."""
    return f"{COLLECTION_PREFIX}{_NOT_IN_NAMES.sub('-', embedder.lower()).strip('-')[:180]}_{dimension}"


def turn_point_id(ref: SessionRef, seq: int, revision: int) -> str:
    """Id of a turn's vector: the same for the same turn, so that writing it twice changes nothing.

    UUIDv5 of the five fields as a JSON array, in which no two different turns look alike.
    """
    fields = [ref.tenant, ref.session, ref.incarnation, seq, revision]
    return str(uuid.uuid5(_POINTS, json.dumps(fields, separators=(",", ":"))))
