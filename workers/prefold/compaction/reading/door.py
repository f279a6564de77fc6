"""Who works now, of all that is under way in one process.

Most work may go on at the same time. What has killed or failed before works alone, so that the next crash tells
whose fault it is; it does not keep others from waiting for their models meanwhile, nor anybody for longer than
``ALONE_SECONDS``.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

ALONE_SECONDS = 5.0


class Door:
    """On one event loop. Nothing here is fair beyond the order of those who have to be alone."""

    def __init__(self) -> None:
        self._at_work: set[Desk] = set()
        self._alone: Desk | None = None
        self._line: list[Desk] = []
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self, desk: "Desk") -> None:
        """Waits until ``desk`` may work, at most twice ``ALONE_SECONDS``."""
        if desk.is_suspect:
            await self._enter_alone(desk)
        else:
            while self._alone is not None or self._line:
                await self._changed.wait()
        self._at_work.add(desk)

    def leave(self, desk: "Desk") -> None:
        """It does not work for now. Leaving twice is legal."""
        self._at_work.discard(desk)
        self._let_others_in(desk)

    def enter_at_once(self, desk: "Desk") -> None:
        """Among whoever is there."""
        self._at_work.add(desk)

    async def _enter_alone(self, desk: "Desk") -> None:
        self._line.append(desk)
        try:
            async with asyncio.timeout(ALONE_SECONDS):
                while self._at_work or self._line[0] is not desk:
                    await self._changed.wait()
            self._alone = desk
            self._timer = asyncio.get_running_loop().call_later(ALONE_SECONDS, self._let_others_in, desk)
        except TimeoutError:
            desk.may_have_company.set()  # others are at it for long: they are seen to be as guilty
        finally:
            self._line.remove(desk)
            self._tell()

    def _let_others_in(self, desk: "Desk") -> None:
        if self._alone is desk and self._timer is not None:
            self._timer.cancel()
            self._alone = None
        desk.may_have_company.set()
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Desk:
    """One piece of work, as ``Door`` knows it. Entered around all of it, and left while it waits."""

    def __init__(self, door: Door, *, is_suspect: bool, tell: Callable[[bool], None]) -> None:
        """``tell`` is called with True when the work begins to wait, with False when it goes on."""
        self._door = door
        self._tell = tell
        self._waiting = 0
        self.is_suspect = is_suspect
        self.may_have_company = asyncio.Event()
        """Set once it is no longer alone, whether it ever was or not."""

    async def __aenter__(self) -> Self:
        await self._door.enter(self)
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _t: TracebackType | None
    ) -> None:
        self._door.leave(self)

    def leave(self) -> None:
        """As soon as one strand of the work waits: nearly all that is left then is waiting."""
        self._waiting += 1
        if self._waiting == 1:
            self._door.leave(self)
            self._tell(True)

    async def come_back(self) -> None:
        """Waits for the door once no strand waits any more."""
        self._waiting -= 1
        if not self._waiting:
            await self._door.enter(self)
            self._tell(False)

    def come_back_at_once(self) -> None:
        """On the way out."""
        self._waiting -= 1
        if not self._waiting:
            self._door.enter_at_once(self)
            self._tell(False)
