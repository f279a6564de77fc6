"""Content blocks as they stand in the context, with their raw tokens and the text that stands for them when room is short."""

from collections.abc import Sequence
from dataclasses import dataclass

from prefold.conversation.encoding import encode
from prefold.conversation.markers import BLOCK_TOKENS, RENAME_TOKENS, RESULT_HEAD, TEXT_HEAD, late_result_text
from prefold.tokens import TokenCounter

IMAGE_TOKENS = 1_600
"""Flat cost of an image, whatever its size: what Anthropic bills for one of about 1,200 x 1,000 pixels."""
DOCUMENT_TOKENS = 3_200
"""Flat cost of a document whose text we do not see (PDF, URL, file): two pages, each as text and as an image."""

_SIGNATURE_CHARS_A_TOKEN = 5
"""A signature carries the whole thinking encrypted: base64 (4/3) of text at about four characters a token."""

CALL_HEAD = b'{"type":"tool_use","id":"'


@dataclass(frozen=True, slots=True)
class PlainBlock:
    """Text, an image or a document."""

    json: bytes
    tokens: int
    """Raw, the block's overhead included."""
    brief: str
    """The text itself, or the placeholder of what is no text."""
    is_published: bool = False
    """The published block is exactly this one, key order included."""
    media_tokens: int = 0
    """The part of ``tokens`` that is not text: ``json`` is not to be counted then."""


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """What the model thought, signed: kept byte for byte, or left out whole."""

    json: bytes
    tokens: int
    is_published: bool


@dataclass(frozen=True, slots=True)
class CallBlock:
    """A tool call."""

    call_id: str
    name: bytes
    """A JSON string."""
    input: bytes
    """A JSON object."""
    tokens: int

    @property
    def tail(self) -> bytes:
        """What follows the id."""
        return call_tail(self.name, self.input)


@dataclass(frozen=True, slots=True)
class ResultBlock:
    """A tool result."""

    call_id: str
    attributes: bytes
    content: bytes
    """A JSON string (``is_text``), or blocks."""
    is_text: bool
    brief: str
    tokens: int
    """The most that it costs, as a result or as late text, its call renamed or not."""


Block = PlainBlock | ThinkingBlock | CallBlock | ResultBlock


def block_json(block: Block) -> bytes:
    """The block as it stands in the context; a result as that of an open call."""
    if isinstance(block, CallBlock):
        return CALL_HEAD + block.call_id.encode() + block.tail
    if isinstance(block, ResultBlock):
        content = block.content if block.is_text else b"[" + block.content + b"]"
        return _result_json(block.call_id, block.attributes, content)
    return block.json


def text_block(text: str, counter: TokenCounter, *, is_published: bool = False) -> PlainBlock:
    """A text block."""
    return PlainBlock(TEXT_HEAD + encode(text) + b"}", BLOCK_TOKENS + counter.count(text), text, is_published)


def thinking_block(
    json: bytes, text: str, signature: str, counter: TokenCounter, *, is_published: bool
) -> ThinkingBlock:
    """A thinking block; the signature counts as the thinking that it hides, where that is more than the text shows."""
    tokens = max(counter.count(text), len(signature) // _SIGNATURE_CHARS_A_TOKEN)
    return ThinkingBlock(json, BLOCK_TOKENS + tokens, is_published)


def call_block(call_id: str, name: str, arguments: object, counter: TokenCounter) -> CallBlock:
    """A tool call with the object that it was given."""
    name_json, input_json = encode(name), encode(arguments)
    return CallBlock(call_id, name_json, input_json, call_tokens(call_id, name_json, input_json, counter))


def call_tail(name: bytes, arguments: bytes) -> bytes:
    """What follows the id of a call."""
    return b'","name":' + name + b',"input":' + arguments + b"}"


def call_tokens(call_id: str, name: bytes, arguments: bytes, counter: TokenCounter) -> int:
    """Raw tokens of a call: its whole JSON and the overhead."""
    return BLOCK_TOKENS + counter.count((CALL_HEAD + call_id.encode() + call_tail(name, arguments)).decode())


def result_of_text(call_id: str, attributes: bytes, text: str, counter: TokenCounter) -> ResultBlock:
    """A result whose content is a string."""
    content = encode(text)
    tokens = result_tokens(call_id, attributes, content, [text], counter)
    return ResultBlock(call_id, attributes, content, True, text, tokens)


def result_of_blocks(
    call_id: str, attributes: bytes, blocks: Sequence[PlainBlock], counter: TokenCounter
) -> ResultBlock:
    """A result whose content is a list of blocks."""
    texts = [block for block in blocks if not block.media_tokens]
    text_json = b"[" + b",".join(block.json for block in texts) + b"]"
    tokens = result_tokens(call_id, attributes, text_json, [block.brief for block in texts], counter)
    media_tokens = sum(block.tokens for block in blocks if block.media_tokens)
    content = b",".join(block.json for block in blocks)
    brief = "\n".join(block.brief for block in blocks)
    return ResultBlock(call_id, attributes, content, False, brief, tokens + media_tokens)


def result_tokens(call_id: str, attributes: bytes, content: bytes, texts: Sequence[str], counter: TokenCounter) -> int:
    """The most raw tokens that a result costs: as a result (``content``), or as late text (``texts``, a block each)."""
    as_result = BLOCK_TOKENS + RENAME_TOKENS + counter.count(_result_json(call_id, attributes, content).decode())
    as_text = sum(BLOCK_TOKENS + counter.count(text) for text in [late_result_text(call_id), *texts])
    return max(as_result, as_text)


def _result_json(call_id: str, attributes: bytes, content: bytes) -> bytes:
    return RESULT_HEAD + call_id.encode() + b'"' + attributes + b',"content":' + content + b"}"
