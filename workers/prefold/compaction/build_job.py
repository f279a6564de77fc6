"""The job of the compact queue: hands sessions over to the builds of this process."""

from functools import lru_cache
from typing import Any

from prefold.access import Allowances, WatchedFile
from prefold.compaction.build import SessionBuilder
from prefold.compaction.engines import create_engines
from prefold.compaction.pool import BuildPool
from prefold.compaction.reading.turns import TurnCache
from prefold.jobs import decode_sessions
from prefold.quotas import BuildQuotas
from prefold.storage.quotas import QuotaCounts
from prefold.worker.runtime import Runtime, runtime
from prefold.worker.verdicts import Ended


def build_summaries(sessions: list[list[Any]], *, alone: bool = False) -> Ended:
    """RQ entry. ``sessions`` as ``encode_sessions`` made it; a session that needs no summary costs one script.

    Ends when every session has its ticket, or is known not to need one; what has one goes on, see ``Ended.ongoing``.
    ``alone``: see ``BuildPool.hand_over``. Raises ``InvalidInputError`` (permanent) on a payload that is none.
    """
    refs = decode_sessions(sessions)
    shared = runtime()
    return shared.run(pool_of(shared).hand_over(refs, alone=alone))


@lru_cache(maxsize=1)
def builder_of(shared: Runtime) -> SessionBuilder:
    """One for a process: its cache of read turns is what makes a refresh cheap.

    ``ConfigurationError`` when the engine that is set cannot work.
    """
    cache = TurnCache(shared.counter)
    engines = create_engines(shared, cache, shared.counter)
    quota = _quota_of(shared)
    return SessionBuilder(
        shared.sessions, engines.primary, cache, shared.counter, fallback=engines.fallback, quota=quota
    )


def _quota_of(shared: Runtime) -> BuildQuotas | None:
    """``ConfigurationError`` when the file that is set cannot be read."""
    path = shared.settings.api_keys_file
    if path is None:
        return None
    file = WatchedFile(path)
    file.load()

    def allowances() -> Allowances:
        file.look()
        return file.content.allowances

    return BuildQuotas(QuotaCounts(shared.sessions.client), allowances)


@lru_cache(maxsize=1)
def pool_of(shared: Runtime) -> BuildPool:
    """One for a process: what it has under way ends before the runtime does."""
    pool = BuildPool(builder_of(shared), shared.stop)
    shared.outlives_jobs(pool.settle, pool.cancel)
    return pool
