"""Published turns made ready for the append script."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefold.conversation.blocks import (
    CALL_HEAD,
    Block,
    CallBlock,
    PlainBlock,
    ResultBlock,
    ThinkingBlock,
    block_json,
    text_block,
)
from prefold.conversation.clipping import count_clipped
from prefold.conversation.encoding import encode, encode_canonically
from prefold.conversation.ids import check_turn_id
from prefold.conversation.markers import BLOCK_TOKENS, FRAGMENT_TOKENS, TEXT_HEAD, system_note
from prefold.conversation.members import Members, read_members
from prefold.conversation.published import MAX_CALLS, Place, read_content, read_result, read_tool_calls
from prefold.conversation.short_forms import (
    SHORT_TOKENS,
    ShortResults,
    join_pieces,
    short_calls,
    short_plain,
    short_results,
)
from prefold.conversation.turns import PreparedTurn, ResultPart, Role, TurnKind
from prefold.conversation.verbatim import Verbatim, make_envelope, restore_turn
from prefold.errors import InvalidInputError
from prefold.tokens import TokenCounter

__all__ = ["digest_of", "prepare_turn", "restore_turn"]

_SAID = frozenset({"id", "role", "content"})
_SAID_TOKENS = FRAGMENT_TOKENS + BLOCK_TOKENS
DIGEST_CHARACTERS = 32
"""128 bits tell contents of one producer apart; with more the server would keep a session's ids in a dearer form."""
_DIGESTED = ("role", "content", "name", "tool_calls", "tool_call_id", "refusal")


@dataclass(frozen=True, slots=True)
class _Turn:
    """One turn on its way."""

    members: Members
    id: str
    counter: TokenCounter

    @property
    def role(self) -> Role:
        return "assistant" if self.members.role == "assistant" else "user"

    @property
    def content_field(self) -> str:
        return f"{self.members.field}.content"

    @property
    def usage(self) -> int:
        return self.members.usage_input_tokens

    def digest(self) -> str:
        return digest_of(self.members.raw)

    def envelope(self, verbatim: Verbatim) -> bytes:
        return make_envelope(self.members.raw, self.id, verbatim)


def prepare_turn(raw: object, index: int, counter: TokenCounter, new_id: Callable[[], str]) -> PreparedTurn:
    """One turn of a request, as ``strict_json`` gave it: checked, projected to Anthropic's blocks, counted and shortened.

    Takes ``{id?, role, content, name?, ts?, usage?}`` in Anthropic's or OpenAI's message format, and the members of
    ``KEPT_MEMBERS``, which only the log keeps. ``new_id`` is asked where the producer gave no id. Raises
    ``InvalidInputError`` (``field`` begins ``turns[index]``) on what no provider would take: an unknown member, empty
    content (code ``empty_content``), a block in the wrong place, a call or result that stands twice.
    """
    said = _said(raw, index, counter, new_id)
    if said is not None:
        return said
    members = read_members(raw, f"turns[{index}]")
    turn = _Turn(members, members.id or new_id(), counter)
    if members.role in ("system", "developer"):
        return _system(turn)
    blocks = _blocks(turn)
    if any(isinstance(block, ResultBlock) for block in blocks):
        return _results(turn, blocks)
    if any(isinstance(block, CallBlock) for block in blocks):
        return _calls(turn, blocks)
    return _plain(turn, blocks)


def _said(raw: object, index: int, counter: TokenCounter, new_id: Callable[[], str]) -> PreparedTurn | None:
    """The common turn, words of a user or an assistant and nothing else, by the short way; None: it is another.

    The same as the general way gives, in half of its time.
    """
    if type(raw) is not dict or not raw.keys() <= _SAID:
        return None
    role, content, given_id = raw.get("role"), raw.get("content"), raw.get("id")
    if (role != "user" and role != "assistant") or type(content) is not str or not content or content.isspace():
        return None
    turn_id = new_id() if given_id is None else check_turn_id(given_id, f"turns[{index}].id")
    json = encode(content)
    counted, shorter, measured = count_clipped(content, SHORT_TOKENS - _SAID_TOKENS, counter)
    short = TEXT_HEAD + encode(shorter) + b"}" if measured < counted else None
    return PreparedTurn(
        turn_id,
        hashlib.sha256(b'{"content":%b,"role":"%b"}' % (json, role.encode())).hexdigest()[:DIGEST_CHARACTERS],
        TurnKind.PLAIN,
        role,
        make_envelope(raw, turn_id, "text"),
        "text",
        TEXT_HEAD + json + b"}",
        short,
        _SAID_TOKENS + counted,
        _SAID_TOKENS + measured,
    )


def digest_of(raw: Mapping[str, Any]) -> str:
    """32 hex digits that are the same for the same role, content, name and tool members, whatever their order."""
    said = {name: raw[name] for name in _DIGESTED if raw.get(name) is not None}
    return hashlib.sha256(encode_canonically(said)).hexdigest()[:DIGEST_CHARACTERS]


def _blocks(turn: _Turn) -> list[Block]:
    raw, field = turn.members.raw, turn.members.field
    if turn.members.role == "tool":
        place = Place(field, "tool", turn.counter)
        return [read_result(raw["tool_call_id"], raw.get("content"), None, place)]
    blocks = read_content(raw.get("content"), Place(turn.content_field, turn.role, turn.counter))
    refusal = raw.get("refusal")
    if refusal and refusal.strip():
        blocks.append(text_block(refusal, turn.counter))
    if raw.get("tool_calls"):
        blocks += _openai_calls(turn, blocks)
    while blocks and isinstance(blocks[-1], ThinkingBlock):
        blocks.pop()  # cut off before it led to anything; no provider takes a message that ends with it
    if not blocks:
        raise InvalidInputError("content has no text", code="empty_content", field=turn.content_field)
    return blocks


def _openai_calls(turn: _Turn, blocks: Sequence[Block]) -> list[CallBlock]:
    field = f"{turn.members.field}.tool_calls"
    if any(isinstance(block, CallBlock) for block in blocks):
        raise InvalidInputError("calls stand in tool_calls or in content, not in both", field=field)
    return read_tool_calls(turn.members.raw["tool_calls"], Place(field, "assistant", turn.counter))


def _plain(turn: _Turn, blocks: Sequence[Block]) -> PreparedTurn:
    plain = [block for block in blocks if isinstance(block, PlainBlock | ThinkingBlock)]
    tokens = FRAGMENT_TOKENS + sum(block.tokens for block in plain)
    short, short_tokens = short_plain(blocks, tokens, turn.counter) or (None, tokens)
    verbatim = _verbatim(turn.members.raw, plain)
    return PreparedTurn(
        id=turn.id,
        digest=turn.digest(),
        kind=TurnKind.PLAIN,
        role=turn.role,
        envelope=turn.envelope(verbatim),
        verbatim=verbatim,
        content=b",".join(block.json for block in plain),
        short=short,
        tokens=tokens,
        short_tokens=short_tokens,
        has_thinking=any(isinstance(block, ThinkingBlock) for block in plain),
        usage_input_tokens=turn.usage,
    )


def _verbatim(raw: Mapping[str, Any], blocks: Sequence[PlainBlock | ThinkingBlock]) -> Verbatim:
    """How the published content can be had back from the blocks alone."""
    content = raw.get("content")
    if isinstance(content, str):
        return "text" if len(blocks) == 1 and content.strip() else "whole"
    if isinstance(content, list) and len(content) == len(blocks) and all(block.is_published for block in blocks):
        return "blocks"
    return "whole"


def _calls(turn: _Turn, blocks: Sequence[Block]) -> PreparedTurn:
    ids = tuple(block.call_id for block in blocks if isinstance(block, CallBlock))
    _check_distinct(turn, ids, "call")
    items = [(CALL_HEAD, block.tail) if isinstance(block, CallBlock) else block_json(block) for block in blocks]
    tokens = FRAGMENT_TOKENS + sum(block.tokens for block in blocks)
    short_pieces, short_tokens = short_calls(blocks, tokens, turn.counter) or ((), tokens)
    return PreparedTurn(
        id=turn.id,
        digest=turn.digest(),
        kind=TurnKind.CALLS,
        role=turn.role,
        envelope=turn.envelope("whole"),
        verbatim="whole",
        content=b"",
        short=None,
        tokens=tokens,
        short_tokens=short_tokens,
        call_ids=ids,
        pieces=join_pieces(items),
        short_pieces=short_pieces,
        has_thinking=any(isinstance(block, ThinkingBlock) for block in blocks),
        usage_input_tokens=turn.usage,
    )


def _results(turn: _Turn, blocks: Sequence[Block]) -> PreparedTurn:
    results = [block for block in blocks if isinstance(block, ResultBlock)]
    _check_distinct(turn, [block.call_id for block in results], "result")
    tokens = FRAGMENT_TOKENS + sum(block.tokens for block in blocks)
    short = short_results(blocks, tokens, turn.counter) or ShortResults((None,) * len(results), None, tokens)
    return PreparedTurn(
        id=turn.id,
        digest=turn.digest(),
        kind=TurnKind.RESULTS,
        role=turn.role,
        envelope=turn.envelope("whole"),
        verbatim="whole",
        content=b",".join(block.json for block in blocks if isinstance(block, PlainBlock)),
        short=short.content,
        tokens=tokens,
        short_tokens=short.tokens,
        results=tuple(map(_part, results, short.results)),
    )


def _part(block: ResultBlock, short: bytes | None) -> ResultPart:
    return ResultPart(block.call_id, block.attributes, block.content, block.is_text, short)


def _system(turn: _Turn) -> PreparedTurn:
    blocks = read_content(turn.members.raw.get("content"), Place(turn.content_field, "system", turn.counter))
    text = "\n\n".join(block.brief for block in blocks if isinstance(block, PlainBlock))
    if not text:
        raise InvalidInputError("content has no text", code="empty_content", field=turn.content_field)
    block = text_block(system_note(text), turn.counter)
    tokens = FRAGMENT_TOKENS + block.tokens
    short, short_tokens = short_plain([block], tokens, turn.counter) or (None, tokens)
    return PreparedTurn(
        id=turn.id,
        digest=turn.digest(),
        kind=TurnKind.SYSTEM,
        role=turn.role,
        envelope=turn.envelope("whole"),
        verbatim="whole",
        content=block.json,
        short=short,
        tokens=tokens,
        short_tokens=short_tokens,
        system_text=encode(text)[1:-1],
        system_tokens=turn.counter.count(text),
    )


def _check_distinct(turn: _Turn, ids: Sequence[str], what: str) -> None:
    if len(ids) > MAX_CALLS:
        raise InvalidInputError(f"a turn has at most {MAX_CALLS} {what}s", field=turn.content_field)
    if len(set(ids)) != len(ids):
        doubled = next(call_id for number, call_id in enumerate(ids) if call_id in ids[:number])
        detail = f"{what} {doubled} stands twice in the turn"
        raise InvalidInputError(detail, code=f"duplicate_{what}", field=turn.content_field)
