"""A tenant's builds of an hour are used up: the rest wait with a reason, and contexts stay within their limit."""

import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from prefold.access import Allowance, Allowances
from prefold.compaction.build import SessionBuilder
from prefold.compaction.build_job import build_summaries, builder_of, pool_of
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.errors import ConfigurationError
from prefold.jobs import encode_sessions
from prefold.quotas import BuildQuotas
from prefold.storage import Sessions, connect_sessions
from prefold.storage.quotas import QuotaCounts
from prefold.storage.types import SessionOptions, SessionRef
from prefold.tokens import load_counter
from prefold.worker.runtime import Runtime, close_runtime, install
from prefold.worker.settings import WorkerSettings
from tests.support.compaction import new_cache
from tests.support.storage import TENANT, append, turn

COUNTER = load_counter()
LIMIT = 2_000


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


async def past_the_limit(sessions: Sessions, name: str) -> SessionRef:
    await sessions.open(TENANT, name, SessionOptions(hard_limit_tokens=LIMIT))
    for number in range(60):
        role = "assistant" if number % 2 else "user"
        result = await append(
            sessions, turn(role, f"In the garden by the river, as I said. {number} " * 6), session=name
        )
        assert result.tokens <= LIMIT
    return (await sessions.view(TENANT, name)).ref


async def test_the_build_that_is_one_too_many_waits_with_its_reason_and_the_context_fits(sessions: Sessions) -> None:
    quota = BuildQuotas(QuotaCounts(sessions.client), lambda: Allowances({TENANT: Allowance(builds_per_hour=1)}))
    cache = new_cache()
    builder = SessionBuilder(sessions, ExtractiveSummarizer(cache, COUNTER), cache, COUNTER, quota=quota)
    first, second = await past_the_limit(sessions, "s1"), await past_the_limit(sessions, "s2")
    assert await builder.build(first) == "swapped"
    assert await builder.build(second) == "builds_per_hour"
    view = await sessions.view(TENANT, "s2")
    assert (view.status, view.last_build_error) == ("degraded", "builds_per_hour")
    assert await builder.build(second) == "backoff"
    assert (await append(sessions, turn("user", "And now?"), session="s2")).tokens <= LIMIT


async def test_a_worker_takes_the_quota_from_the_key_file(redis_url: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"version": 2, "keys": [], "quotas": {"*": {"builds_per_hour": 0}}}))
    shared = Runtime(WorkerSettings(redis_url=redis_url, api_keys_file=keys), threading.Event())
    install(shared)
    try:
        async with connect_sessions(redis_url) as sessions:
            ref = await past_the_limit(sessions, "s1")
            build_summaries(encode_sessions([ref]))
            shared.settle()
            assert (await sessions.view(TENANT, "s1")).last_build_error == "builds_per_hour"
    finally:
        close_runtime()
        builder_of.cache_clear()
        pool_of.cache_clear()


def test_a_key_file_that_is_set_and_not_there_does_not_start(redis_url: str, tmp_path: Path) -> None:
    shared = Runtime(WorkerSettings(redis_url=redis_url, api_keys_file=tmp_path / "none"), threading.Event())
    try:
        with pytest.raises(ConfigurationError, match="none"):
            builder_of(shared)
    finally:
        shared.close()
        builder_of.cache_clear()
