"""Entries that a worker proposes. What a backend wrote always wins, and what it rejected never comes again."""

import hashlib
import unicodedata
from collections.abc import Callable, Sequence
from typing import Final, Literal

from prefold.conversation.shapes import msgspec
from prefold.pinned.rendering import one_line
from prefold.pinned.state import EntityName, PinnedState, PinnedText, PlanStep

__all__ = [
    "MOST_PROPOSALS",
    "MOST_REJECTED",
    "Proposal",
    "ProposalSource",
    "Proposed",
    "add_to",
    "is_known",
    "noted_line",
    "proposal_of",
]

MOST_PROPOSALS: Final = 20
"""Open ones of a session; further ones are not taken."""
MOST_REJECTED: Final = 500
"""Digests of rejected ones that a session remembers, the newest."""
_MOST_SOURCES: Final = 8
_MOST_CHARS: Final = 500
_ENTITY: Final = "entities."
_NOUNS: Final = {"goal": "goal", "constraints": "constraint", "decisions": "decision", "plan": "planned step"}


class ProposalSource(msgspec.Struct, frozen=True):
    """A turn that the proposal came from."""

    turn_id: str
    seq: int


class Proposal(msgspec.Struct, frozen=True):
    """An entry that waits for the backend's word. ``applied``: it stands in contexts meanwhile, as marked user text."""

    id: str
    """Follows from field and value: the same proposal has the same id."""
    field: str
    """``goal``, ``constraints``, ``decisions``, ``plan``, or ``entities.`` and a name."""
    value: str
    sources: tuple[ProposalSource, ...]
    status: Literal["proposed", "applied"] = "proposed"


class Proposed(msgspec.Struct, frozen=True):
    """What a worker found in one turn."""

    field: str
    """As in ``Proposal``."""
    value: str
    seq: int
    turn_id: str


class _Entity(msgspec.Struct):
    name: EntityName
    value: PinnedText


def proposal_of(proposed: Proposed) -> Proposal | None:
    """The proposal, on one line; None for what cannot be an entry of a state."""
    value = " ".join(proposed.value.split())
    name = proposed.field.removeprefix(_ENTITY) if proposed.field.startswith(_ENTITY) else None
    field = proposed.field if name is None else _ENTITY + " ".join(name.split())
    if len(value) > _MOST_CHARS or (name is None and field not in _NOUNS):
        return None
    try:
        msgspec.convert({"name": field.removeprefix(_ENTITY), "value": value}, _Entity)
    except msgspec.ValidationError:
        return None
    source = ProposalSource(proposed.turn_id, proposed.seq)
    return Proposal(_id_of(field, value), field, value, (source,))


def joined(one: Proposal, other: Proposal) -> Proposal:
    """One proposal with the sources of both."""
    sources = sorted({*one.sources, *other.sources}, key=lambda source: (source.seq, source.turn_id))
    return msgspec.structs.replace(one, sources=tuple(sources[-_MOST_SOURCES:]))


def is_known(state: PinnedState, proposal: Proposal) -> bool:
    """Whether the backend has written this already."""
    return _folded(proposal.value) in {_folded(text) for text in _texts(state, proposal.field)}


def is_taken(state: PinnedState, proposal: Proposal) -> bool:
    """Whether the backend has written something in this place, which then stands alone."""
    if proposal.field == "goal":
        return state.goal is not None
    name = proposal.field.removeprefix(_ENTITY)
    return proposal.field.startswith(_ENTITY) and _folded(name) in {_folded(one) for one in state.entities}


def add_to(state: PinnedState, proposal: Proposal) -> PinnedState:
    """The state with the proposal as an entry; it takes the place of a goal or an entity of that name."""
    return _ADDING.get(proposal.field, _with_entity)(state, proposal)


def noted_line(proposal: Proposal) -> str:
    """As it stands in a context while nobody has confirmed it."""
    noun = _NOUNS.get(proposal.field) or one_line(proposal.field.removeprefix(_ENTITY))
    return f"- {noun}: {one_line(proposal.value)}"


def _with_entity(state: PinnedState, proposal: Proposal) -> PinnedState:
    name = proposal.field.removeprefix(_ENTITY)
    same = next((one for one in state.entities if _folded(one) == _folded(name)), name)
    return msgspec.structs.replace(state, entities={**state.entities, same: proposal.value})


_ADDING: Final[dict[str, Callable[[PinnedState, Proposal], PinnedState]]] = {
    "goal": lambda state, one: msgspec.structs.replace(state, goal=one.value),
    "constraints": lambda state, one: msgspec.structs.replace(state, constraints=(*state.constraints, one.value)),
    "decisions": lambda state, one: msgspec.structs.replace(state, decisions=(*state.decisions, one.value)),
    "plan": lambda state, one: msgspec.structs.replace(state, plan=(*state.plan, PlanStep(one.value))),
}


def _texts(state: PinnedState, field: str) -> Sequence[str]:
    plain = {"constraints": state.constraints, "decisions": state.decisions}
    if field == "goal":
        return (state.goal,) if state.goal else ()
    if field == "plan":
        return tuple(one.step for one in state.plan)
    if field in plain:
        return plain[field]
    name = _folded(field.removeprefix(_ENTITY))
    return tuple(value for one, value in state.entities.items() if _folded(one) == name)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(".!。！")


def _id_of(field: str, value: str) -> str:
    return hashlib.blake2b(f"{_folded(field)}\n{_folded(value)}".encode(), digest_size=9).hexdigest()
