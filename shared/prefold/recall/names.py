"""Names that say what they hold: of collections and of points."""

import hashlib
import json
import re
import uuid
from functools import lru_cache
from typing import Final

from prefold.storage.types import SessionRef

COLLECTION_PREFIX: Final = "turns_"
MEMORY_PREFIX: Final = "memory_"
_POINTS: Final = uuid.UUID("6f1d2f7e-6f0e-5f53-9f0a-0c8b6a3c7d11")
"""Namespace of the points' ids. Changing it orphans every stored point."""
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9.-]+")


def collection_name(embedder: str, dimension: int) -> str:
    """``turns_<embedder>_<dimension>``: vectors of two models never meet in one collection."""
    return f"{COLLECTION_PREFIX}{_model(embedder)}_{dimension}"


def memory_collection_name(embedder: str, dimension: int) -> str:
    """``memory_<embedder>_<dimension>``: what was derived from turns stands apart from them."""
    return f"{MEMORY_PREFIX}{_model(embedder)}_{dimension}"


def _model(embedder: str) -> str:
    return _NOT_IN_NAMES.sub("-", embedder.lower()).strip("-")[:180]


def turn_point_id(ref: SessionRef, seq: int, revision: int) -> str:
    """Id of a turn's vector: the same for the same turn, so that writing it twice changes nothing.

    UUIDv5 of the five fields as a JSON array, in which no two different turns look alike.
    """
    fields = [ref.tenant, ref.session, ref.incarnation, seq, revision]
    return str(uuid.uuid5(_POINTS, json.dumps(fields, separators=(",", ":"))))


def turn_place(session: str, incarnation: str, seq: int) -> int:
    """A number (63 bits) of a turn's place, whatever its revision; neighbours of one life have neighbouring numbers.

    What lies beside some turns is asked for by it: a filter by session and number would look at whole sessions.
    """
    return (_life_number(session, incarnation) + seq) % 2**63


@lru_cache(maxsize=4096)
def _life_number(session: str, incarnation: str) -> int:
    fields = json.dumps([session, incarnation], separators=(",", ":")).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(fields, digest_size=8).digest(), "big")


def derived_point_id(tenant: str, user: str, kind: str, session: str, incarnation: str, key: str) -> str:
    """Id of a derived text's vector: a newer text of the same key takes its place."""
    fields = [tenant, user, kind, session, incarnation, key]
    return str(uuid.uuid5(_POINTS, json.dumps(fields, separators=(",", ":"))))
