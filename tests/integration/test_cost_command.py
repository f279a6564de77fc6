"""``prefold cost``: what was spent, read from a real server."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from prefold.cost.main import main
from prefold.errors import UnavailableError
from prefold.storage import Sessions
from prefold.storage.spending import Held, Settlement
from prefold.storage.types import ModelUsage
from tests.support.messages_api import refusing
from tests.support.storage import SESSION, TENANT, append, turn

USED = ModelUsage(
    calls=3, input_tokens=1_000, cache_read_tokens=20, cache_write_tokens=30, output_tokens=40, micro_usd=1_234_567
)


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PREFOLD_DATA_DIR", str(tmp_path))


async def _spend(url: str) -> None:
    async with Redis.from_url(url) as client:
        sessions = Sessions(client)
        ref = (await append(sessions, turn("user", "Hello."))).ref
        await sessions.spending.note(ref, "a" * 12, USED)
        for tenant, days_ago in ((TENANT, 0), (TENANT, 2), ("other", 0), ("long ago", 20)):
            day = (datetime.now(UTC) - timedelta(days=days_ago)).strftime("%Y%m%d")
            held = Held(tenant, day, "a" * 12, 5)
            await sessions.spending.reserve(held, None)
            await sessions.spending.settle(held, Settlement(USED, unclear=True))


@pytest.fixture
def spent(redis_url: str) -> str:
    asyncio.run(_spend(redis_url))
    return redis_url


def test_every_tenants_days_are_told_with_their_sum(spent: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--redis-url", spent]) == 0
    head, *rows, total = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["tenant", "day", "calls"]
    assert [row.split()[0] for row in rows] == [TENANT, TENANT, "other"]
    assert rows[0].split()[2:8] == ["3", "1,000", "20", "30", "40", "1.234567"]
    assert "1 counted as estimated" in rows[0]
    assert total == "3.703701 USD in 9 calls"


def test_a_tenants_sessions_are_told_with_it(spent: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["spent", "--redis-url", spent, "--tenant", TENANT, "--days", "1", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert [(day["tenant"], day["usage"]["micro_usd"]) for day in told["days"]] == [(TENANT, 1_234_567)]
    assert [(one["session"], one["calls"]) for one in told["sessions"]] == [(SESSION, 3)]
    main(["spent", "--redis-url", spent, "--tenant", TENANT])
    assert capsys.readouterr().out.splitlines()[-1].split() == [SESSION, "3", "1,000", "20", "30", "40", "1.234567"]


def test_nothing_spent_is_nothing(redis_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--redis-url", redis_url, "--tenant", "nobody"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0.000000 USD in 0 calls"


def test_a_store_that_is_away_is_said(tmp_path: Path) -> None:
    with refusing() as nowhere, pytest.raises(UnavailableError):
        main(["--redis-url", nowhere.replace("http", "redis") + "/0"])
