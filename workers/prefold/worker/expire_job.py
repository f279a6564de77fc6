"""The job that ends sessions by their age, and finishes erasures. RQ finds it by ``prefold.jobs.EXPIRE_JOB``."""

import structlog

from prefold.jobs import decode_sessions
from prefold.storage.types import SessionRef
from prefold.worker.runtime import Runtime, runtime

log = structlog.get_logger(__name__)


def expire_sessions(sessions: list[list[str]]) -> None:
    """Erases each session whose time has come, its vectors too. Running it twice changes nothing.

    Raises ``TransientError`` when a part is away; the sessions stay due.
    """
    refs = decode_sessions(sessions)
    shared = runtime()
    ended = sum(shared.run(_end(shared, ref)) for ref in refs if not shared.stop.is_set())
    log.info("sessions_ended", sessions=ended)


async def _end(shared: Runtime, ref: SessionRef) -> bool:
    if not await shared.sessions.expire(ref):
        return False
    # The due entry goes last: a crash before it repeats the deletion.
    await shared.turn_store.delete(ref.tenant, session=ref.session, incarnation=ref.incarnation)
    await shared.sessions.end_expiry(ref)
    return True
