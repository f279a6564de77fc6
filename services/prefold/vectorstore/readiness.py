"""Whether the vector store can do its work: its folder has room, and what looks after the shards still runs."""

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["Readiness"]

_LEAST_FREE_BYTES: Final = 32 * 1024 * 1024
"""A shard cannot fold its log in with less."""


class Readiness:
    """Called, it gives each thing and ``ok`` or what is wrong with it."""

    def __init__(self, folder: Path, upkeep: "asyncio.Task[None]") -> None:
        self._folder = folder
        self._upkeep = upkeep

    async def __call__(self) -> Mapping[str, str]:
        return {"folder": _room_in(self._folder), "upkeep": "has ended" if self._upkeep.done() else "ok"}


def _room_in(folder: Path) -> str:
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return error.strerror or "cannot be read"
    return "ok" if free >= _LEAST_FREE_BYTES else f"{free >> 20} MiB are free"
