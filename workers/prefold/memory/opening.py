"""Opens what vectors of derived texts need, at the first work that has one."""

import asyncio

from prefold.memory.derived_vectors import OpenedStore
from prefold.worker.runtime import Runtime

__all__ = ["open_store"]


async def open_store(shared: Runtime) -> OpenedStore:
    """Loads the embedder, in a thread, and makes the collection where it is missing."""
    index = await asyncio.to_thread(lambda: shared.memory_index)
    await index.ensure()
    return OpenedStore(shared.embedder, index)
