"""What a session takes in Redis, and that making it fit changes nothing else."""

from collections.abc import Awaitable, Callable

import pytest
from redis.asyncio import Redis

from prefold.storage import Sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.limits import APPEND_FITTED_BYTES, MARK_FITTED_BYTES
from prefold.storage.memory_types import MemoryTicket
from prefold.storage.types import SessionOptions
from tests.support.prepared import prepare
from tests.support.storage import begin, summary

TENANT = "acme"
TURNS, TURN_BYTES, MOST_TIMES = 60, 600, 3.0
LONG_TURNS, LONG_BYTES = 30, 4_000
FITTED = 1.05
"""Room over length of a string that was made to fit."""
_SENTENCE = (
    "The parcel left the warehouse in Leipzig on day {} and waits at gate {} for its driver, who is late again. "
)


def text(number: int, size: int = TURN_BYTES) -> str:
    return (_SENTENCE.format(number, number % 7) * (size // 80))[:size]


async def conversation(sessions: Sessions, name: str, turns: int = TURNS, size: int = TURN_BYTES) -> SessionKeys:
    for number in range(turns):
        role = "assistant" if number % 2 else "user"
        await sessions.append(TENANT, name, [prepare(id=f"{name}-{number}", role=role, content=text(number, size))])
    return SessionKeys.of(TENANT, name)


async def end(sessions: Sessions, name: str) -> None:
    view = await sessions.ask_close(TENANT, name)
    ticket = await sessions.begin_memory(view.ref, lease_ms=10_000)
    assert isinstance(ticket, MemoryTicket)
    await sessions.end_memory(ticket, upto=ticket.upto, closed=True)


async def mark(sessions: Sessions, name: str) -> None:
    """As an embed worker does it, some seconds after a turn."""
    view = await sessions.view(TENANT, name)
    assert await sessions.mark_embedded(view.ref, view.head_seq, "turns_a_384") == "marked"


async def used(redis: Redis, keys: SessionKeys) -> int:
    """Bytes of its own keys; the partition's streams are capped whatever the sessions are."""
    return sum([await redis.memory_usage(key, samples=0) or 0 for key in keys.erasable()])


async def slack(redis: Redis, key: str) -> float:
    """What a string takes, over its length."""
    return (await redis.memory_usage(key) or 0) / await redis.strlen(key)


@pytest.mark.parametrize("turns", [20, 39, TURNS, 61, 90])
async def test_a_session_takes_at_most_three_times_its_text_at_any_time(redis: Redis, turns: int) -> None:
    sessions = Sessions(redis)
    keys = await conversation(sessions, "whole", turns)
    spoken = await used(redis, keys)
    assert spoken <= MOST_TIMES * turns * TURN_BYTES, f"{spoken / turns / TURN_BYTES:.2f} times"
    await end(sessions, "whole")
    rest = await used(redis, keys)
    assert rest <= MOST_TIMES * turns * TURN_BYTES, f"{rest / turns / TURN_BYTES:.2f} times"
    assert await redis.object("encoding", keys.ids) == b"listpack"  # a table for each id would cost twice as much


async def test_turns_that_come_together_and_rounds_of_tools_are_fitted_too(redis: Redis) -> None:
    sessions = Sessions(redis)
    keys = await conversation(sessions, "tools", TURNS)
    call = [{"type": "tool_use", "id": "call_1", "name": "track", "input": {}}]
    result = [{"type": "tool_result", "tool_use_id": "call_1", "content": "In Leipzig."}]
    raw = [("user", "Where is it?"), ("assistant", call), ("user", result)]
    turns = [prepare(id=f"r{at}", role=role, content=content) for at, (role, content) in enumerate(raw)]
    await sessions.append(TENANT, "tools", turns[:2])
    assert await slack(redis, keys.context) <= FITTED
    await sessions.append(TENANT, "tools", turns[2:])
    assert await slack(redis, keys.context) <= FITTED


async def test_a_standby_is_fitted_beside_its_context(redis: Redis) -> None:
    sessions = Sessions(redis)
    await sessions.open(TENANT, "both", SessionOptions(hard_limit_tokens=20_000, soft_ratio=0.4))
    keys = await conversation(sessions, "both", 80)
    view = await sessions.view(TENANT, "both")
    assert (await sessions.commit_build(await begin(sessions, view.ref), summary())).outcome == "standby"
    for number, role in ((80, "user"), (81, "assistant")):
        await sessions.append(TENANT, "both", [prepare(id=f"both-{number}", role=role, content=text(number))])
    assert max(await slack(redis, keys.context), await slack(redis, keys.next)) <= FITTED
    assert await redis.pexpiretime(keys.next) == await redis.pexpiretime(keys.context) > 0


async def test_a_server_that_refuses_the_command_takes_the_turns_all_the_same(redis: Redis, redis_url: str) -> None:
    """Its users may be of an older version."""
    await redis.execute_command("ACL", "SETUSER", "older", "on", ">pw", "~*", "&*", "+@all", "-bitop")  # type: ignore[no-untyped-call]
    try:
        async with Redis.from_url(redis_url, username="older", password="pw") as client:
            keys = await conversation(Sessions(client), "refused", 20)
            await end(Sessions(client), "refused")
        assert await redis.xlen(keys.turns) == 20
        assert await slack(redis, keys.context) > FITTED
    finally:
        await redis.execute_command("ACL", "DELUSER", "older")  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("by", [mark, end])
async def test_making_it_fit_changes_neither_words_nor_end_nor_what_comes_later(
    redis: Redis, by: Callable[[Sessions, str], Awaitable[None]]
) -> None:
    sessions = Sessions(redis)
    keys = await conversation(sessions, "fit", LONG_TURNS, LONG_BYTES)
    assert APPEND_FITTED_BYTES < await redis.strlen(keys.context) < MARK_FITTED_BYTES
    assert await slack(redis, keys.context) > FITTED  # or this says nothing
    before, ends = await context(redis, keys), await redis.pexpiretime(keys.context)
    await by(sessions, "fit")
    assert await slack(redis, keys.context) <= FITTED
    assert (await context(redis, keys), await redis.pexpiretime(keys.context)) == (before, ends)
    added = await sessions.append(TENANT, "fit", [prepare(id="later", role="user", content="Is it there?")])
    assert added.turns[0].seq == LONG_TURNS + 1
    assert (await context(redis, keys)).startswith(before)


async def context(redis: Redis, keys: SessionKeys) -> bytes:
    found = await redis.get(keys.context)
    assert isinstance(found, bytes)
    return found
