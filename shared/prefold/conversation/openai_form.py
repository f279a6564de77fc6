"""The same context as OpenAI's Chat Completions messages."""

from collections.abc import Sequence
from typing import Any

from prefold.conversation.encoding import encode
from prefold.conversation.markers import document_placeholder, image_placeholder
from prefold.conversation.project import Fragment, anthropic_messages

_Message = dict[str, Any]
_Blocks = list[dict[str, Any]]


def openai_messages(fragments: Sequence[Fragment], system: str) -> list[_Message]:
    """Messages for OpenAI and those who speak its format; ``system`` first, when there is one.

    Results become messages of role ``tool`` right after their calls and in the order of these; arguments become JSON
    text; images become ``image_url`` parts, but placeholders inside results; thinking is left out.
    """
    messages: list[_Message] = [{"role": "system", "content": system}] if system else []
    called: list[str] = []
    for message in anthropic_messages(fragments):
        if message["role"] == "assistant":
            converted = _assistant(message["content"])
            called = [call["id"] for call in converted.get("tool_calls", ())]
            messages += [converted] if len(converted) > 1 else []
        else:
            messages += _user(message["content"], called)
    return messages


def _assistant(blocks: _Blocks) -> _Message:
    message: _Message = {"role": "assistant"}
    texts = [_text_part(block) for block in blocks if block["type"] == "text"]
    calls = [_tool_call(block) for block in blocks if block["type"] == "tool_use"]
    if texts or calls:
        message["content"] = _content(texts)
    if calls:
        message["tool_calls"] = calls
    return message


def _user(blocks: _Blocks, called: Sequence[str]) -> list[_Message]:
    results = [block for block in blocks if block["type"] == "tool_result"]
    order = {call_id: number for number, call_id in enumerate(called)}
    results.sort(key=lambda block: order.get(block["tool_use_id"], len(order)))
    messages = [_tool_message(block) for block in results]
    parts = [_part(block) for block in blocks if block["type"] != "tool_result"]
    return [*messages, {"role": "user", "content": _content(parts)}] if parts else messages


def _content(parts: _Blocks) -> str | _Blocks | None:
    """A string for one text, the form that every server of this format takes; None for nothing."""
    if not parts:
        return None
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _tool_call(block: dict[str, Any]) -> dict[str, Any]:
    function = {"name": block["name"], "arguments": encode(block["input"]).decode()}
    return {"id": block["id"], "type": "function", "function": function}


def _tool_message(block: dict[str, Any]) -> _Message:
    content = block["content"]
    text = content if isinstance(content, str) else "\n".join(_plain_text(inner) for inner in content)
    return {"role": "tool", "tool_call_id": block["tool_use_id"], "content": text}


def _part(block: dict[str, Any]) -> dict[str, Any]:
    source = block.get("source", {})
    if block["type"] == "image" and source["type"] in ("url", "base64"):
        url = source["url"] if source["type"] == "url" else f"data:{source['media_type']};base64,{source['data']}"
        return {"type": "image_url", "image_url": {"url": url}}
    if block["type"] == "document" and source["type"] == "base64":
        data = f"data:{source['media_type']};base64,{source['data']}"
        return {"type": "file", "file": {"filename": block.get("title", "document"), "file_data": data}}
    return {"type": "text", "text": _plain_text(block)}


def _text_part(block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": block["text"]}


def _plain_text(block: dict[str, Any]) -> str:
    """Text of a block, or what stands for it where only text may stand."""
    if block["type"] == "text":
        text: str = block["text"]
        return text
    if block["type"] != "document":
        return image_placeholder("")
    source, placeholder = block["source"], document_placeholder(block.get("title", ""))
    if source["type"] == "text":
        return f"{placeholder}\n{source['data']}"
    if source["type"] == "content":
        return "\n".join([placeholder, *(_plain_text(inner) for inner in source["content"])])
    return placeholder
