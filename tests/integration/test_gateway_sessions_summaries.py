"""What a session tells of its summaries over HTTP, and what of them a PUT sets, on a real Redis."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import orjson
import pytest

from prefold.client import AsyncPrefold
from prefold.conversation import check_anthropic
from prefold.gateway.summary_views import active_of
from prefold.storage.spending import Spending
from prefold.storage.types import ActiveView, BuiltSummary, HeadFragment, ModelUsage, SessionRef
from tests.support.gateway import Served, served_gateway

SESSION = "/v1/sessions/s1"
RECORD = {
    "engine": "extractive",
    "instead_of": "anthropic",
    "because": "model_parked",
    "coverage_before": 0.75,
    "coverage": 0.98,
    "covers_to": 12,
    "turns": 12,
    "request_ids": ["req_secret"],
}


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as served:
        yield served


async def put(served: Served, **body: Any) -> dict[str, Any]:
    answer = await served.client.put(SESSION, json=body)
    assert answer.status_code == 200, answer.json()
    told: dict[str, Any] = answer.json()
    return told


async def talk(served: Served, first: int, turns: int) -> dict[str, Any]:
    said = [
        {"id": f"t{n}", "role": "user" if n % 2 else "assistant", "content": f"turn {n} " + "some words " * 60}
        for n in range(first, first + turns)
    ]
    answer = await served.client.post(f"{SESSION}/turns", json={"turns": said})
    assert answer.status_code == 201, answer.json()
    told: dict[str, Any] = (await served.client.get(SESSION)).json()
    return told


async def commit_a_summary(served: Served, record: dict[str, Any]) -> None:
    ref = (await served.sessions.view("default", "s1")).ref
    ticket = await served.sessions.begin_build("default", "s1", ref.incarnation, 10_000)
    assert not isinstance(ticket, str), ticket
    content = orjson.dumps({"type": "text", "text": "[Summary] Much was said."})
    summary = BuiltSummary((HeadFragment("summary", content, 20),), json.dumps(record), record["coverage"])
    assert (await served.sessions.commit_build(ticket, summary)).outcome == "standby"


async def test_a_session_without_summaries_says_so(served: Served) -> None:
    told = await put(served)
    assert told["active"] == {
        "covers_to": 0,
        "engine": None,
        "instead_of": None,
        "because": None,
        "coverage": None,
        "coverage_before": None,
        "built_at": None,
    }
    assert (told["standby"], told["last_build_error"], told["resting_until_tokens"]) == (None, None, None)
    assert told["shared_prefix"] is None
    assert told["usage"] == {
        "calls": 0,
        "input_tokens": 0,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "output_tokens": 0,
        "cost_usd": 0.0,
    }


async def test_a_standby_tells_its_engine_why_and_its_coverage_and_nothing_of_the_provider(served: Served) -> None:
    await put(served, hard_limit_tokens=2500, soft_ratio=0.4, keep_recent_turns=2)
    await talk(served, 1, 13)
    await commit_a_summary(served, RECORD)
    told = (await served.client.get(SESSION)).json()
    shown = ("engine", "instead_of", "because", "coverage_before", "coverage")
    assert {name: told["standby"][name] for name in shown} == {name: RECORD[name] for name in shown}
    assert told["standby"]["built_at"].endswith("Z")
    assert "req_secret" not in json.dumps(told)


async def test_after_the_swap_the_same_is_told_of_the_active_summary(served: Served) -> None:
    await put(served, hard_limit_tokens=2500, soft_ratio=0.4, keep_recent_turns=2)
    await talk(served, 1, 13)
    await commit_a_summary(served, RECORD)
    told = await talk(served, 14, 8)
    assert told["swaps"] == 1
    assert told["active"]["covers_to"] > 0
    shown = ("engine", "instead_of", "because", "coverage_before", "coverage")
    assert {name: told["active"][name] for name in shown} == {name: RECORD[name] for name in shown}


@pytest.mark.parametrize("record", ["", "[]", '{"engine": 3}', "not json"])
async def test_a_record_that_cannot_be_read_is_no_reason_to_fail(served: Served, record: str) -> None:
    await put(served)
    view = replace(await served.sessions.view("default", "s1"), covers_to=4, active=ActiveView(4, record))
    assert (active_of(view).covers_to, active_of(view).engine) == (4, None)


async def test_the_threshold_is_adaptive_until_a_ratio_is_given_and_again_with_null(served: Served) -> None:
    told = await put(served)
    assert told["soft_threshold"]["adaptive"] is True
    assert 0.4 <= told["soft_threshold"]["ratio"] <= 0.85
    told = await put(served, soft_ratio=0.5)
    assert (told["soft_threshold"]["adaptive"], told["soft_threshold"]["ratio"]) == (False, 0.5)
    assert told["soft_threshold"]["tokens"] == told["limits"]["soft_threshold_tokens"] == 50_000
    told = await put(served, keep_recent_turns=3)
    assert told["soft_threshold"]["adaptive"] is False, "what a PUT does not name stays"
    told = await put(served, soft_ratio=None)
    assert told["soft_threshold"]["adaptive"] is True


async def test_the_threshold_tells_pace_and_build_time(served: Served) -> None:
    await put(served)
    told = (await talk(served, 1, 10))["soft_threshold"]
    assert told["tokens_per_minute"] > 0
    assert told["build_seconds"] >= 0


async def test_what_the_model_calls_took_is_told_in_tokens_and_dollars(served: Served) -> None:
    await put(served)
    ref = (await served.sessions.view("default", "s1")).ref
    spending = Spending(served.sessions.client)
    assert await spending.note(ref, "0" * 16, ModelUsage(1, 1000, 20_000, 300, 450, 12_345))
    assert not await spending.note(SessionRef("default", "s1", "another-life"), "1" * 16, ModelUsage(1, 1, 1, 1, 1, 1))
    usage = (await served.client.get(SESSION)).json()["usage"]
    assert usage == {
        "calls": 1,
        "input_tokens": 1000,
        "cache_read_tokens": 20_000,
        "cache_write_tokens": 300,
        "output_tokens": 450,
        "cost_usd": 0.012345,
    }


async def test_a_build_that_failed_and_a_session_that_rests_are_told(served: Served) -> None:
    await put(served, hard_limit_tokens=2500, soft_ratio=0.4, keep_recent_turns=2)
    told = await talk(served, 1, 13)
    ref = (await served.sessions.view("default", "s1")).ref
    ticket = await served.sessions.begin_build("default", "s1", ref.incarnation, 10_000)
    assert not isinstance(ticket, str)
    await served.sessions.rest_build(ticket, "no_gain, 3 in a row")
    rested = (await served.client.get(SESSION)).json()
    assert rested["last_build_error"] == "no_gain, 3 in a row"
    assert rested["resting_until_tokens"] > told["tokens"]["log"]


async def test_a_shared_prefix_is_kept_as_it_was_given_until_it_is_switched_off(served: Served) -> None:
    given = {"enabled": True, "tool_choice": {"type": "auto"}, "thinking": {"type": "adaptive", "n": 10**20}}
    told = await put(served, shared_prefix=given)
    assert told["shared_prefix"] == {"cache": "5m", "output_config": None, **given, "waits_for": "model"}
    told = await put(served, model="claude-sonnet-5-5")
    assert told["shared_prefix"]["waits_for"] is None
    assert told["shared_prefix"]["tool_choice"] == {"type": "auto"}
    settings_off: tuple[dict[str, Any] | None, ...] = ({}, None)
    for off in settings_off:
        await put(served, shared_prefix={"enabled": True, "cache": "1h"})
        assert (await put(served, shared_prefix=off))["shared_prefix"] is None
    assert (await put(served, shared_prefix={"enabled": False}))["shared_prefix"]["enabled"] is False


SETTINGS: dict[str, tuple[object, str]] = {
    "not an object": (True, "shared_prefix"),
    "no word on enabled": ({"cache": "1h"}, "shared_prefix.enabled"),
    "unknown member": ({"enabled": True, "speed": "fast"}, "shared_prefix.speed"),
    "unknown cache": ({"enabled": True, "cache": "2h"}, "shared_prefix.cache"),
    "forced tool": ({"enabled": True, "tool_choice": {"type": "tool", "name": "f"}}, "shared_prefix.tool_choice"),
    "any tool": ({"enabled": True, "tool_choice": {"type": "any"}}, "shared_prefix.tool_choice"),
    "unknown tool choice": ({"enabled": True, "tool_choice": {}}, "shared_prefix.tool_choice.type"),
    "formatted answers": (
        {"enabled": True, "output_config": {"format": {"type": "json_schema"}}},
        "shared_prefix.output_config.format",
    ),
    "thinking below nothing": (
        {"enabled": True, "thinking": {"type": "enabled", "budget_tokens": -(10**9)}},
        "shared_prefix.thinking.budget_tokens",
    ),
    "thinking without a number": (
        {"enabled": True, "thinking": {"type": "enabled", "budget_tokens": "2000"}},
        "shared_prefix.thinking.budget_tokens",
    ),
    "too large": ({"enabled": True, "thinking": {"x": "y" * 5000}}, "shared_prefix"),
}


@pytest.mark.parametrize("name", SETTINGS)
async def test_a_shared_prefix_that_could_bring_no_summary_is_refused_with_its_place(served: Served, name: str) -> None:
    given, field = SETTINGS[name]
    answer = await served.client.put(SESSION, json={"shared_prefix": given})
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.json()


@pytest.mark.parametrize("ratio", [0.39, 0.86, "0.5", True])
async def test_a_ratio_out_of_bounds_is_refused(served: Served, ratio: object) -> None:
    answer = await served.client.put(SESSION, json={"soft_ratio": ratio})
    assert (answer.status_code, answer.json()["field"]) == (422, "soft_ratio")


async def test_the_sdk_reads_what_the_gateway_tells(served: Served) -> None:
    async with AsyncPrefold("http://127.0.0.1:7077", transport=served.transport) as prefold:
        given: dict[str, Any] = {"hard_limit_tokens": 2500, "soft_ratio": 0.4, "keep_recent_turns": 2, "model": "m"}
        session = await prefold.create_session("s1", **given, shared_prefix={"enabled": True})
        assert session.soft_threshold is not None
        assert (session.soft_threshold.adaptive, session.soft_threshold.ratio) == (False, 0.4)
        assert session.shared_prefix is not None
        assert session.shared_prefix["enabled"] is True
        await talk(served, 1, 13)
        await commit_a_summary(served, RECORD)
        session = await prefold.session("s1")
        assert session.standby is not None
        assert session.standby.facts.because == "model_parked"
        assert (session.standby.facts.coverage_before, session.standby.coverage) == (0.75, 0.98)
        assert (session.active.engine, session.last_build_error, session.resting_until_tokens) == (None, None, None)
        assert session.usage is not None
        assert (session.usage.calls, session.usage.cost_usd) == (0, 0.0)
        session = await prefold.create_session("s1", soft_ratio="adaptive", shared_prefix={})
        assert session.soft_threshold is not None
        assert (session.soft_threshold.adaptive, session.shared_prefix) == (True, None)


async def test_a_context_with_breakpoints_is_sent_as_it_is_served(served: Served) -> None:
    await put(served, system="Be kind.")
    await talk(served, 1, 5)
    async with AsyncPrefold("http://127.0.0.1:7077", transport=served.transport) as prefold:
        plain, cached = await prefold.context("s1"), await prefold.context("s1", cache="1h")
    assert plain.anthropic()["system"] == cached.system == "Be kind."
    control = {"type": "ephemeral", "ttl": "1h"}
    assert cached.anthropic()["system"] == [{"type": "text", "text": "Be kind.", "cache_control": control}]
    assert cached.anthropic()["messages"][-1]["content"][-1]["cache_control"] == control
    assert check_anthropic(list(cached.messages), "Be kind.") == []
    assert plain.messages != cached.messages


async def test_breakpoints_are_of_one_format_and_one_of_two_lifetimes_and_part_of_the_tag(served: Served) -> None:
    await talk(served, 1, 3)
    tags = {
        (await served.client.get(f"{SESSION}/context{asked}")).headers["etag"]
        for asked in ("", "?cache=5m", "?cache=1h")
    }
    assert len(tags) == 3
    for asked in ("?cache=2h", "?cache=5m&format=openai", "?cache="):
        answer = await served.client.get(f"{SESSION}/context{asked}")
        assert (answer.status_code, answer.json()["field"]) == (422, "cache")
