"""Pinned state: goal, constraints, entities, decisions and plan, shown whole in every context of a session.

A backend writes it; a worker may propose entries. What the backend wrote stands in ``system``; what was only proposed
never does: where a session applies proposals, they stand as marked user text until the backend accepts them.
"""

from prefold.pinned.capping import StateTooLongError, checked, tokens_of
from prefold.pinned.proposals import Proposal, ProposalSource, Proposed
from prefold.pinned.rendering import rendered
from prefold.pinned.state import MOST_BODY_BYTES, NO_STATE, PinnedState, PlanStep, document_of, merged
from prefold.pinned.stored import (
    Pinned,
    accepted,
    copied_without,
    decode,
    encode,
    rejected,
    with_proposals,
    with_state,
    without_turns,
)
from prefold.pinned.writing import StateStorage, change_state

__all__ = [
    "MOST_BODY_BYTES",
    "NO_STATE",
    "Pinned",
    "PinnedState",
    "PlanStep",
    "Proposal",
    "ProposalSource",
    "Proposed",
    "StateStorage",
    "StateTooLongError",
    "accepted",
    "change_state",
    "checked",
    "copied_without",
    "decode",
    "document_of",
    "encode",
    "merged",
    "rejected",
    "rendered",
    "tokens_of",
    "with_proposals",
    "with_state",
    "without_turns",
]
