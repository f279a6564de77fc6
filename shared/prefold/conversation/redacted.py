"""What stands in place of a removed turn: its shape, and none of its words.

The ids of calls and results stay, so that the rounds around it stay whole. The shape is read leniently: whatever was
once stored can be removed, also what would be refused today.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from prefold.conversation.blocks import CALL_HEAD, PlainBlock, call_tail, call_tokens, result_of_text, text_block
from prefold.conversation.encoding import encode
from prefold.conversation.ids import check_call_id
from prefold.conversation.markers import FRAGMENT_TOKENS, REMOVED_TEXT, REMOVED_TOOL
from prefold.conversation.prepare import digest_of
from prefold.conversation.short_forms import join_pieces
from prefold.conversation.turns import PreparedTurn, ResultPart, TurnKind
from prefold.conversation.verbatim import make_envelope
from prefold.tokens import TokenCounter

_TOOL = encode(REMOVED_TOOL)
_NO_INPUT = b"{}"


class Removable(Protocol):
    """A turn of the log, as far as its shape goes."""

    @property
    def id(self) -> str: ...

    @property
    def kind(self) -> str:
        """A ``TurnKind`` value."""
        ...

    @property
    def role(self) -> str:
        """In the context: user or assistant."""
        ...

    @property
    def verbatim_json(self) -> bytes:
        """As it was published."""
        ...


@dataclass(frozen=True, slots=True)
class _Place:
    """The turn to be replaced, and what every replacement is made of."""

    stored: Removable
    published: Mapping[str, Any]
    mark: PlainBlock
    counter: TokenCounter


def redacted_turn(stored: Removable, counter: TokenCounter) -> PreparedTurn:
    """The turn that replaces ``stored``: same id, kind, role and call ids; a fixed marker instead of all it said.

    Of the other published members only ``role`` and ``ts`` stay. The log gives it back with ``"removed":true``.
    """
    place = _Place(stored, json.loads(stored.verbatim_json), text_block(REMOVED_TEXT, counter), counter)
    if stored.kind == TurnKind.CALLS:
        return _calls(place)
    if stored.kind == TurnKind.RESULTS:
        return _results(place)
    return _turn(place, place.mark.json, place.mark.tokens)


def _calls(place: _Place) -> PreparedTurn:
    ids = tuple(_call_ids(place.published))
    tails = [(CALL_HEAD, call_tail(_TOOL, _NO_INPUT))] * len(ids)
    tokens = place.mark.tokens + sum(call_tokens(one, _TOOL, _NO_INPUT, place.counter) for one in ids)
    return _turn(place, b"", tokens, call_ids=ids, pieces=join_pieces([place.mark.json, *tails]))


def _results(place: _Place) -> PreparedTurn:
    ids = list(_result_ids(place.published))
    blocks = [result_of_text(one, b"", REMOVED_TEXT, place.counter) for one in ids]
    results = tuple(ResultPart(one.call_id, one.attributes, one.content, one.is_text, None) for one in blocks)
    tokens = sum(block.tokens for block in blocks)
    # Words beside results close what they leave open: they may neither appear nor vanish.
    if _has_words(place.published):
        return _turn(place, place.mark.json, tokens + place.mark.tokens, results=results)
    return _turn(place, b"", tokens, results=results)


def _turn(
    place: _Place,
    content: bytes,
    tokens: int,
    *,
    call_ids: tuple[str, ...] = (),
    pieces: tuple[bytes, ...] = (),
    results: tuple[ResultPart, ...] = (),
) -> PreparedTurn:
    stored, published = place.stored, place.published
    said: dict[str, Any] = {"id": stored.id, "role": published["role"]}
    if published.get("ts") is not None:
        said["ts"] = published["ts"]
    said |= {"content": REMOVED_TEXT, "removed": True}
    return PreparedTurn(
        id=stored.id,
        digest=digest_of(said),
        kind=TurnKind(stored.kind),
        role="assistant" if stored.role == "assistant" else "user",
        envelope=make_envelope(said, stored.id, "whole"),
        verbatim="whole",
        content=content,
        short=None,
        tokens=FRAGMENT_TOKENS + tokens,
        short_tokens=FRAGMENT_TOKENS + tokens,
        call_ids=call_ids,
        pieces=pieces,
        results=results,
    )


def _call_ids(published: Mapping[str, Any]) -> Iterator[str]:
    for block in _blocks(published.get("content")):
        if block.get("type") == "tool_use":
            yield check_call_id(block.get("id"), "id")
    for call in published.get("tool_calls") or ():
        yield check_call_id(call.get("id"), "id")


def _result_ids(published: Mapping[str, Any]) -> Iterator[str]:
    if (answered := published.get("tool_call_id")) is not None:
        yield check_call_id(answered, "tool_call_id")
    for block in _blocks(published.get("content")):
        if block.get("type") == "tool_result":
            yield check_call_id(block.get("tool_use_id"), "tool_use_id")


def _has_words(published: Mapping[str, Any]) -> bool:
    """True when anything stands beside the results but blank text, which is left out."""
    if published["role"] == "tool":
        return False
    return any(
        block.get("type") != "tool_result" and ("text" not in block or bool(block["text"].strip()))
        for block in _blocks(published.get("content"))
    )


def _blocks(content: object) -> Sequence[Mapping[str, Any]]:
    return content if isinstance(content, list) else ()
