"""Builds that do what a test tells them, as a pool sees them."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from prefold.compaction.build import Undecided
from prefold.storage.types import BuildTicket, SessionRef
from prefold.worker.verdicts import Ended, Ongoing
from tests.support import compaction

Work = Callable[[str], Awaitable[str]]


def ref(session: str) -> SessionRef:
    return SessionRef("acme", session, "life")


async def at_once(_session: str) -> str:
    return "standby"


async def hangs(_session: str) -> str:
    return str(await asyncio.get_running_loop().create_future())


class FakeBuilds:
    """``begin`` gives each session a ticket unless it has one; what a build does is ``does``, or what its name says."""

    def __init__(self, does: Work = at_once) -> None:
        self.does = does
        self.of: dict[str, Work] = {}
        self.claims: dict[str, str | Exception] = {}
        """Instead of a ticket."""
        self.begun: Counter[str] = Counter()
        self.given_back: list[str] = []
        self.at_work: set[str] = set()
        self.most_at_work = 0

    async def begin(self, of: SessionRef) -> BuildTicket | str:
        claim = self.claims.get(of.session)
        if isinstance(claim, Exception):
            raise claim
        if claim is not None:
            return claim
        if of.session in self.at_work:
            return Undecided("busy")
        self.begun[of.session] += 1
        return compaction.ticket(10, 1_000, ref=of)

    async def build_with(self, ticket: BuildTicket) -> str:
        session = ticket.ref.session
        self.at_work.add(session)
        self.most_at_work = max(self.most_at_work, len(self.at_work))
        try:
            return await self.of.get(session, self.does)(session)
        except asyncio.CancelledError:
            self.given_back.append(session)
            raise
        finally:
            self.at_work.discard(session)


def told_by(ongoing: Ongoing) -> list[bool | Ended]:
    """All that is said of the work, now and later."""
    told: list[Any] = []
    ongoing.follow(told.append)
    return told
