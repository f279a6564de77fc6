"""What is known of a user goes with the session that it came from."""

from functools import partial

from prefold.facts import FactBook
from prefold.memory.derived_vectors import DerivedVectors, UserFacts
from prefold.memory.opening import open_store
from prefold.memory.ports import FactRows
from prefold.memory.undoing import withdraw_life
from prefold.storage.types import SessionRef
from prefold.worker.runtime import Runtime

__all__ = ["Forgetting", "create_forgetting"]


class Forgetting:
    """For whoever follows up an erasure: a worker may have learnt from the session at that moment. Twice is harmless."""

    def __init__(self, facts: FactRows, vectors: DerivedVectors) -> None:
        self._facts = facts
        self._vectors = vectors

    async def forget(self, ref: SessionRef, user: str) -> None:
        """Takes away what is known of ``user`` from this life alone, vectors included. ``UnavailableError``."""
        await withdraw_life(self._facts, ref, user)
        await self._vectors.of_user(ref.tenant, user)
        await self._vectors.forget_user_without_facts(ref.tenant, user)


def create_forgetting(shared: Runtime) -> Forgetting:
    """Of this process."""
    sessions = shared.sessions
    book = FactBook(sessions.users, shared.counter)
    facts = UserFacts(sessions.users, book, shared.now_ms)
    return Forgetting(book, DerivedVectors(sessions, facts, partial(open_store, shared)))
