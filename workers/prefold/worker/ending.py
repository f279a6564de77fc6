"""The end of one life of a session: whatever names it goes, and every store is read again before it is struck off."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

import structlog

from prefold.errors import GoneError, NotFoundError
from prefold.jobs.dead_letters import DeadLetters
from prefold.storage import Sessions
from prefold.storage.ingest import IngestStreams
from prefold.storage.ingest_letters import IngestLetters
from prefold.storage.keys import SessionKeys, TenantKeys, UserKeys
from prefold.storage.limits import ERASE_GRACE
from prefold.storage.store_files import FileKind, StoreFiles
from prefold.storage.traces import SessionTraces
from prefold.storage.types import SessionRef

log = structlog.get_logger(__name__)


class ForgettingIndex(Protocol):
    """The vectors, as an end needs them."""

    async def forget(self, tenant: str, *, session: str, incarnation: str) -> int:
        """Deletes a life's vectors in the collections of all embedders; how many are left. ``UnavailableError``."""
        ...


class NamingJobs(Protocol):
    """The job queue, as an end needs it: calls block and raise ``UnavailableError``. See ``JobQueue``."""

    def jobs_of(self, tenant: str, session: str) -> int: ...
    def forget_jobs(self, tenant: str, session: str) -> int: ...


class ForgettingMemory(Protocol):
    """What is known of users, as an end needs it."""

    async def forget(self, ref: SessionRef, user: str) -> None:
        """Takes away what is known of ``user`` from this life alone, vectors included. ``UnavailableError``."""
        ...


class FreshFiles:
    """Knows whether the session store's files were written anew since an erasure."""

    def __init__(self, files: StoreFiles, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._files = files
        self._clock = clock
        self._started: dict[tuple[str, FileKind], float] = {}

    async def are_newer(self, *keys: str) -> bool:
        """True once a rewrite of each file of the servers of ``keys`` has begun after the erasure.

        Starts it; False while an older one runs.

        Whoever answered the erasure has asked for one too, but may have died before it could begin.
        """
        places = {self._files.place(key): key for key in keys}
        return all([await self._are_newer(key) for key in places.values()])

    async def _are_newer(self, key: str) -> bool:
        kept = await self._files.kept(key)
        wanted: dict[FileKind, bool] = {"log": bool(kept.log), "snapshot": bool(kept.snapshot)}
        return all([await self._is_newer(kind, key) for kind, is_kept in wanted.items() if is_kept])

    async def _is_newer(self, kind: FileKind, key: str) -> bool:
        place = self._files.place(key), kind
        begun = self._started.get(place)
        # An erasure is followed up a grace after it, so a rewrite within the last grace is the younger one.
        if begun is not None and self._clock() - begun < ERASE_GRACE.total_seconds():
            return True
        outcome = await self._files.write_anew(kind, key)
        if outcome == "started":
            self._started[place] = self._clock()
        return outcome != "under_way"


class Ending:
    """Ends lives whose time has come, and follows up those that were erased. Safe to repeat."""

    def __init__(
        self,
        stored: Sessions,
        index: ForgettingIndex,
        jobs: NamingJobs,
        files: FreshFiles,
        memory: ForgettingMemory | None = None,
    ) -> None:
        self._stored = stored
        self._traces = SessionTraces(stored.client)
        self._letters = DeadLetters(stored.client)
        self._published = IngestStreams(stored.client)
        self._refused = IngestLetters(stored.client)
        self._index = index
        self._jobs = jobs
        self._files = files
        self._memory = memory

    async def end(self, ref: SessionRef) -> bool:
        """True when nothing is left of this life, or it goes on. Else it stays due, and is looked at again later."""
        was_erased = ref.incarnation in await self._traces.ended(ref.tenant, ref.session)
        if not await self._stored.expire(ref):
            return True
        user = await self._stored.erased_user(ref)
        left = await self._remove(ref, user)
        keys = [SessionKeys.of(ref.tenant, ref.session).meta]
        keys += [TenantKeys.of(ref.tenant).ingest] if await self._published.was_used(ref.tenant) else []
        keys += [UserKeys.of(ref.tenant, user).meta] if user else []
        if was_erased and not await self._files.are_newer(*keys):
            left["files"] = 1
        if any(left.values()):
            log.warning("session_not_ended", tenant=ref.tenant, session=ref.session, **left)
            return False
        await self._stored.unlist(ref)
        # The due entry goes last: a crash before it repeats everything.
        await self._stored.end_expiry(ref)
        return True

    async def _remove(self, ref: SessionRef, user: str | None) -> dict[str, int]:
        """Removes what names the life; what a second look finds, by store."""
        tenant, session = ref.tenant, ref.session
        # Facts of one that ended by its age stay: they are the user's.
        if self._memory is not None and user:
            await self._memory.forget(ref, user)
        vectors = await self._index.forget(tenant, session=session, incarnation=ref.incarnation)
        await self._traces.remove(tenant, session)
        for letter in await self._letters.letters(tenant=tenant, session=session):
            if letter.incarnation == ref.incarnation:
                await self._letters.release(letter)
        if await self._is_erased(tenant, session):  # else what is published is for a new life of it
            await self._published.forget(tenant, session)
            await self._refused.erase(tenant, session)
        await asyncio.to_thread(self._jobs.forget_jobs, tenant, session)
        found = await self._traces.look(tenant, session)
        left = {"vectors": vectors, "events": found.events, "due": found.due}
        if not found.is_reopened:  # else these may be of the new life
            left["commands"] = found.logged_commands or 0
            left["jobs"] = await asyncio.to_thread(self._jobs.jobs_of, tenant, session)
        return left

    async def _is_erased(self, tenant: str, session: str) -> bool:
        """Whether somebody wanted it gone, and has not opened it anew."""
        try:
            await self._stored.view(tenant, session)
        except GoneError:
            return True
        except NotFoundError:
            pass
        return False
