"""What a piece of work says of itself: that it only waits now, for a model above all, and that it goes on.

Work that waits takes no part in what may kill the process, so it is not suspected as soon, and work that has to be
alone may go on beside it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Protocol


class Desk(Protocol):
    """Where one piece of work is done."""

    def leave(self) -> None:
        """A part of the work waits from now on. Never blocks."""

    async def come_back(self) -> None:
        """It waits no longer; may take seconds while other work has to be alone."""

    def come_back_at_once(self) -> None:
        """The same for work that was cancelled and is on its way out."""


desk_of_work: ContextVar[Desk | None] = ContextVar("desk_of_work", default=None)
"""Of the work that this task, and every task that it starts, does."""


@asynccontextmanager
async def waiting() -> AsyncIterator[None]:
    """Around an await of something that is done elsewhere. Changes nothing outside of work that has a desk."""
    desk = desk_of_work.get()
    if desk is None:
        yield
        return
    desk.leave()
    try:
        yield
    except asyncio.CancelledError:
        desk.come_back_at_once()
        raise
    except BaseException:
        await desk.come_back()
        raise
    await desk.come_back()
