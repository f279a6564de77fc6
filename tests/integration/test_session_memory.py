"""What a session takes in Redis once it has ended, and that making it fit changes nothing else."""

from redis.asyncio import Redis

from prefold.storage import Sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.memory_types import MemoryTicket
from tests.support.prepared import prepare

TENANT = "acme"
TURNS, TURN_BYTES, MOST_TIMES = 60, 600, 3.0
_SENTENCE = (
    "The parcel left the warehouse in Leipzig on day {} and waits at gate {} for its driver, who is late again. "
)


def text(number: int) -> str:
    return (_SENTENCE.format(number, number % 7) * 8)[:TURN_BYTES]


async def conversation(sessions: Sessions, name: str) -> SessionKeys:
    for number in range(TURNS):
        role = "assistant" if number % 2 else "user"
        await sessions.append(TENANT, name, [prepare(id=f"{name}-{number}", role=role, content=text(number))])
    return SessionKeys.of(TENANT, name)


async def end(sessions: Sessions, name: str) -> None:
    view = await sessions.ask_close(TENANT, name)
    ticket = await sessions.begin_memory(view.ref, lease_ms=10_000)
    assert isinstance(ticket, MemoryTicket)
    await sessions.end_memory(ticket, upto=ticket.upto, closed=True)


async def used(redis: Redis, keys: SessionKeys) -> int:
    """Bytes of its own keys; the partition's streams are capped whatever the sessions are."""
    return sum([await redis.memory_usage(key, samples=0) or 0 for key in keys.erasable()])


async def test_a_session_that_has_ended_takes_at_most_three_times_its_text(redis: Redis) -> None:
    sessions = Sessions(redis)
    keys = await conversation(sessions, "whole")
    spoken = await used(redis, keys)
    await end(sessions, "whole")
    rest = await used(redis, keys)
    assert rest < spoken
    assert rest <= MOST_TIMES * TURNS * TURN_BYTES, f"{rest / TURNS / TURN_BYTES:.2f} times"
    assert await redis.object("encoding", keys.ids) == b"listpack"  # a table for each id would cost twice as much


async def test_making_it_fit_changes_neither_words_nor_end_nor_what_comes_later(redis: Redis) -> None:
    sessions = Sessions(redis)
    keys = await conversation(sessions, "fit")
    before, ends = await context(redis, keys), await redis.pexpiretime(keys.context)
    await end(sessions, "fit")
    assert (await redis.memory_usage(keys.context) or 0) <= len(before) * 1.05 + 200
    assert (await context(redis, keys), await redis.pexpiretime(keys.context)) == (before, ends)
    added = await sessions.append(TENANT, "fit", [prepare(id="later", role="user", content="Is it there?")])
    assert added.turns[0].seq == TURNS + 1
    assert (await context(redis, keys)).startswith(before)


async def context(redis: Redis, keys: SessionKeys) -> bytes:
    found = await redis.get(keys.context)
    assert isinstance(found, bytes)
    return found
