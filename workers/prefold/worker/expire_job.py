"""The job that ends sessions by their age, and finishes erasures. RQ finds it by ``prefold.jobs.EXPIRE_JOB``."""

from contextlib import closing
from functools import lru_cache

import structlog

from prefold.jobs import JobQueue, decode_sessions, queue_connection
from prefold.memory.forgetting import Forgetting, create_forgetting
from prefold.storage.store_files import StoreFiles
from prefold.worker.ending import Ending, FreshFiles
from prefold.worker.runtime import Runtime, runtime
from prefold.worker.verdicts import Ended

log = structlog.get_logger(__name__)


def expire_sessions(sessions: list[list[str | int]]) -> Ended:
    """Erases each session whose time has come, and what is left anywhere of those that were erased.

    Running it twice changes nothing. Tells which sessions something is left of: they stay due, as they do when
    ``TransientError`` says that a part is away.
    """
    refs = decode_sessions(sessions)
    shared = runtime()
    stored, index, files = shared.sessions, shared.index, fresh_files_of(shared)
    with closing(JobQueue(queue_connection(shared.settings.queue_url))) as jobs:
        ending = Ending(stored, index, jobs, files, forgetting_of(shared))
        left = [ref for ref in refs if not shared.stop.is_set() and not shared.run(ending.end(ref))]
    log.info("sessions_ended", sessions=len(refs) - len(left), left=len(left))
    return Ended(undecided=frozenset(left))


@lru_cache(maxsize=1)
def fresh_files_of(shared: Runtime) -> FreshFiles:
    """One for a process: it remembers when files were written anew last."""
    return FreshFiles(StoreFiles(shared.sessions.client))


@lru_cache(maxsize=1)
def forgetting_of(shared: Runtime) -> Forgetting:
    """One for a process."""
    return create_forgetting(shared)
