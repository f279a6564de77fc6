"""The job that ends sessions by their age, and finishes erasures. RQ finds it by ``prefold.jobs.EXPIRE_JOB``."""

import structlog

from prefold.jobs import decode_sessions
from prefold.storage import Sessions
from prefold.storage.types import SessionRef
from prefold.worker.embed_pass import TurnStore
from prefold.worker.runtime import runtime

log = structlog.get_logger(__name__)


def expire_sessions(sessions: list[list[str | int]]) -> None:
    """Erases each session whose time has come, its vectors too. Running it twice changes nothing.

    Raises ``TransientError`` when a part is away; the sessions stay due.
    """
    refs = decode_sessions(sessions)
    shared = runtime()
    stored, vectors = shared.sessions, shared.turn_store
    ended = sum(shared.run(_end(stored, vectors, ref)) for ref in refs if not shared.stop.is_set())
    log.info("sessions_ended", sessions=ended)


async def _end(stored: Sessions, vectors: TurnStore, ref: SessionRef) -> bool:
    if not await stored.expire(ref):
        return False
    # The due entry goes last: a crash before it repeats the deletion.
    await vectors.delete(ref.tenant, session=ref.session, incarnation=ref.incarnation)
    await stored.end_expiry(ref)
    return True
