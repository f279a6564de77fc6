"""Whether a session is there."""

from prefold.errors import GoneError, NotFoundError
from prefold.storage.sessions import Sessions


async def is_stored(sessions: Sessions, tenant: str, session: str) -> bool:
    """True for one that is neither erased nor unheard of."""
    try:
        await sessions.view(tenant, session)
    except (NotFoundError, GoneError):
        return False
    return True
