"""Segments in Redis: summaries of runs of turns, a hash of a session's, by level and range."""

from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis

from prefold.conversation.encoding import orjson
from prefold.storage.client import redis_failures
from prefold.storage.keys import SessionKeys
from prefold.storage.types import BuildTicket, SessionRef, StoredSegment

__all__ = ["keep_args", "read_segments"]

_BODY = ("source_hash", "prompt_version", "text", "tokens", "source_tokens", "record")


def keep_args(label: str, ticket: BuildTicket, segment: StoredSegment) -> list[str | bytes | int]:
    """ARGV of ``keep_segment.lua`` after the time."""
    field = f"{segment.level}:{segment.first_seq}-{segment.last_seq}"
    value = orjson.dumps({name: getattr(segment, name) for name in _BODY})
    return [label, ticket.ref.incarnation, ticket.epoch, field, value]


async def read_segments(client: Redis, ref: SessionRef) -> list[StoredSegment]:
    """All that this life of the session has; [] when it is over."""
    keys = SessionKeys.of(ref.tenant, ref.session)
    with redis_failures():
        async with client.pipeline(transaction=True) as pipe:
            pipe.hget(keys.meta, "incarnation")
            pipe.hgetall(keys.segments)
            incarnation, stored = await pipe.execute()
    if incarnation is None or incarnation.decode() != ref.incarnation:
        return []
    return _in_order([_segment(field.decode(), value) for field, value in stored.items()])


def _in_order(found: Sequence[StoredSegment]) -> list[StoredSegment]:
    return sorted(found, key=lambda one: (one.first_seq, one.level, one.last_seq))


def _segment(field: str, value: bytes) -> StoredSegment:
    level, _, span = field.partition(":")
    first, _, last = span.partition("-")
    body: dict[str, Any] = orjson.loads(value)
    return StoredSegment(int(level), int(first), int(last), **{name: body[name] for name in _BODY})
