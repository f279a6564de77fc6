"""Shapes of the calls about a session's pinned state."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from prefold.gateway.answers import Count
from prefold.pinned.state import EntityName, PinnedState, PinnedText, PlanStep

ProposalId = Annotated[str, Meta(pattern="^[0-9a-f]{18}$")]


class StatePatch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A JSON merge patch (RFC 7396): ``null`` removes, lists are replaced whole, entities are merged one by one."""

    goal: PinnedText | UnsetType | None = UNSET
    constraints: list[PinnedText] | UnsetType | None = UNSET
    entities: dict[EntityName, PinnedText | None] | UnsetType | None = UNSET
    decisions: list[PinnedText] | UnsetType | None = UNSET
    plan: list[PlanStep] | UnsetType | None = UNSET


class ProposalTurn(Struct, frozen=True, kw_only=True):
    """A turn that a proposal came from."""

    turn_id: str
    seq: Count


class StateProposal(Struct, frozen=True, kw_only=True):
    """An entry that a worker proposes."""

    id: ProposalId
    field: str
    """``goal``, ``constraints``, ``decisions``, ``plan``, or ``entities.`` and a name."""
    value: str
    sources: list[ProposalTurn]
    status: Literal["proposed", "applied"]
    """``applied``: it stands in contexts already, as marked user text; never in ``system`` before it is accepted."""


class StateWritten(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The numbers of a pinned state: all that a write tells a key without the scope ``read``."""

    version: Count
    """Rises with each write of the state; 0: nothing was ever written."""
    tokens: Count
    """Raw tokens of its text in ``system``."""
    cap_tokens: Count


class StateAnswer(StateWritten, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """The pinned state as it stands. ``ETag`` is its version; a write with ``If-Match`` waits for no other's."""

    state: PinnedState
    proposals: list[StateProposal]
    """Open ones, the oldest first."""
