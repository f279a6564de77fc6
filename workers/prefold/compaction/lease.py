"""Work under a lease: the lease is renewed while the work goes on, and the work ends when the lease does."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from prefold.errors import TransientError
from prefold.storage.types import BuildTicket, SessionRef

T = TypeVar("T")

_RENEWALS = 3
"""Within the length of a lease."""


class LeaseLostError(Exception):
    """Another build, an erasure or a change of the covered turns made the ticket void."""


class RenewsLeases(Protocol):
    """Part of ``prefold.storage.Sessions``."""

    async def renew_build(self, ticket: BuildTicket) -> bool: ...
    async def is_degraded(self, ref: SessionRef) -> bool: ...


async def under_lease(
    storage: RenewsLeases, ticket: BuildTicket, work: Coroutine[Any, Any, T], hurry: asyncio.Event | None = None
) -> T:
    """What ``work`` returns or raises. ``LeaseLostError``, with ``work`` cancelled, once the ticket is void.

    A renewal that Redis does not take is tried again until the lease must have run out. ``hurry`` is set once a renewal
    finds that the session's context is degraded.
    """
    working = asyncio.ensure_future(work)
    keeping = asyncio.ensure_future(_keep(storage, ticket, hurry))
    try:
        await asyncio.wait({working, keeping}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            keeping.result()
        return working.result()
    finally:
        for one in (working, keeping):
            one.cancel()
        await asyncio.gather(working, keeping, return_exceptions=True)


async def _keep(storage: RenewsLeases, ticket: BuildTicket, hurry: asyncio.Event | None) -> None:
    """Renews until the ticket is void; then raises."""
    lease_seconds = ticket.lease_ms / 1000
    good_until = time.monotonic() + lease_seconds
    while time.monotonic() < good_until:
        await asyncio.sleep(lease_seconds / _RENEWALS)
        asked_at = time.monotonic()
        try:
            if not await storage.renew_build(ticket):
                break
            good_until = asked_at + lease_seconds
            if hurry is not None and not hurry.is_set() and await storage.is_degraded(ticket.ref):
                hurry.set()
        except TransientError:
            continue
    raise LeaseLostError
