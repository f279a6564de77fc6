"""What a session stores of its pinned state, and each way in which it changes."""

from collections.abc import Iterable, Sequence

from prefold.conversation.shapes import msgspec
from prefold.errors import InvalidInputError, NotFoundError
from prefold.pinned.capping import checked, tokens_of
from prefold.pinned.proposals import (
    MOST_PROPOSALS,
    MOST_REJECTED,
    Proposal,
    Proposed,
    add_to,
    is_known,
    is_taken,
    joined,
    noted_line,
    proposal_of,
)
from prefold.pinned.rendering import rendered
from prefold.pinned.state import NO_STATE, PinnedState, document_of
from prefold.storage.memory_types import TurnSpan
from prefold.tokens import TokenCounter

__all__ = [
    "Pinned",
    "accepted",
    "copied_without",
    "decode",
    "encode",
    "rejected",
    "with_proposals",
    "with_state",
    "without_turns",
]


class Pinned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state with its text and with what was proposed."""

    state: PinnedState = NO_STATE
    text: str = ""
    """What stands in ``system`` after the prompt that the backend registered; empty for an empty state."""
    tokens: int = 0
    """Raw, of ``text``."""
    proposals: tuple[Proposal, ...] = ()
    """Open ones, by id as they came."""
    noted_text: str = ""
    """Applied proposals, a line each: only ever marked user text."""
    noted_tokens: int = 0
    """Raw, of ``noted_text``."""
    rejected: tuple[str, ...] = ()
    """Ids of proposals that must not come again."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Pinned)


def decode(body: bytes) -> Pinned:
    """From what ``encode`` gave; nothing is an empty state."""
    return _decoder.decode(body) if body else Pinned()


def encode(pinned: Pinned) -> bytes:
    """As a session stores it; empty when there is nothing to store."""
    return _encoder.encode(pinned) if pinned != Pinned() else b""


def with_state(pinned: Pinned, state: PinnedState, *, apply: bool, counter: TokenCounter, cap_tokens: int) -> Pinned:
    """The backend's own write. Raises ``StateTooLongError``; proposals never keep it from fitting."""
    tokens = checked(state, counter, cap_tokens)
    written = msgspec.structs.replace(pinned, state=state, text=rendered(state), tokens=tokens)
    return _settled(written, pinned.proposals, apply, counter, cap_tokens)


def with_proposals(
    pinned: Pinned, proposed: Iterable[Proposed], *, apply: bool, counter: TokenCounter, cap_tokens: int
) -> Pinned:
    """With what a worker proposes, as long as there is room; the same again changes nothing.

    ``apply``: they stand in contexts at once, marked, unless the backend wrote something in their place.
    """
    open_ones = {one.id: one for one in pinned.proposals}
    for one in filter(None, map(proposal_of, proposed)):
        if one.id in open_ones:
            open_ones[one.id] = joined(open_ones[one.id], one)
        elif one.id not in pinned.rejected and len(open_ones) < MOST_PROPOSALS:
            open_ones[one.id] = one
    return _settled(pinned, tuple(open_ones.values()), apply, counter, cap_tokens)


def accepted(pinned: Pinned, proposal_id: str, *, apply: bool, counter: TokenCounter, cap_tokens: int) -> Pinned:
    """The proposal becomes the backend's own entry. Raises ``NotFoundError``, ``InvalidInputError``."""
    state = add_to(pinned.state, _found(pinned, proposal_id))
    try:
        msgspec.convert(document_of(state), PinnedState)
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"the state has no place for it: {error}", field="proposal") from error
    return with_state(pinned, state, apply=apply, counter=counter, cap_tokens=cap_tokens)


def rejected(pinned: Pinned, proposal_id: str, *, apply: bool, counter: TokenCounter, cap_tokens: int) -> Pinned:
    """The proposal goes and does not come again; twice is harmless. Raises ``NotFoundError``."""
    if proposal_id in pinned.rejected:
        return pinned
    _found(pinned, proposal_id)
    kept = tuple(one for one in pinned.proposals if one.id != proposal_id)
    remembered = (*pinned.rejected, proposal_id)[-MOST_REJECTED:]
    return _settled(msgspec.structs.replace(pinned, rejected=remembered), kept, apply, counter, cap_tokens)


def without_turns(
    pinned: Pinned, spans: Sequence[TurnSpan], *, apply: bool, counter: TokenCounter, cap_tokens: int
) -> Pinned:
    """Without what was proposed from these turns alone. What a backend wrote or accepted is its own, and stays."""
    return _settled(pinned, _not_of(pinned.proposals, spans), apply, counter, cap_tokens)


def copied_without(body: bytes, spans: Sequence[TurnSpan], counter: TokenCounter) -> bytes:
    """A stored state for a copy of the session that does not have these turns: no proposal of them is left in it."""
    pinned = decode(body)
    kept = _not_of(pinned.proposals, spans)
    if kept == pinned.proposals:
        return body
    text = "\n".join(noted_line(one) for one in kept if one.status == "applied")
    tokens = tokens_of(text, counter)
    return encode(msgspec.structs.replace(pinned, proposals=kept, noted_text=text, noted_tokens=tokens))


def _not_of(proposals: Sequence[Proposal], spans: Sequence[TurnSpan]) -> tuple[Proposal, ...]:
    """Those that other turns speak for too, without the sources in these."""
    kept = []
    for one in proposals:
        sources = tuple(source for source in one.sources if not _lies_in(source.seq, spans))
        if sources:
            kept.append(msgspec.structs.replace(one, sources=sources))
    return tuple(kept)


def _lies_in(seq: int, spans: Sequence[TurnSpan]) -> bool:
    return any(span.first_seq <= seq <= span.last_seq for span in spans)


def _found(pinned: Pinned, proposal_id: str) -> Proposal:
    for one in pinned.proposals:
        if one.id == proposal_id:
            return one
    raise NotFoundError("there is no such proposal", code="proposal_not_found", field="proposal")


def _settled(
    pinned: Pinned, proposals: Sequence[Proposal], apply: bool, counter: TokenCounter, cap_tokens: int
) -> Pinned:
    """Drops what the backend has written, and notes what applies within the room that the state leaves."""
    lines: list[str] = []
    tokens = 0
    settled: list[Proposal] = []
    for one in proposals:
        if is_known(pinned.state, one):
            continue
        longer = tokens_of("\n".join([*lines, noted_line(one)]), counter)
        is_applied = apply and not is_taken(pinned.state, one) and pinned.tokens + longer <= cap_tokens
        if is_applied:
            lines.append(noted_line(one))
            tokens = longer
        settled.append(msgspec.structs.replace(one, status="applied" if is_applied else "proposed"))
    text = "\n".join(lines)
    return msgspec.structs.replace(pinned, proposals=tuple(settled), noted_text=text, noted_tokens=tokens)
