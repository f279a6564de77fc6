"""What the store does between the calls: flush by time, clear deleted points away when idle."""

import asyncio

import structlog

from prefold.vectorstore.store import Store

log = structlog.get_logger()


async def keep_up(store: Store, *, flush_every_seconds: float, vacuum_after_idle_seconds: float) -> None:
    """Runs until it is cancelled."""
    while True:
        await asyncio.sleep(flush_every_seconds)
        await look_after(store, vacuum_after_idle_seconds)


async def look_after(store: Store, vacuum_after_idle_seconds: float) -> None:
    """One round over all collections."""
    for collection in store.collections():
        try:
            await collection.flush()
            if await collection.vacuum(vacuum_after_idle_seconds):
                log.info("vacuumed", collection=collection.name)
        except Exception:  # one collection's full disk must not end the upkeep of the others
            log.exception("upkeep_failed", collection=collection.name)
        await asyncio.sleep(0)
