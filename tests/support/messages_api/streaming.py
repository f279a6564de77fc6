"""A message as server-sent events."""

from collections.abc import Iterator
from typing import Any

import orjson

_PIECE_CHARACTERS = 96

Event = tuple[str, dict[str, Any]]


def events_of(message: dict[str, Any]) -> list[Event]:
    """From ``message_start`` to ``message_stop``; the usage in ``message_delta`` is the whole call's."""
    usage = message.get("usage") or {}
    started = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "stop_details": None}
    started["usage"] = {**usage, "output_tokens": 1}
    events: list[Event] = [_event("message_start", message=started)]
    for index, block in enumerate(message["content"]):
        events += _block_events(index, block)
        if index == 0:
            events.insert(2, _event("ping"))
    ended = {name: message.get(name) for name in ("stop_reason", "stop_sequence", "stop_details")}
    return [*events, _event("message_delta", delta=ended, usage=usage), _event("message_stop")]


def written(event: Event) -> bytes:
    name, data = event
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(data))


def with_oddities(events: list[Event]) -> list[Event]:
    """What a client must bear: pings between all, a type that it does not know, an empty delta."""
    odd: list[Event] = []
    for event in events:
        odd += [event, _event("ping")]
    odd.insert(2, _event("weather_report", temperature=21))
    return odd


def error_event(kind: str, message: str, request_id: str) -> Event:
    return _event("error", error={"type": kind, "message": message}, request_id=request_id)


def _event(name: str, **members: Any) -> Event:
    return name, {"type": name, **members}


def _block_events(index: int, block: dict[str, Any]) -> Iterator[Event]:
    start, deltas = _parts(block)
    yield _event("content_block_start", index=index, content_block=start)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _parts(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The block as it begins, and what is added to it. A block of another type comes whole."""
    kind = block["type"]
    if kind == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
    if kind == "tool_use":
        text = orjson.dumps(block["input"]).decode()
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *_pieces(text))]
        return {**block, "input": {}}, deltas
    if kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
        signature = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signature]
    return block, []


def _pieces(text: str) -> list[str]:
    return [text[at : at + _PIECE_CHARACTERS] for at in range(0, len(text), _PIECE_CHARACTERS)]
