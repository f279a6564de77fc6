"""Entries of the pinned state that a model found worth pinning. What a backend wrote always wins."""

from collections.abc import Callable, Sequence

import structlog

from prefold.errors import ConflictError, InvalidInputError
from prefold.pinned import Pinned, Proposed, StateStorage, change_state, with_proposals, without_turns
from prefold.storage.memory_types import StoredState, TurnSpan
from prefold.storage.types import SessionRef
from prefold.tokens import TokenCounter

__all__ = ["Proposing"]

log = structlog.get_logger(__name__)


class Proposing:
    """Writes proposals beside whatever else writes the state. Doing it twice changes nothing."""

    def __init__(self, storage: StateStorage, counter: TokenCounter) -> None:
        self._storage = storage
        self._counter = counter

    async def add(self, ref: SessionRef, proposed: Sequence[Proposed]) -> None:
        """Adds what is new; nothing is read without any."""
        if proposed:
            await self._change(
                ref,
                lambda pinned, stored: with_proposals(
                    pinned,
                    proposed,
                    apply=stored.proposals == "apply",
                    counter=self._counter,
                    cap_tokens=stored.cap_tokens,
                ),
            )

    async def forget(self, ref: SessionRef, spans: Sequence[TurnSpan]) -> None:
        """Takes away what was proposed from these turns alone."""
        if spans:
            await self._change(
                ref,
                lambda pinned, stored: without_turns(
                    pinned,
                    spans,
                    apply=stored.proposals == "apply",
                    counter=self._counter,
                    cap_tokens=stored.cap_tokens,
                ),
                forgets=True,
            )

    async def _change(
        self, ref: SessionRef, change: Callable[[Pinned, StoredState], Pinned], *, forgets: bool = False
    ) -> None:
        """``NotFoundError`` and ``GoneError``: that life of the session is over."""
        try:
            await change_state(
                self._storage, ref.tenant, ref.session, change, incarnation=ref.incarnation, forgets=forgets
            )
        except InvalidInputError as error:
            log.info("proposals_not_kept", reason=error.code)
        except ConflictError as error:
            if error.code != "version_conflict":
                raise
            log.info("proposals_not_kept", reason=error.code)  # who writes all the time is let be
