"""An answer on its way to the client, whole or as a stream, and what can befall it there."""

from typing import Any

import orjson

from tests.support.messages_api.exchange import Exchange
from tests.support.messages_api.faults import Fault
from tests.support.messages_api.streaming import error_event, events_of, with_oddities, written

_STREAM = "text/event-stream; charset=utf-8"
_JSON = "application/json"


async def at_the_edge(exchange: Exchange, fault: Fault) -> None:
    """What a machine before the API does."""
    exchange.entry.fault = fault.name
    await exchange.pause(fault.seconds)
    if fault.kind == "status":
        raise fault.error()
    if fault.kind == "html":
        await exchange.whole(fault.status, "text/html; charset=utf-8", fault.message.encode())
        return
    if fault.kind.endswith("after_headers"):
        await exchange.start(200, _JSON, 4096)
        await exchange.chunk(b'{"id":"msg_01')
    if fault.kind.startswith("hang"):
        await exchange.pause(None)
    await exchange.cut()


async def deliver(exchange: Exchange, message: dict[str, Any], fault: Fault | None, seconds: float) -> None:
    """Plain: all of it after so many seconds, for which the client waits."""
    await exchange.pause(seconds)
    data = orjson.dumps(message)
    if fault is None or fault.kind in {"none", "answer", "slow", "odd_events"}:
        await exchange.whole(200, _JSON, data)
        return
    if fault.kind == "error_event":
        raise fault.error()
    await exchange.start(200, _JSON)
    if fault.kind == "trickle":
        await _trickle(exchange, [data[at : at + 1] for at in range(len(data))], fault.seconds)
    elif fault.kind != "empty_stream":
        await exchange.chunk(data[: fault.after or len(data) // 2])
    if fault.kind == "stall":
        await exchange.pause(None)
    await exchange.end()


async def stream(exchange: Exchange, message: dict[str, Any], fault: Fault | None, seconds: float) -> None:
    """The events, the seconds spread over them."""
    events = events_of(message)
    kind = fault.kind if fault is not None else "none"
    if kind == "odd_events":
        events = with_oddities(events)
    chunks = [written(event) for event in events]
    if fault is not None and kind in {"stall", "error_event", "cut_stream"}:
        chunks = chunks[: min(fault.after, len(chunks) - 1)]
    exchange.headers["cache-control"] = "no-cache"
    await exchange.start(200, _STREAM)
    if fault is not None and kind == "trickle":
        await _trickle(exchange, [bytes((byte,)) for byte in b"".join(chunks)], fault.seconds)
    elif kind != "empty_stream":
        await _trickle(exchange, chunks, seconds / len(chunks))
    if kind == "stall":
        await exchange.pause(None)
    if fault is not None and kind == "error_event":
        error = fault.error()
        await exchange.chunk(written(error_event(error.kind, error.message, exchange.entry.request_id)))
    await exchange.end()


async def _trickle(exchange: Exchange, pieces: list[bytes], pause: float) -> None:
    if not pause:
        await exchange.chunk(b"".join(pieces))
        return
    for piece in pieces:
        await exchange.chunk(piece)
        await exchange.pause(pause)
