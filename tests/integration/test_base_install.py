"""The client works where only the base dependencies are installed, over HTTP and on Redis, and stores the same bytes."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from prefold.client import Prefold
from tests.support.base_only import REFUSING
from tests.support.gateway_thread import gateway_thread
from tests.support.odd_turns import ODD_TURNS
from tests.support.redis import RunningRedis

TALKING = """
import asyncio, json, sys
from prefold.client import AsyncPrefold, Prefold

gateway, redis, turns = json.loads(sys.stdin.read())
told = {}

def talk(client, session):
    client.create_session(session, hard_limit_tokens=3000, system="Be kind.", metadata={"a": 1.5e-7})
    client.append_many(session, turns)
    again = client.append_many("shared", turns)
    client.put_state(session, {"goal": "Ship", "plan": [{"step": "Pack"}]})
    client.patch_state(session, {"goal": None}, if_version=1)
    short, long = client.context(session, budget_tokens=1000), client.context(session, format="openai")
    with client.buffer(session) as buffer:
        ticket = buffer.append("user", "Thanks!", id="last")
    assert ticket.result().turns[0].seq == len(turns) + 1
    return {
        "counter": client.counter,
        "duplicates": [turn.duplicate for turn in again.turns],
        "state": client.state(session).state,
        "short": [short.tokens, len(short.left_out)],
        "long": json.dumps(long.messages[1:6]),
        "log": client.turns(session),
    }

async def talk_async():
    async with AsyncPrefold.direct(redis) as client:
        await client.append("async", "user", "Hello", id="a")
        return (await client.context("async")).anthropic()["messages"]

with Prefold.direct(redis) as client:
    told["direct"] = talk(client, "direct")
with Prefold(gateway) as client:
    told["http"] = talk(client, "http")
told["async"] = asyncio.run(talk_async())
loaded = {name.partition(".")[0] for name in sys.modules}
told["loaded"] = sorted(loaded & {"orjson", "msgspec", "tiktoken", "regex", "structlog", "pydantic", "hiredis", "numpy"})
json.dump(told, sys.stdout)
"""


@pytest.fixture
def gateway(redis_url: str) -> Iterator[str]:
    with gateway_thread(redis_url) as url:
        yield url


def test_the_base_installation_talks_both_ways_and_stores_the_same_bytes(
    gateway: str, redis_url: str, redis_server: RunningRedis
) -> None:
    with Prefold(gateway) as client:
        client.append_many("shared", ODD_TURNS)

    done = subprocess.run(
        [sys.executable, "-c", REFUSING + TALKING],
        input=json.dumps([gateway, redis_url, ODD_TURNS]),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    direct, http = told["direct"], told["http"]
    assert (told["loaded"], direct["counter"], http["counter"]) == ([], "estimate", "exact")
    for one in (direct, http):
        assert one["duplicates"] == [True] * len(ODD_TURNS)
        assert one["state"] == {"plan": [{"step": "Pack", "done": False}]}
        assert one["short"][0] <= 1000
        assert one["short"][1] > 0
    assert direct["long"] == http["long"]
    assert direct["log"] == http["log"]
    assert told["async"] == [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]


def test_importing_the_client_loads_neither_redis_nor_anything_else_of_ours() -> None:
    program = """
import sys
import prefold.client
ours = {name for name in sys.modules if name.startswith("prefold.")}
outside = {name for name in ours if not name.startswith(("prefold.client", "prefold.errors"))}
assert not outside, outside
assert not {name for name in ours if name.startswith("prefold.client.direct")}
assert "redis" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_the_client_takes_little_beside_httpx() -> None:
    program = """
import time
began = time.perf_counter()
import httpx, asyncio
middle = time.perf_counter()
import prefold.client
print((time.perf_counter() - middle) / (middle - began))
"""
    runs = [
        float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    ]
    assert min(runs) < 0.8  # 0.3 on a quiet machine; with redis or our storage in it, more than 2
