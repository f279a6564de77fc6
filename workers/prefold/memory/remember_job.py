"""The job of the memory queue: hands sessions over to what this process remembers. See ``prefold.jobs.REMEMBER_JOB``."""

from functools import lru_cache, partial
from typing import Any

from prefold.compaction.engines import Engines, create_engines
from prefold.compaction.pool import BuildPool
from prefold.compaction.reading.turns import TurnCache
from prefold.facts import FactBook
from prefold.jobs import decode_sessions
from prefold.memory.derived_vectors import DerivedVectors, UserFacts
from prefold.memory.digest import DigestWriter, SegmentsAsTheyAre
from prefold.memory.extracting import ModelExtractor
from prefold.memory.failures import Failures
from prefold.memory.learning import Learning, OfflineExtractor
from prefold.memory.opening import open_store
from prefold.memory.ports import ModelExtracts
from prefold.memory.proposing import Proposing
from prefold.memory.remembering import Parts, Remembering
from prefold.worker.runtime import Runtime, runtime
from prefold.worker.verdicts import Ended

__all__ = ["memory_of", "pool_of", "remember_sessions"]


def remember_sessions(sessions: list[list[Any]], *, alone: bool = False) -> Ended:
    """RQ entry. ``sessions`` as ``encode_sessions`` made it; one with nothing to remember costs one script.

    Ends when every session has its ticket, or is known not to need one; what has one goes on, see ``Ended.ongoing``.
    ``alone``: see ``BuildPool.hand_over``. Raises ``InvalidInputError`` (permanent) on a payload that is none.
    """
    refs = decode_sessions(sessions)
    shared = runtime()
    return shared.run(pool_of(shared).hand_over(refs, alone=alone))


@lru_cache(maxsize=1)
def memory_of(shared: Runtime) -> Remembering:
    """One for a process. ``ConfigurationError`` when the engine that is set cannot work."""
    sessions, failures = shared.sessions, Failures()
    cache = TurnCache(shared.counter)
    book = FactBook(sessions.users, shared.counter)
    engines: Engines = create_engines(shared, cache, shared.counter, segments=SegmentsAsTheyAre(sessions))
    return Remembering(
        Parts(
            storage=sessions,
            facts=book,
            users=sessions.users,
            learning=Learning(OfflineExtractor(), _model_extractor(shared), failures),
            proposing=Proposing(sessions, shared.counter),
            digests=DigestWriter(engines, cache, shared.counter),
            vectors=DerivedVectors(
                sessions, UserFacts(sessions.users, book, shared.now_ms), partial(open_store, shared)
            ),
            failures=failures,
            now_ms=shared.now_ms,
        )
    )


@lru_cache(maxsize=1)
def pool_of(shared: Runtime) -> BuildPool:
    """One for a process: what it has under way ends before the runtime does."""
    pool = BuildPool(memory_of(shared), shared.stop)
    shared.outlives_jobs(pool.settle, pool.cancel)
    return pool


def _model_extractor(shared: Runtime) -> ModelExtracts | None:
    if shared.settings.summarizer == "extractive":
        return None
    return ModelExtractor(shared.messages, shared.counter)
