"""Published content read into context blocks: Anthropic's blocks and OpenAI's parts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from prefold.conversation.blocks import (
    DOCUMENT_TOKENS,
    IMAGE_TOKENS,
    Block,
    CallBlock,
    PlainBlock,
    ResultBlock,
    call_block,
    result_of_blocks,
    result_of_text,
    text_block,
    thinking_block,
)
from prefold.conversation.encoding import encode
from prefold.conversation.ids import check_call_id, check_tool_name
from prefold.conversation.markers import (
    BLOCK_TOKENS,
    EMPTY_RESULT_TEXT,
    document_placeholder,
    image_placeholder,
)
from prefold.conversation.sources import document_source, image_source, image_source_of_url
from prefold.conversation.strict_json import parse_json_text
from prefold.errors import InvalidInputError
from prefold.tokens import TokenCounter

MAX_BLOCKS = 1_000
"""Blocks of one turn, or of one tool result."""
MAX_CALLS = 128
"""Calls, or results, of one turn: what providers let run in parallel."""

_Members = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block stands, and what its reader needs."""

    field: str
    role: str
    """``user``, ``assistant``, ``system`` or ``tool``; ``result`` inside a tool result, ``part`` inside a document."""
    counter: TokenCounter

    def at(self, name: str) -> str:
        """Path of a member."""
        return f"{self.field}.{name}"

    def refuse(self, detail: str, name: str = "type", code: str | None = None) -> InvalidInputError:
        """The error for a member."""
        return InvalidInputError(detail, field=self.at(name), code=code)


def read_content(content: object, place: Place) -> list[Block]:
    """Blocks of a turn or of a tool result; blank text is left out, so the list may be empty.

    Raises ``InvalidInputError`` naming the member that no provider would take.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [text_block(content, place.counter)] if content.strip() else []
    if not isinstance(content, list):
        raise InvalidInputError("content is a string or a list of blocks", field=place.field)
    if len(content) > MAX_BLOCKS:
        raise InvalidInputError(f"content has more than {MAX_BLOCKS} blocks", field=place.field)
    return read_blocks(content, place)


def read_blocks(content: Sequence[object], place: Place) -> list[Block]:
    """The same, of any number of blocks: a stored fragment may have more than the turn that it was made from."""
    blocks = (_read_block(block, replace(place, field=f"{place.field}[{i}]")) for i, block in enumerate(content))
    return [block for block in blocks if block is not None]


def read_result(call_id: object, content: object, is_error: object, place: Place) -> ResultBlock:
    """A tool result; ``place`` is that of the block, or of a turn of role ``tool``."""
    known_id = check_call_id(call_id, place.at("tool_call_id" if place.role == "tool" else "tool_use_id"))
    if is_error is not None and not isinstance(is_error, bool):
        raise place.refuse("is_error is true or false", "is_error")
    attributes = b',"is_error":true' if is_error else b""
    if isinstance(content, str):
        return result_of_text(known_id, attributes, content if content.strip() else EMPTY_RESULT_TEXT, place.counter)
    inner = replace(place, role="result", field=place.at("content"))
    blocks = [block for block in read_content(content, inner) if isinstance(block, PlainBlock)]
    if not blocks:
        return result_of_text(known_id, attributes, EMPTY_RESULT_TEXT, place.counter)
    return result_of_blocks(known_id, attributes, blocks, place.counter)


def read_tool_calls(value: object, place: Place) -> list[CallBlock]:
    """Calls of OpenAI's ``tool_calls``."""
    if not isinstance(value, list) or len(value) > MAX_CALLS:
        raise InvalidInputError(f"tool_calls is a list of at most {MAX_CALLS} calls", field=place.field)
    return [_openai_call(call, replace(place, field=f"{place.field}[{i}]")) for i, call in enumerate(value)]


def _openai_call(call: object, place: Place) -> CallBlock:
    if not isinstance(call, dict):
        raise InvalidInputError("a tool call is an object", field=place.field)
    kind = call.get("type", "function")
    body = call.get(kind) if kind in ("function", "custom") else None
    if not isinstance(body, dict):
        raise place.refuse("a tool call is of type function or custom and has a member of that name")
    name = check_tool_name(body.get("name"), place.at(f"{kind}.name"))
    text = body.get("arguments" if kind == "function" else "input", "")
    if not isinstance(text, str):
        raise place.refuse("the arguments of a tool call are a string", f"{kind}.arguments")
    arguments = _arguments(text) if kind == "function" else {"_raw": text}
    return call_block(check_call_id(call.get("id"), place.at("id")), name, arguments, place.counter)


def _arguments(text: str) -> dict[str, Any]:
    """The object that a model wrote, or its text where it wrote none."""
    if not text.strip():
        return {}
    try:
        value = parse_json_text(text)
    except InvalidInputError:
        return {"_raw": text}
    return value if isinstance(value, dict) else {"_raw": text}


def _read_block(block: object, place: Place) -> Block | None:
    if not isinstance(block, dict):
        raise InvalidInputError("a block is an object", field=place.field)
    kind = block.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        reason = "its provider runs that tool, and only it can continue" if _is_server_side(kind) else "not known here"
        raise place.refuse(f"block type {str(kind)[:60]!r}: {reason}", code="unsupported_block")
    allowed, read = reader
    if place.role not in allowed:
        where = "a tool result" if place.role == "result" else f"a message of the {place.role}"
        raise place.refuse(f"a {kind} block cannot stand in {where}", code="misplaced_block")
    return read(block, place)


def _is_server_side(kind: object) -> bool:
    return isinstance(kind, str) and (
        kind.endswith("_tool_result") or kind in ("server_tool_use", "mcp_tool_use", "container_upload", "compaction")
    )


def _text(block: _Members, place: Place) -> PlainBlock | None:
    name = "refusal" if block["type"] == "refusal" else "text"
    text = block.get(name)
    if not isinstance(text, str):
        raise place.refuse(f"{name} is a string", name)
    if not text.strip():
        return None
    return text_block(text, place.counter, is_published=list(block) == ["type", "text"] and block["type"] == "text")


def _image(block: _Members, place: Place) -> PlainBlock:
    source = image_source(block.get("source"), place.at("source"))
    return _image_block(source, block, place, is_published=_is_same(block, {"type": "image", "source": source}))


def _openai_image(block: _Members, place: Place) -> PlainBlock:
    given = block.get("image_url")
    url, field = (given.get("url"), "image_url.url") if isinstance(given, dict) else (given, "image_url")
    return _image_block(image_source_of_url(url, place.at(field)), block, place, is_published=False)


def _image_block(source: _Members, block: _Members, place: Place, *, is_published: bool) -> PlainBlock:
    caption = block.get("caption")
    if caption is not None and not isinstance(caption, str):
        raise place.refuse("a caption is a string", "caption")
    placeholder = image_placeholder((caption or "").strip())
    if place.role == "assistant":  # no provider takes images there
        return text_block(placeholder, place.counter)
    json = encode({"type": "image", "source": source})
    return PlainBlock(json, BLOCK_TOKENS + IMAGE_TOKENS, placeholder, is_published, IMAGE_TOKENS)


def _document(block: _Members, place: Place) -> PlainBlock:
    source, tokens = _document_source(block.get("source"), replace(place, field=place.at("source")))
    members: dict[str, Any] = {"type": "document", "source": source}
    for name in ("title", "context"):
        text = block.get(name)
        if text is not None and not isinstance(text, str):
            raise place.refuse(f"{name} is a string", name)
        if text and text.strip():
            members[name] = text
            tokens += place.counter.count(text)
    if isinstance(block.get("citations"), dict):
        members["citations"] = {"enabled": block["citations"].get("enabled") is True}
    placeholder = document_placeholder(members.get("title", ""))
    if place.role == "assistant":
        return text_block(placeholder, place.counter)
    is_published = _is_same(block, members) and source["type"] != "content"  # whose inner order of keys may be another
    return PlainBlock(encode(members), BLOCK_TOKENS + tokens, placeholder, is_published, tokens)


def _document_source(value: object, place: Place) -> tuple[_Members, int]:
    """The source and its raw tokens: those of its text where it has one, else flat."""
    if isinstance(value, dict) and value.get("type") == "content":
        inner = replace(place, role="part", field=place.at("content"))
        blocks = [block for block in read_content(value.get("content"), inner) if isinstance(block, PlainBlock)]
        if not blocks:
            raise place.refuse("a document has content", "content", "empty_content")
        source = {"type": "content", "content": [parse_json_text(block.json.decode()) for block in blocks]}
        return source, sum(block.tokens for block in blocks)
    located = document_source(value, place.field)
    return located, place.counter.count(located["data"]) if located["type"] == "text" else DOCUMENT_TOKENS


def _thinking(block: _Members, place: Place) -> Block | None:
    kind = block["type"]
    names = ("thinking", "signature") if kind == "thinking" else ("data",)
    members = {"type": kind, **{name: block.get(name) for name in names}}
    if any(value is not None and not isinstance(value, str) for value in members.values()):
        raise place.refuse(f"the members of a {kind} block are strings", names[0])
    if not members[names[-1]]:
        return None  # unsigned: no provider takes it back
    text = members.get("thinking") or ""
    members = {**members, "thinking": text} if kind == "thinking" else members
    is_published = _is_same(block, members)
    return thinking_block(encode(members), text, members[names[-1]] or "", place.counter, is_published=is_published)


def _call(block: _Members, place: Place) -> CallBlock:
    arguments = block.get("input")
    if not isinstance(arguments, dict):
        raise place.refuse("the input of a tool_use block is an object", "input")
    call_id = check_call_id(block.get("id"), place.at("id"))
    return call_block(call_id, check_tool_name(block.get("name"), place.at("name")), arguments, place.counter)


def _result(block: _Members, place: Place) -> ResultBlock:
    return read_result(block.get("tool_use_id"), block.get("content"), block.get("is_error"), place)


def _is_same(block: _Members, members: _Members) -> bool:
    return list(block) == list(members) and block == members


_Reader = Callable[[_Members, Place], Block | None]
_ANYWHERE = ("user", "assistant", "result", "part")
_READERS: dict[str, tuple[Sequence[str], _Reader]] = {
    "text": ((*_ANYWHERE, "system"), _text),
    "input_text": ((*_ANYWHERE, "system"), _text),
    "output_text": ((*_ANYWHERE, "system"), _text),
    "refusal": (("assistant",), _text),
    "image": (_ANYWHERE, _image),
    "image_url": (_ANYWHERE, _openai_image),
    "input_image": (_ANYWHERE, _openai_image),
    "document": (("user", "assistant", "result"), _document),
    "thinking": (("assistant",), _thinking),
    "redacted_thinking": (("assistant",), _thinking),
    "tool_use": (("assistant",), _call),
    "tool_result": (("user",), _result),
}
