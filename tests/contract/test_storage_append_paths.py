"""The append script's fast path gives what its general path gives."""

import asyncio
import hashlib
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from prefold.storage import Defaults
from prefold.storage.append import append_args
from prefold.storage.keys import SessionKeys
from prefold.storage.scripts import Script, script
from tests.support.redis import RunningRedis
from tests.support.storage import turn

NOW = 2_000_000_000_000
DEFAULTS = Defaults(hard_limit_tokens=1500)


def general_path() -> Script:
    """The script without its fast path."""
    source = script("append").source
    start, end = source.index("do\n  local call, tag"), source.index("local OPENER = ")
    source = source[:start] + source[end:]
    return Script("append", source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


async def everything(client: Redis, keys: SessionKeys) -> dict[str, Any]:
    """All that the session's keys and its partition's hold."""
    events: Any = await client.xrange(keys.events)
    return {
        "meta": await client.hgetall(keys.meta),
        "turns": await client.xrange(keys.turns),
        "ids": await client.hgetall(keys.ids),
        "context": await client.get(keys.context),
        "next": await client.get(keys.next),
        "events": [fields for _, fields in events],
        "due": await client.zrange(keys.due, 0, -1, withscores=True),
        "ends": await client.pexpiretime(keys.context),
    }


async def run(
    server: RunningRedis, said: list[tuple[str, str, int, int]], one: Script
) -> tuple[list[bytes], dict[str, Any]]:
    server.flush()
    keys = SessionKeys.of("acme", "s1")
    async with Redis.from_url(server.url) as client:
        replies = []
        for i, (role, text, repeats, later_ms) in enumerate(said):
            published = turn(role, f"{text} " * repeats, id=f"t{i % 40}")
            args = append_args(keys.label, "abcdefabcdef", [published], DEFAULTS, f"={NOW + later_ms}")
            replies.append(await one.run(client, keys.script_keys(), args))
        return replies, await everything(client, keys)


SAID = st.lists(
    st.tuples(
        st.sampled_from(["user", "assistant"]),
        st.sampled_from(["hello", "你好", "a longer piece of text", '"quoted" \\ text\n']),
        st.integers(1, 40),
        st.sampled_from([0, 1, 90_000_000]),
    ),
    min_size=1,
    max_size=45,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=SAID)
def test_both_paths_store_and_answer_the_same(
    queue_server: RunningRedis, said: list[tuple[str, str, int, int]]
) -> None:
    fast = asyncio.run(run(queue_server, said, script("append")))
    general = asyncio.run(run(queue_server, said, general_path()))
    assert fast == general


def test_the_fast_path_is_taken_by_a_plain_turn() -> None:
    """Without this the test above could compare the general path with itself."""
    source = script("append").source
    marked = source.replace("return inc .. struct.pack(", "do return 'FAST' end return inc .. struct.pack(", 1)
    assert marked != source
