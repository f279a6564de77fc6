"""Whether a server really takes turns and gives contexts: the real scripts, on keys that exist for one transaction."""

import secrets
import time
from typing import Any, Final

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

from prefold.conversation.turns import PreparedTurn, TurnKind
from prefold.errors import UnavailableError
from prefold.storage.append import Defaults, append_args, parse_append
from prefold.storage.client import redis_failures
from prefold.storage.cluster import Server, served_partitions
from prefold.storage.keys import SessionKeys
from prefold.storage.scripts import script
from prefold.storage.state import CONTEXT_FIELDS, context_of

__all__ = ["try_scripts"]

_ATTEMPTS: Final = 3
"""On a cluster: a partition that is just being moved to another server says nothing about the rest of this one."""
_DEFAULTS: Final = Defaults()


async def try_scripts(client: Redis, server: Server) -> None:
    """Returns when a turn was appended on ``server``, its context read, and all of it removed, in one transaction.

    ``client`` is the one that ``server`` was got from. Raises ``UnavailableError`` as an append would. A server of a
    cluster that serves no partition is asked for nothing but its scripts.
    """
    partitions = served_partitions(client, server)
    tried = secrets.SystemRandom().sample(partitions, min(_ATTEMPTS, len(partitions)))
    if not tried:
        with redis_failures():
            await server.client.script_load(script("append").source)
    for number, partition in enumerate(tried, 1):
        try:
            await _try(server.client, SessionKeys.canary(partition, secrets.token_hex(8)))
        except UnavailableError as error:
            if error.code != "unavailable" or number == len(tried):
                raise
        else:
            return


async def _try(redis: Redis, keys: SessionKeys) -> None:
    with redis_failures():
        try:
            replies = await _transaction(redis, keys)
        except NoScriptError:
            await redis.script_load(script("append").source)
            replies = await _transaction(redis, keys)
    first, second, body, meta, _removed = replies
    said = [parse_append("", "", [turn], reply) for turn, reply in zip(_TURNS, (first, second), strict=True)]
    context = context_of("", "", body, meta)
    if [one.turns[0].seq for one in said] != [1, 2] or context.body.count(b"\n") != 1 + len(_TURNS):
        raise UnavailableError("the session store does not give back what was appended", code="canary_failed")


async def _transaction(redis: Redis, keys: SessionKeys) -> list[Any]:
    now_ms = time.time_ns() // 1_000_000
    names = keys.script_keys()
    async with redis.pipeline(transaction=True) as pipe:
        for turn in _TURNS:
            args = append_args(keys.label, secrets.token_hex(6), [turn], _DEFAULTS, now_ms)
            pipe.evalsha(script("append").sha, len(names), *names, *args)
        pipe.get(keys.context)
        pipe.hmget(keys.meta, CONTEXT_FIELDS)
        pipe.delete(*names)
        return await pipe.execute()


def _turn(name: str) -> PreparedTurn:
    return PreparedTurn(
        id=name,
        digest=name,
        kind=TurnKind.PLAIN,
        role="user",
        envelope=b'{"id":"%s","role":"user"}' % name.encode(),
        verbatim="text",
        content=b'{"type":"text","text":"canary"}',
        short=None,
        tokens=8,
        short_tokens=8,
    )


_TURNS: Final = (_turn("first"), _turn("second"))
"""The first makes the session, the second goes the way that most turns go."""
