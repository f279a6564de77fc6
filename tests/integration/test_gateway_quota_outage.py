"""A tenant with quotas while the store is away: its appends fail as everybody's do, and go on as everybody's do."""

import json
from pathlib import Path

from prefold.access import KeyFile, KeyRecord, keyed_hash, parse_allowances, scopes_of
from prefold.gateway.credentials import KeyRing
from prefold.gateway.guard import KeyGuard
from tests.support.gateway import Served, served_gateway
from tests.support.redis import running_redis
from tests.support.waiting import wait_until_async

SECRET = b"a secret of thirty-two bytes, say"
KEY = "pf_one_" + "x" * 43
QUOTAS = {"ann": {"turns_per_second": 1000, "tokens_per_day": 1_000_000, "sessions": 10}}


def ring(folder: Path) -> KeyRing:
    record = KeyRecord("one", "ann", scopes_of(["admin"]), keyed_hash(SECRET, KEY.encode()))
    (folder / "keys").write_bytes(KeyFile((record,), parse_allowances(QUOTAS), QUOTAS).to_bytes())
    keys = KeyRing(folder / "keys", secret=SECRET)
    keys.load()
    return keys


async def append(served: Served, session: str) -> tuple[int, str]:
    turn = {"role": "user", "content": "Hello"}
    headers = {"authorization": f"Bearer {KEY}"}
    answer = await served.client.post(f"/v1/sessions/{session}/turns", json=turn, headers=headers)
    assert answer.status_code != 503 or int(answer.headers["retry-after"]) >= 1
    return answer.status_code, json.loads(answer.content).get("code", "")


async def test_while_the_store_is_away_appends_say_so_and_afterwards_they_go_on(tmp_path: Path) -> None:
    with running_redis() as redis:
        async with served_gateway(redis.url, guard=KeyGuard(ring(tmp_path)), api_keys_file=tmp_path / "keys") as served:
            assert (await append(served, "s1"))[0] == 201
            redis.kill()
            for session in ("s1", "s2", "s1"):  # one that is counted as live, and one that is not
                status, code = await append(served, session)
                assert status == 503 and code in ("unavailable", "timeout")
            redis.start()

            async def goes_on() -> bool:
                return (await append(served, "s2"))[0] == 201

            await wait_until_async("appends go on", goes_on, timeout=20)
