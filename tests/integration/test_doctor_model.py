"""What ``prefold doctor`` says of the model that writes the summaries."""

from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from prefold.doctor.findings import Finding
from prefold.doctor.model import look_at_model
from prefold.doctor.settings import DoctorSettings
from prefold.messages.gate import GateLimits, GateRules, Report
from prefold.messages.shared_gate import connect_gate

KEY = {"summarizer": "anthropic", "anthropic_api_key": "sk-test"}


def settings(redis_url: str, **given: Any) -> DoctorSettings:
    return DoctorSettings.model_validate({"queue_url": redis_url, **given})


async def states(redis_url: str, **given: Any) -> dict[str, str]:
    """Findings by name."""
    return {one.name: one.state for one in await look_at_model(settings(redis_url, **given))}


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


async def test_the_engine_that_asks_no_model_needs_nothing() -> None:
    assert await states("redis://127.0.0.1:1/0") == {"summarizer": "ok"}


async def test_an_engine_with_key_and_price_whose_provider_answers_is_well(redis_url: str) -> None:
    assert await states(redis_url, **KEY) == {"summarizer": "ok", "prices": "ok", "calls": "ok"}


async def test_an_engine_without_a_key_is_named_with_the_variable(redis_url: str) -> None:
    found = {one.name: one for one in await look_at_model(settings(redis_url, summarizer="anthropic"))}
    assert found["summarizer"].state == "wrong"
    assert "ANTHROPIC_API_KEY" in found["summarizer"].found


async def test_a_model_without_a_price_matters_where_there_is_a_budget(redis_url: str, tmp_path: Path) -> None:
    given = {**KEY, "summarizer_model": "my-own-model"}
    assert (await states(redis_url, **given))["prices"] == "note"
    assert (await states(redis_url, **given, summarizer_daily_budget_usd=1.0))["prices"] == "wrong"
    (tmp_path / "prices.json").write_text("{")
    assert (await states(redis_url, **given, prices_file=tmp_path / "prices.json"))["prices"] == "wrong"


async def look(redis_url: str) -> dict[str, Finding]:
    return {one.name: one for one in await look_at_model(settings(redis_url, **KEY))}


async def test_a_key_that_is_parked_and_a_model_that_is_away_are_told_until_they_are_not(redis_url: str) -> None:
    async with connect_gate(redis_url, "abcd", GateLimits(), GateRules()) as gate:
        for number in range(GateRules().failures_to_open):
            await gate.note("claude-haiku-5-5", f"c{number}", Report("trouble", why="model_overloaded"))
        found = await look(redis_url)
        assert found["claude-haiku-5-5"].state == "wrong"
        assert "model_overloaded" in found["claude-haiku-5-5"].found
        assert "key" not in found
        await gate.note("claude-haiku-5-5", "c6", Report("parked", why="model_credentials"))
        assert "model_credentials" in (await look(redis_url))["key"].found
    async with Redis.from_url(redis_url) as client:
        for key in await client.keys("pf1:model_gate:*"):
            await client.hset(key, mapping={"parked": 1000, "m:claude-haiku-5-5:open": 1000})
    assert (await look(redis_url))["calls"].state == "ok", "what is over is not told"


async def test_a_queue_that_does_not_answer_leaves_it_unknown() -> None:
    assert (await states("redis://127.0.0.1:1/0", **KEY))["calls"] == "unknown"
