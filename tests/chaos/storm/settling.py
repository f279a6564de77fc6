"""What is still owed after the storm: events unread, jobs waiting or running, due entries."""

import time
from collections.abc import Mapping
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from prefold.errors import PrefoldError
from prefold.jobs import QUEUES
from prefold.storage import Sessions
from prefold.storage.events import GROUP
from prefold.storage.keys import PARTITIONS, PartitionKeys
from prefold.storage.types import DueItem

_FAR_AHEAD_MS = 2**52
_IDLE_MS = 300_000
"""Longer than any pause after a failure: what is due later waits for its session to be idle."""


async def debts(sessions: Sessions, queue: Redis) -> list[str]:
    """One line for each thing that is still to be done; empty: all is drained."""
    try:
        return [
            *await _in_queues(queue),
            *await _in_streams(sessions.client),
            *[
                line
                for item in await sessions.due_sets.due(_FAR_AHEAD_MS, 1000)
                if (line := await _owed(sessions, item))
            ],
        ]
    except (RedisError, PrefoldError, OSError) as error:
        return [f"no answer: {error}"]


async def _in_queues(queue: Redis) -> list[str]:
    """Jobs that wait, are on their way to a worker, or run."""
    found = []
    for name in QUEUES:
        waiting = await queue.llen(f"rq:queue:{name}")
        on_the_way = await queue.llen(f"rq:queue:{name}:intermediate")
        running = await queue.zcard(f"rq:wip:{name}")
        if waiting or on_the_way or running:
            found.append(f"queue {name}: {waiting} wait, {on_the_way} on the way, {running} run")
    return found


async def _in_streams(redis: Redis) -> list[str]:
    """Events that no dispatcher has read, or that none has acknowledged."""
    async with redis.pipeline(transaction=False) as pipe:
        for partition in range(PARTITIONS):
            pipe.xinfo_groups(PartitionKeys.of(partition).events)
            pipe.xinfo_stream(PartitionKeys.of(partition).events)
        replies = await pipe.execute()
    found = []
    for partition, (groups, stream) in enumerate(zip(replies[::2], replies[1::2], strict=True)):
        group: Mapping[str, Any] = next(one for one in groups if one["name"] == GROUP.encode())
        if group["pending"] or group["last-delivered-id"] != stream["last-generated-id"]:
            behind = stream["last-generated-id"] != group["last-delivered-id"]
            found.append(f"events of partition {partition}: {group['pending']} pending{', some unread' * behind}")
    return found


async def _owed(sessions: Sessions, item: DueItem) -> str:
    """Empty for an entry that may stay: the end of a living session, by age or for want of turns, and a summary that a
    recorded reason puts off.
    """
    ref = item.ref
    try:
        view = await sessions.view(ref.tenant, ref.session)
    except PrefoldError:
        view = None
    lives = view is not None and view.ref == ref
    if item.kind == "expire" and lives:
        return ""
    if item.kind == "remember" and lives and item.due_at_ms > time.time() * 1_000 + _IDLE_MS:
        return ""
    if item.kind == "compact" and lives and view is not None and view.last_build_error and view.build is None:
        return ""
    return f"due {item.kind}: {ref.tenant}/{ref.session!r} {ref.incarnation}{'' if lives else ' (a life that is over)'}"
