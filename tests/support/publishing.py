"""Producers that publish through whatever happens to the servers, and know what was acknowledged."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from prefold.errors import TransientError
from prefold.storage import Sessions
from tests.support.storage import TENANT, turn


class Publisher:
    """Publishes the turns of one session one after another; one that is refused for now goes out again."""

    def __init__(self, sessions: Sessions, session: str) -> None:
        self.sessions = sessions
        self.session = session
        self.acknowledged: dict[str, int] = {}
        """Seq by id, in the order in which they were published."""
        self.refusals: list[TransientError] = []
        self.longest_seconds = 0.0
        """Longest time that one call took, refused or not."""

    async def publish(self, turns: int) -> None:
        for _ in range(turns):
            await self.publish_one()

    async def publish_until(self, stop: asyncio.Event) -> None:
        """Ends after the turn that is under way when ``stop`` is set, once it is stored."""
        while not stop.is_set():
            await self.publish_one()

    async def publish_one(self) -> None:
        number = len(self.acknowledged) + 1
        prepared = turn("user", f"Turn {number}", id=f"{self.session}-{number}")
        while True:
            began = time.monotonic()
            try:
                result = await self.sessions.append(TENANT, self.session, [prepared])
            except TransientError as error:
                self.refusals.append(error)
                await asyncio.sleep(0.02)
            else:
                self.acknowledged[prepared.id] = result.turns[0].seq
                return
            finally:
                self.longest_seconds = max(self.longest_seconds, time.monotonic() - began)

    async def stored(self) -> list[tuple[str, int]]:
        """Ids and seqs of the log."""
        found: list[tuple[str, int]] = []
        while page := await self.sessions.read_turns(TENANT, self.session, found[-1][1] if found else 0, 500):
            found += [(one.id, one.seq) for one in page]
        return found

    async def check(self) -> None:
        """Fails unless every acknowledged turn is in the log once, in order, with the seq that was told."""
        expected = [(f"{self.session}-{number}", number) for number in range(1, len(self.acknowledged) + 1)]
        assert list(self.acknowledged.items()) == expected
        assert all(refusal.retry_after for refusal in self.refusals)
        assert await self.stored() == expected


async def publish_all(publishers: Iterable[Publisher], turns: int) -> None:
    """Each publishes that many turns, all at the same time."""
    await asyncio.gather(*(one.publish(turns) for one in publishers))


@asynccontextmanager
async def publishing(publishers: Sequence[Publisher]) -> AsyncIterator[None]:
    """They publish while the body runs, and end with it; the turns that are under way then have ten seconds."""
    stop = asyncio.Event()
    working = [asyncio.create_task(one.publish_until(stop)) for one in publishers]
    try:
        yield
        stop.set()
        async with asyncio.timeout(10):
            await asyncio.gather(*working)
    finally:
        for one in working:
            one.cancel()
        await asyncio.wait(working)
