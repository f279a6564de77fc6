"""What is known of a session's user, for a context read: one GET, beside the session's own read where that is possible."""

import asyncio
from collections import OrderedDict

import structlog

from prefold.assembly import ProfileInput
from prefold.errors import PrefoldError, TransientError
from prefold.facts import FactBook
from prefold.storage import Sessions
from prefold.storage.types import StoredContext

__all__ = ["ContextReads"]

log = structlog.get_logger(__name__)

_MOST_KNOWN = 65_536
"""Sessions whose user is remembered: some megabytes."""
_NOBODYS = ProfileInput()


class ContextReads:
    """Reads a stored context together with its user's profile.

    Whose a session is, is told with the context only. It is remembered from the last read, so that both reads go out
    at once; the context that comes back says whether that was right.
    """

    def __init__(self, sessions: Sessions, book: FactBook | None, *, within_seconds: float) -> None:
        self._sessions = sessions
        self._book = book
        self._within = within_seconds
        self._users: OrderedDict[tuple[str, str], str] = OrderedDict()

    async def read(self, tenant: str, session: str) -> tuple[StoredContext, ProfileInput]:
        """Raises what ``Sessions.read_context`` raises; a profile that cannot be read says why, in time."""
        known = self.user_of(tenant, session)
        if not known:
            stored = await self._sessions.read_context(tenant, session)
            profile = await self._profile(tenant, stored.user) if stored.user else _NOBODYS
        else:
            stored, profile = await asyncio.gather(
                self._sessions.read_context(tenant, session), self._profile(tenant, known)
            )
            if stored.user != known:
                profile = await self._profile(tenant, stored.user) if stored.user else _NOBODYS
        self._note(tenant, session, stored.user)
        return stored, profile

    def user_of(self, tenant: str, session: str) -> str:
        """Whose it was at its last read; empty: nobody's, or not known."""
        return self._users.get((tenant, session), "")

    def _note(self, tenant: str, session: str, user: str) -> None:
        if not user:
            self._users.pop((tenant, session), None)
            return
        self._users[tenant, session] = user
        self._users.move_to_end((tenant, session))
        if len(self._users) > _MOST_KNOWN:
            self._users.popitem(last=False)

    async def _profile(self, tenant: str, user: str) -> ProfileInput:
        if self._book is None:
            return _NOBODYS
        try:
            async with asyncio.timeout(self._within):
                found = await self._book.profile(tenant, user)
            return ProfileInput(found.text, yielded=found.yielded)
        except TimeoutError:
            log.warning("profile_too_slow", tenant=tenant)
            return ProfileInput(failure="too_slow")
        except TransientError as error:
            log.warning("profile_unavailable", tenant=tenant, reason=error.code)
            return ProfileInput(failure="unavailable")
        except PrefoldError as error:
            log.warning("profile_not_read", tenant=tenant, reason=error.code)
            return ProfileInput(failure="failed")
        except Exception as error:  # noqa: BLE001  # whatever is wrong with the profile, the context is served
            log.error("profile_failed", tenant=tenant, error=type(error).__qualname__)
            return ProfileInput(failure="failed")
