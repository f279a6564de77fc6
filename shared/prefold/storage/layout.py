"""Which form of keys, packed state and jobs this code writes, and whether the store holds the same.

Processes of two layouts must never work on one store: each would read the other's numbers in the wrong places.
"""

from typing import Any, Final, cast

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from prefold.errors import ConfigurationError
from prefold.storage.client import redis_failures
from prefold.storage.events import parse_life
from prefold.storage.fields import INCARNATION_CHARACTERS, STATE_STRUCT
from prefold.storage.keys import LAYOUT_KEY, PARTITIONS, PartitionKeys, SessionKeys

__all__ = ["LAYOUT", "check_layout", "meet_layout"]

LAYOUT: Final = 1
"""Raised by every change after which code of before and after could not work side by side on one store and one queue:
other names of keys, another packed state, other arguments of scripts that read what is stored, other payloads of jobs.
``tests/e2e/test_beside_previous.py`` runs the newest commit of the same number beside this one."""


async def meet_layout(client: Redis) -> None:
    """Notes our layout in a store that has none. ``ConfigurationError``: it has another; ``UnavailableError``: away.

    Once for each process, before it reads or writes anything else. The note never ends.
    """
    with redis_failures():
        if await client.get(LAYOUT_KEY) is None:
            await _refuse_older(client)
            await _note(client)
    await check_layout(client)


async def check_layout(client: Redis) -> None:
    """``ConfigurationError`` when the store has another layout than ours. One GET."""
    with redis_failures():
        found: Any = await client.get(LAYOUT_KEY)
    if found is not None and found != b"%d" % LAYOUT:
        raise _other(found.decode(errors="replace"))


async def _note(client: Redis) -> None:
    try:
        await client.set(LAYOUT_KEY, LAYOUT, nx=True)
    except ResponseError:
        return  # full, or it cannot write now: whoever starts next notes it


async def _refuse_older(client: Redis) -> None:
    """A store that was written before layouts were noted: one session of it tells by the length of its state."""
    async with client.pipeline(transaction=False) as pipe:
        for partition in range(PARTITIONS):
            pipe.zrange(PartitionKeys.of(partition).due, 0, 0)
        replies = await pipe.execute(raise_on_error=False)
    for reply in replies:
        state = await _state_of(client, reply[0]) if isinstance(reply, list) and reply else None
        if state is not None:
            if len(state) < STATE_STRUCT.size + INCARNATION_CHARACTERS:
                raise _other("before 1")
            return


async def _state_of(client: Redis, due: bytes) -> bytes | None:
    """The packed state of the session that a due entry is of; None: it is gone, or the entry cannot be read."""
    try:
        ref = parse_life(due.decode().split(":", 1)[1])
    except (ValueError, IndexError):
        return None
    state: Any = await client.hget(SessionKeys.of(ref.tenant, ref.session).meta, "state")
    return cast("bytes | None", state)


def _other(found: str) -> ConfigurationError:
    return ConfigurationError(
        f"the session store holds layout {found} and this version of Prefold works with layout {LAYOUT}: "
        "run the version that wrote it, or give this one a store of its own (PREFOLD_REDIS_URL)",
        field="PREFOLD_REDIS_URL",
    )
