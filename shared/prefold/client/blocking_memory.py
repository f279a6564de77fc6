"""The part of the blocking client that is about pinned state, a session's end, and what is known of users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from prefold.client.later import Later

if TYPE_CHECKING:
    from prefold.client import memory_calls as calls
    from prefold.client.calls import Call
    from prefold.client.memory_results import Closed, ContextRecord, DayUsage, Fact, FactPage, Graph, State
    from prefold.client.receipts import DeletedFact, ErasedSession, ErasedUser
    from prefold.client.results import JsonObject
else:
    calls = Later("prefold.client.memory_calls")

T = TypeVar("T")


class BlockingMemory:
    """Calls of ``Prefold``; they raise what its other calls raise."""

    def _send(self, call: Call[T]) -> T:
        raise NotImplementedError

    def state(self, session: str) -> State:
        """The pinned state, and what workers propose for it."""
        return self._send(calls.state(session))

    def put_state(self, session: str, state: Mapping[str, Any], *, if_version: int | None = None) -> State:
        """Replace the pinned state; over its cap it is refused (state_too_long), never cut.

        ConflictError (version_conflict): with ``if_version``, somebody wrote since.
        """
        return self._send(calls.put_state(session, state, if_version))

    def patch_state(self, session: str, patch: Mapping[str, Any], *, if_version: int | None = None) -> State:
        """Change what a JSON merge patch names: None removes, lists are replaced whole, entities merged one by one."""
        return self._send(calls.patch_state(session, patch, if_version))

    def accept_proposal(self, session: str, proposal: str) -> State:
        """A worker's proposal becomes an entry of the state."""
        return self._send(calls.accept_proposal(session, proposal))

    def reject_proposal(self, session: str, proposal: str) -> State:
        """A proposal goes, and does not come again."""
        return self._send(calls.reject_proposal(session, proposal))

    def close_session(self, session: str) -> Closed:
        """End the session: facts and summary are due at once. Repeat it to see when it is closed."""
        return self._send(calls.close(session))

    def contexts(self, session: str, *, limit: int | None = None) -> tuple[ContextRecord, ...]:
        """What the last contexts held, in numbers and ids, the newest first."""
        return self._send(calls.contexts(session, limit))

    def erase_session(self, session: str) -> ErasedSession:
        """Erase the session and everything derived from it. NotFoundError where there never was one."""
        return self._send(calls.erase_session(session))

    def facts(
        self,
        user: str,
        *,
        history: bool = False,
        category: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> FactPage:
        """A page of what is known of a user; ``history``: also of what was known."""
        return self._send(calls.facts(user, history=history, category=category, limit=limit, after=after))

    def add_fact(
        self,
        user: str,
        relation: str,
        object: str,  # noqa: A002  # the API's own word
        *,
        subject: str | None = None,
        category: str | None = None,
        confidence: float | None = None,
        expires_at: str | None = None,
        sources: Sequence[Mapping[str, str]] | None = None,
        is_entity: bool | None = None,
    ) -> Fact:
        """Add a fact in the backend's own words; the same again confirms it. ``sources``: ``session`` and ``turn_id``."""
        row: JsonObject = {"relation": relation, "object": object, "subject": subject, "category": category}
        row |= {"confidence": confidence, "expires_at": expires_at, "sources": sources, "is_entity": is_entity}
        return self._send(calls.add_fact(user, row))

    def correct_fact(
        self,
        user: str,
        fact: str,
        *,
        object: str | None = None,  # noqa: A002  # the API's own word
        relation: str | None = None,
        subject: str | None = None,
        category: str | None = None,
        confidence: float | None = None,
        expires_at: str | None = None,
        is_entity: bool | None = None,
    ) -> Fact:
        """Correct what is given of a fact; what it was stays in its history."""
        changes: JsonObject = {"object": object, "relation": relation, "subject": subject, "category": category}
        changes |= {"confidence": confidence, "expires_at": expires_at, "is_entity": is_entity}
        return self._send(calls.correct_fact(user, fact, changes))

    def delete_fact(self, user: str, fact: str) -> DeletedFact:
        """Delete a fact; it is not learnt again."""
        return self._send(calls.delete_fact(user, fact))

    def graph(self, user: str, *, entity: str | None = None, hops: int | None = None) -> Graph:
        """A user's facts as nodes and edges: all, or what lies within ``hops`` (1 or 2) of an entity."""
        return self._send(calls.graph(user, entity, hops))

    def erase_user(self, user: str) -> ErasedUser:
        """Erase a user: facts, sessions and all that was derived."""
        return self._send(calls.erase_user(user))

    def usage(self, *, days: int | None = None) -> tuple[DayUsage, ...]:
        """What the tenant's summaries took by day, today first."""
        return self._send(calls.usage(days))
