"""Many workers with one key: limits, breaker, parking and budget, on real servers."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from prefold.errors import ConfigurationError, PrefoldError
from prefold.messages import (
    BudgetSpentError,
    Messages,
    ModelAwayError,
    ModelBusyError,
    ModelParkedError,
    Reply,
    connect_messages,
)
from prefold.messages.gate import GateRules
from prefold.messages.shared_gate import credential_label
from prefold.storage import Sessions
from prefold.storage.types import ModelUsage
from prefold.worker.runtime import HandedBackError, Runtime
from prefold.worker.settings import WorkerSettings
from tests.support.messages_api import Fault, Latency, MessagesApi, faults, in_process, refusing, serving, text
from tests.support.messaging import KEY, ask, summarizer_settings
from tests.support.redis import RunningRedis
from tests.support.storage import SESSION, TENANT, append, turn
from tests.support.waiting import wait_until_async

QUICK = GateRules(
    most_wait=timedelta(seconds=0.2),
    failures_to_open=4,
    open_pause=timedelta(seconds=0.3),
    park_pause=timedelta(seconds=0.3),
    probe_ends=timedelta(seconds=5),
)


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with Redis.from_url(redis_url) as client:
        yield Sessions(client)


@pytest.fixture
def api() -> MessagesApi:
    return MessagesApi(brain=lambda _: "All is well.")


@asynccontextmanager
async def workers(
    number: int, api: MessagesApi, sessions: Sessions, queue_url: str, **settings: Any
) -> AsyncIterator[list[Messages]]:
    """So many processes' worth of the model, each with connections of its own."""
    made = summarizer_settings("http://messages.fake", **settings)
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                connect_messages(made, sessions.spending, gate_url=queue_url, rules=QUICK, http_client=in_process(api))
            )
            for _ in range(number)
        ]


async def outcomes(several: Sequence[Messages], number: int, **members: Any) -> list[Reply | PrefoldError]:
    """``number`` calls at the same time, spread over the workers."""
    ended = await asyncio.gather(
        *(several[at % len(several)].ask(ask(**members)) for at in range(number)), return_exceptions=True
    )
    assert all(isinstance(one, Reply | PrefoldError) for one in ended), ended
    return [one for one in ended if isinstance(one, Reply | PrefoldError)]


async def answers(one: Messages) -> bool:
    """Whether a call comes back well."""
    try:
        await one.ask(ask())
    except PrefoldError:
        return False
    return True


async def test_two_workers_share_one_limit_of_requests(api: MessagesApi, sessions: Sessions, queue_url: str) -> None:
    async with workers(2, api, sessions, queue_url, summarizer_requests_per_minute=10) as two:
        ended = await outcomes(two, 30)
    refused = [one for one in ended if isinstance(one, ModelBusyError)]
    assert (api.journal.count, len(refused)) == (10, 20)
    assert all(one.retry_after and one.retry_after >= timedelta(seconds=5) for one in refused)
    (today,) = await sessions.spending.days(TENANT, datetime.now(UTC).date(), 1)
    assert (today.usage.calls, today.held_micro_usd) == (10, 0)


async def test_two_workers_share_one_limit_of_input_tokens(
    api: MessagesApi, sessions: Sessions, queue_url: str
) -> None:
    api.brain = lambda _: text("All is well.", usage={"input_tokens": 300})
    async with workers(2, api, sessions, queue_url, summarizer_input_tokens_per_minute=1_000) as two:
        ended = await outcomes(two, 30, input_tokens=300)
    assert api.journal.count == sum(isinstance(one, Reply) for one in ended) == 3


async def test_a_rate_limit_that_one_worker_meets_keeps_the_other_away(
    api: MessagesApi, sessions: Sessions, queue_url: str
) -> None:
    async with workers(2, api, sessions, queue_url) as (one, other):
        api.script(faults.rate_limited(60))
        for worker in (one, other):
            with pytest.raises(ModelBusyError) as caught:
                await worker.ask(ask())
            assert caught.value.retry_after is not None
            assert timedelta(seconds=59) < caught.value.retry_after < timedelta(seconds=63)
    assert api.journal.count == 1


async def test_failures_that_two_workers_meet_open_one_breaker_which_a_probe_closes(
    api: MessagesApi, sessions: Sessions, queue_url: str
) -> None:
    async with workers(2, api, sessions, queue_url) as (one, other):
        api.script(faults.server_error(), forever=True)
        codes = []
        for number in range(10):
            with pytest.raises(ModelAwayError) as caught:
                await (one, other)[number % 2].ask(ask())
            codes.append(caught.value.code)
        assert codes == ["model_unavailable"] * 4 + ["model_breaker_open"] * 6
        assert api.journal.count == 4
        api.faults.clear()
        await wait_until_async("the breaker closes", lambda: answers(other))
        assert await answers(one)


async def test_an_outage_costs_a_few_calls_however_many_ask(
    api: MessagesApi, sessions: Sessions, queue_url: str
) -> None:
    api.script(faults.overloaded(), forever=True)
    async with workers(2, api, sessions, queue_url, summarizer_calls_at_once=8) as two:
        ended = await outcomes(two, 200)
    assert all(isinstance(one, ModelAwayError) for one in ended)
    assert api.journal.count <= 4 + 2 * 8


async def test_a_refused_key_is_parked_for_all_and_comes_back_by_itself_when_it_works_again(
    api: MessagesApi, sessions: Sessions, queue_url: str
) -> None:
    api.keys = {"another"}
    async with workers(2, api, sessions, queue_url) as (one, other):
        for worker in (one, other, one):
            with pytest.raises(ModelParkedError) as caught:
                await worker.ask(ask())
            assert caught.value.code == "model_credentials"
        assert api.journal.count == 1
        api.keys = {KEY}
        await wait_until_async("the key works again", lambda: answers(other))
        assert await answers(one)


async def test_a_new_key_is_not_parked_with_the_old_one(api: MessagesApi, sessions: Sessions, queue_url: str) -> None:
    api.keys = {"sk-new"}
    async with workers(1, api, sessions, queue_url) as (old,):
        with pytest.raises(ModelParkedError):
            await old.ask(ask())
    async with workers(1, api, sessions, queue_url, ANTHROPIC_API_KEY="sk-new") as (new,):
        assert await answers(new)


async def test_a_model_that_is_gone_does_not_take_the_fallback_with_it(
    api: MessagesApi, sessions: Sessions, queue_url: str
) -> None:
    async with workers(1, api, sessions, queue_url, summarizer_model="claude-gone-1") as (one,):
        for _ in range(3):
            with pytest.raises(ModelParkedError) as caught:
                await one.ask(ask())
            assert caught.value.code == "model_unknown"
        assert api.journal.count == 1
        assert (await one.ask(ask(model="claude-haiku-5-5"))).text == "All is well."


@pytest.mark.parametrize("fault", [faults.rate_limited(60), faults.status(403)], ids=lambda fault: fault.name)
async def test_what_the_provider_says_of_one_model_keeps_no_other_away(
    fault: Fault, api: MessagesApi, sessions: Sessions, queue_url: str
) -> None:
    """A session may have its summaries written by a model of its own: nobody else waits for that one's limits."""
    async with workers(2, api, sessions, queue_url) as (one, other):
        api.script(fault)
        for worker in (one, other):
            with pytest.raises((ModelBusyError, ModelParkedError)):
                await worker.ask(ask(model="claude-opus-5-5"))
        assert api.journal.count == 1
        assert await answers(one) and await answers(other)


async def test_neither_key_nor_text_is_stored(api: MessagesApi, sessions: Sessions, queue_url: str) -> None:
    async with workers(1, api, sessions, queue_url, summarizer_requests_per_minute=10) as (one,):
        await one.ask(ask("the patient's name is Zephyrine"))
    async with Redis.from_url(queue_url) as queue:
        keys = await queue.keys("*")
        assert keys == [f"pf1:model_gate:{credential_label(KEY, 'http://messages.fake')}".encode()]
        assert 0 < await queue.pttl(keys[0]) <= 86_400_000
        stored = repr((keys, await queue.hgetall(keys[0])))
    assert "request_tat" in stored
    assert KEY not in stored
    assert "Zephyrine" not in stored


async def test_without_the_shared_gate_each_worker_goes_on_by_itself_and_says_so_once(
    api: MessagesApi, sessions: Sessions
) -> None:
    with refusing() as nowhere, capture_logs() as logs:
        gate_url = nowhere.replace("http", "redis") + "/0"
        async with workers(1, api, sessions, gate_url, summarizer_requests_per_minute=10) as (one,):
            ended = await outcomes([one], 30)
    assert (api.journal.count, sum(isinstance(end, ModelBusyError) for end in ended)) == (10, 20)
    assert [entry["event"] for entry in logs if entry["event"].startswith("model_gate")] == ["model_gate_local"]


async def test_a_gate_that_freezes_costs_a_second_once(
    api: MessagesApi, sessions: Sessions, queue_server: RunningRedis, queue_url: str
) -> None:
    async with workers(1, api, sessions, queue_url) as (one,):
        queue_server.freeze()
        try:
            began = time.monotonic()
            assert all(isinstance(end, Reply) for end in [*await outcomes([one], 20), *await outcomes([one], 20)])
            assert time.monotonic() - began < 10
        finally:
            queue_server.thaw()


async def test_64_calls_at_once_never_spend_more_than_the_days_budget(sessions: Sessions, queue_url: str) -> None:
    used = {"input_tokens": 1_000, "output_tokens": 400}  # 300 of the 650 millionths that are set aside
    api = MessagesApi(brain=lambda _: text("All is well.", usage=used), latency=Latency(base=0.01))
    ref = (await append(sessions, turn("user", "Hello."))).ref
    async with workers(2, api, sessions, queue_url, summarizer_daily_budget_usd=0.006) as two:
        ended = await outcomes(two, 64, incarnation=ref.incarnation, input_tokens=1_000)
        spent = sum(one.usage.micro_usd for one in ended if isinstance(one, Reply))
        refused = [one for one in ended if isinstance(one, BudgetSpentError)]
        assert refused
        assert 0 < spent <= 6_000
        assert api.journal.count == 64 - len(refused)
        # What was only set aside is free again: the budget is used to the end.
        while isinstance((await outcomes(two, 1, incarnation=ref.incarnation, input_tokens=1_000))[0], Reply):
            pass
    (today,) = await sessions.spending.days(TENANT, datetime.now(UTC).date(), 1)
    assert today.held_micro_usd == 0
    assert 6_000 - 650 < today.usage.micro_usd <= 6_000
    assert today.budget_micro_usd == 6_000
    assert (await sessions.view(TENANT, SESSION)).usage == today.usage


async def test_a_tenant_may_have_a_budget_of_its_own_or_none(
    api: MessagesApi, sessions: Sessions, queue_url: str, tmp_path: Path
) -> None:
    path = tmp_path / "budgets.json"
    path.write_bytes(orjson.dumps({"poor": 0, "free": None}))
    settings = {"summarizer_daily_budget_usd": 1, "summarizer_budgets_file": path}
    async with workers(1, api, sessions, queue_url, **settings) as (one,):
        with pytest.raises(BudgetSpentError):
            await one.ask(ask(tenant="poor"))
        assert isinstance(await one.ask(ask(tenant="free", input_tokens=100_000_000)), Reply)
        with pytest.raises(BudgetSpentError):
            await one.ask(ask(tenant="other", input_tokens=100_000_000))
    assert api.journal.count == 1


async def test_a_call_that_fails_for_nothing_leaves_the_budget_as_it_was(
    api: MessagesApi, sessions: Sessions, queue_url: str
) -> None:
    api.script(faults.server_error(), faults.status(400, "no"), faults.rate_limited(0.1), forever=False)
    async with workers(1, api, sessions, queue_url, summarizer_daily_budget_usd=1) as (one,):
        await outcomes([one], 3)
    (today,) = await sessions.spending.days(TENANT, datetime.now(UTC).date(), 1)
    assert (today.usage, today.held_micro_usd, today.failed) == (ModelUsage(), 0, 3)


async def test_an_unpriced_model_costs_nothing_and_is_told_once_but_is_not_asked_within_a_budget(
    api: MessagesApi, sessions: Sessions, queue_url: str
) -> None:
    api.models["llama"] = api.models["claude-haiku-4-5"]
    async with workers(1, api, sessions, queue_url) as (one,):
        with capture_logs() as logs:
            replies = [await one.ask(ask(model="llama")) for _ in range(2)]
    assert [reply.usage.micro_usd for reply in replies] == [0, 0]
    assert [entry["model"] for entry in logs if entry["event"] == "model_without_price"] == ["llama"]
    async with workers(1, api, sessions, queue_url, summarizer_daily_budget_usd=1) as (one,):
        with pytest.raises(BudgetSpentError, match="no price"):
            await one.ask(ask(model="llama"))
    (today,) = await sessions.spending.days(TENANT, datetime.now(UTC).date(), 1)
    assert (today.unpriced, today.usage.calls, today.usage.micro_usd) == (2, 2, 0)


async def test_a_budget_for_a_model_of_unknown_price_ends_the_start(
    api: MessagesApi, sessions: Sessions, queue_url: str
) -> None:
    settings = {"summarizer_daily_budget_usd": 1, "summarizer_fallback_model": "llama"}
    with pytest.raises(ConfigurationError, match="no price for 'llama'"):
        async with workers(1, api, sessions, queue_url, **settings):
            pass


async def test_calls_go_over_the_wire_with_nothing_taken_from_the_machine(
    sessions: Sessions, queue_url: str, api: MessagesApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "another")
    monkeypatch.setenv("ANTHROPIC_PROFILE", "another")
    with serving(api) as base_url:
        settings = summarizer_settings(base_url)
        async with connect_messages(settings, sessions.spending, gate_url=queue_url) as one:
            assert (await one.ask(ask())).text == "All is well."
    assert [entry.key for entry in api.journal.entries] == [KEY]


def worker_settings(redis_url: str, queue_url: str, base_url: str, **members: Any) -> WorkerSettings:
    given = {"summarizer": "anthropic", "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": base_url, **members}
    return WorkerSettings.model_validate({"redis_url": redis_url, "queue_url": queue_url, **given})


def test_a_worker_has_one_model_for_its_process(api: MessagesApi, redis_url: str, queue_url: str) -> None:
    with serving(api) as base_url:
        shared = Runtime(worker_settings(redis_url, queue_url, base_url), threading.Event())
        try:
            assert shared.messages is shared.messages
            assert shared.run(shared.messages.ask(ask())).text == "All is well."
        finally:
            assert shared.close()


def test_a_worker_that_ends_during_a_call_counts_it_and_closes_in_time(
    api: MessagesApi, redis_url: str, queue_url: str
) -> None:
    api.script(faults.hang())
    with serving(api) as base_url:
        shared = Runtime(worker_settings(redis_url, queue_url, base_url, worker_stop_seconds=0.1), threading.Event())
        try:
            messages, spending = shared.messages, shared.sessions.spending
            threading.Timer(0.3, shared.stop.set).start()
            with pytest.raises(HandedBackError):
                shared.run(messages.ask(ask()))
            shared.stop.clear()  # for what the test itself asks
            shared.run(messages.close())
            (today,) = shared.run(spending.days(TENANT, datetime.now(UTC).date(), 1))
        finally:
            assert shared.close()
    assert (today.usage.calls, today.unclear, today.held_micro_usd) == (1, 1, 0)


def test_a_worker_without_the_key_of_its_model_does_not_start(redis_url: str, queue_url: str) -> None:
    settings = worker_settings(redis_url, queue_url, "http://messages.fake", ANTHROPIC_API_KEY=None)
    shared = Runtime(settings, threading.Event())
    try:
        with pytest.raises(ConfigurationError, match="ANTHROPIC_API_KEY"):
            _ = shared.messages
    finally:
        shared.close()
