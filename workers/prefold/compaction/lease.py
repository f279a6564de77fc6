"""Work under a lease: the lease is renewed while the work goes on, and the work ends when the lease does."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
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

    ``hurry`` is set once a renewal finds that the session's context is degraded. See ``while_renewed``.
    """

    async def renew() -> bool:
        is_good = await storage.renew_build(ticket)
        if is_good and hurry is not None and not hurry.is_set():
            with suppress(TransientError):  # the lease is renewed all the same
                if await storage.is_degraded(ticket.ref):
                    hurry.set()
        return is_good

    return await while_renewed(renew, ticket.lease_ms, work)


async def while_renewed(renew: Callable[[], Awaitable[bool]], lease_ms: int, work: Coroutine[Any, Any, T]) -> T:
    """What ``work`` returns or raises, under a lease that ``renew`` lengthens by ``lease_ms`` from now.

    ``LeaseLostError``, with ``work`` cancelled, once it answers False. A renewal that Redis does not take is tried again
    until the lease must have run out.
    """
    working = asyncio.ensure_future(work)
    keeping = asyncio.ensure_future(_keep(renew, lease_ms))
    try:
        await asyncio.wait({working, keeping}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            keeping.result()
        return working.result()
    finally:
        for one in (working, keeping):
            one.cancel()
        await asyncio.gather(working, keeping, return_exceptions=True)


async def _keep(renew: Callable[[], Awaitable[bool]], lease_ms: int) -> None:
    """Renews until the lease is lost; then raises."""
    lease_seconds = lease_ms / 1000
    good_until = time.monotonic() + lease_seconds
    while time.monotonic() < good_until:
        await asyncio.sleep(lease_seconds / _RENEWALS)
        asked_at = time.monotonic()
        try:
            if not await renew():
                break
            good_until = asked_at + lease_seconds
        except TransientError:
            continue
    raise LeaseLostError
