"""What a worker's probe says of stores, vectors, models and files; and that a store of another layout stops it."""

import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from prefold.errors import ConfigurationError
from prefold.jobs import QueueName
from prefold.stack.places import free_port
from prefold.storage.keys import LAYOUT_KEY
from prefold.storage.layout import LAYOUT
from prefold.worker.readiness import kept_layout, probed
from prefold.worker.settings import WorkerSettings
from tests.support.redis import running_redis
from tests.support.waiting import wait_until_async

ROW = {"model": "m", "input": 1, "cache_write_5m": 1, "cache_write_1h": 1, "cache_read": 1, "output": 1}


@asynccontextmanager
async def probe(queue: QueueName, *, loaded: bool = True, **given: Any) -> AsyncIterator[httpx.AsyncClient]:
    port = free_port("127.0.0.1")
    settings = WorkerSettings.model_validate({"probe_port": port, "qdrant_url": "http://127.0.0.1:9", **given})
    flag = threading.Event()
    if loaded:
        flag.set()
    async with probed(queue, settings, flag), httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        yield client


async def checks(client: httpx.AsyncClient) -> dict[str, str]:
    answer = await client.get("/readyz")
    found: dict[str, str] = answer.json()["checks"]
    assert (answer.status_code == 200) == all(state == "ok" for state in found.values())
    return found


async def test_a_worker_is_not_ready_before_its_jobs_are_loaded(redis_url: str, queue_url: str) -> None:
    async with probe("compact", loaded=False, redis_url=redis_url, queue_url=queue_url) as client:
        assert await checks(client) == {"jobs": "still loading what they need", "sessions": "ok", "queue": "ok"}


async def test_one_that_embeds_needs_the_vectors(redis_url: str, queue_url: str) -> None:
    async with probe("embed", redis_url=redis_url, queue_url=queue_url) as client:
        found = await checks(client)
        assert "cannot be reached" in found.pop("vectors")
        assert found == {"jobs": "ok", "sessions": "ok", "queue": "ok"}


async def test_one_that_asks_models_needs_its_files_of_prices_and_budgets(
    redis_url: str, queue_url: str, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"models": [ROW]}), "utf-8")
    model: dict[str, Any] = {
        "summarizer": "anthropic",
        "summarizer_model": "m",
        "ANTHROPIC_API_KEY": "sk-test",
        "prices_file": prices,
    }
    async with probe("compact", redis_url=redis_url, queue_url=queue_url, **model) as client:
        assert (await checks(client))["prices"] == "ok"
        prices.write_text("{", "utf-8")
        assert "PREFOLD_PRICES_FILE" in (await checks(client))["prices"]
        prices.unlink()
        assert "cannot read" in (await checks(client))["prices"]


async def test_another_layout_in_the_store_is_told(redis: Redis, redis_url: str, queue_url: str) -> None:
    await redis.set(LAYOUT_KEY, LAYOUT + 1)
    async with probe("compact", redis_url=redis_url, queue_url=queue_url) as client:
        assert f"holds layout {LAYOUT + 1}" in (await checks(client))["sessions"]


async def test_a_worker_does_not_start_on_a_store_of_another_layout(redis: Redis, redis_url: str) -> None:
    await redis.set(LAYOUT_KEY, LAYOUT + 1)
    stop = threading.Event()
    with pytest.raises(ConfigurationError, match="works with layout"):
        async with kept_layout(WorkerSettings.model_validate({"redis_url": redis_url}), stop):
            raise AssertionError("it started")
    assert not stop.is_set()


async def test_a_worker_that_finds_another_layout_when_the_store_is_back_stops() -> None:
    stop = threading.Event()
    with running_redis() as store:
        store.kill()
        async with kept_layout(WorkerSettings.model_validate({"redis_url": store.url}), stop) as kept:
            assert not kept.is_other
            store.start()
            async with Redis.from_url(store.url) as redis:
                await redis.set(LAYOUT_KEY, LAYOUT + 1)

            async def has_stopped() -> bool:
                return stop.is_set()

            await wait_until_async("it stops", has_stopped)
            assert kept.is_other
