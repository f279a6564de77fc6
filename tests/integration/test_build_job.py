"""The compact job on a real server: from due sessions to a context that stands within its limit."""

import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from prefold.compaction import build_job
from prefold.compaction.build import SessionBuilder
from prefold.compaction.build_job import build_summaries, pool_of
from prefold.compaction.engine import Summary, SummaryInput
from prefold.compaction.engines import Engines, create_engines
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.conversation import anthropic_messages, check_anthropic, parse_lines
from prefold.conversation.redacted import redacted_turn
from prefold.errors import ConfigurationError, InvalidInputError, UnavailableError
from prefold.jobs import COMPACT_QUEUE, encode_sessions
from prefold.storage import Sessions, connect_sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.types import BuildTicket, SessionOptions, SessionRef
from prefold.tokens import load_counter
from prefold.worker.main import load
from prefold.worker.runtime import Runtime, close_runtime, install
from prefold.worker.settings import WorkerSettings
from tests.support.compaction import new_cache
from tests.support.storage import TENANT, append, call, fragments, results, texts_of, turn

COUNTER = load_counter()
_LONG = "The weather seemed rather quiet today, and the garden looked somehow like some river over there, as {} said. "


def long(number: int | str) -> str:
    """Words that state nothing; another text for each number."""
    return _LONG.format(str(number).translate(str.maketrans("0123456789", "abcdefghij")))


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


@pytest.fixture
def shared(redis_url: str) -> Iterator[Runtime]:
    """The worker's runtime, as the jobs find it."""
    built = Runtime(WorkerSettings(redis_url=redis_url), threading.Event())
    install(built)
    yield built
    close_runtime()


async def filled(sessions: Sessions, name: str, *, turns: int = 60, hard: int = 3000) -> SessionRef:
    """A session just past its soft threshold, or far beyond with more turns."""
    await sessions.open(TENANT, name, SessionOptions(hard_limit_tokens=hard))
    await append(sessions, turn("user", "Hi! My budget is $3000 and I am allergic to shellfish."), session=name)
    ref = None
    for number in range(turns):
        role = "assistant" if number % 2 == 0 else "user"
        ref = (await append(sessions, turn(role, long(number) * 2), session=name)).ref
    assert ref is not None
    return ref


def builder(sessions: Sessions, engine: Any = None) -> SessionBuilder:
    cache = new_cache()
    return SessionBuilder(sessions, engine or ExtractiveSummarizer(cache, COUNTER), cache, COUNTER)


async def head_parts(sessions: Sessions, name: str) -> list[str]:
    parts = ("first_message", "ledger", "summary", "task")
    return [line.part for line in await fragments(sessions, name) if line.part in parts]


async def test_a_summary_is_made_without_the_removed_turns_also_when_nothing_else_is_left(sessions: Sessions) -> None:
    ref = await filled(sessions, "s1", turns=48)
    log = await sessions.read_turns(TENANT, "s1", 0, 500)
    for removed in (log[:1], log[1:40]):
        for one in removed:
            await sessions.remove_turn(TENANT, "s1", one.id, redacted_turn(one, COUNTER))
        while (view := await sessions.view(TENANT, "s1")).tokens < view.soft_threshold_tokens:
            await append(sessions, turn("user", long("more") * 2), turn("assistant", "Yes."), session="s1")
        assert await builder(sessions).build(ref) == "standby"
        following = await sessions.client.get(SessionKeys.of(TENANT, "s1").next)
        assert isinstance(following, bytes)
        head = [line for line in parse_lines(following)[1] if line.part in ("first_message", "ledger", "summary")]
        assert head and not any(b"shellfish" in line.content or b"removed" in line.content for line in head)


async def test_a_build_makes_a_standby_that_the_limit_swaps_in(sessions: Sessions) -> None:
    ref = await filled(sessions, "s1", turns=48)
    before = await sessions.view(TENANT, "s1")
    assert before.status == "soft"
    assert await builder(sessions).build(ref) == "standby"
    view = await sessions.view(TENANT, "s1")
    assert view.standby is not None
    assert view.standby.coverage == 1.0
    swapped = False
    for number in range(40):
        result = await append(sessions, turn("user", f"And this is question {number}. " + long(number)), session="s1")
        assert result.tokens <= 3000
        if result.swapped_now:
            swapped = True
            break
    assert swapped
    assert await head_parts(sessions, "s1") == ["first_message", "summary"]
    said = "\n".join(await texts_of(sessions, "s1"))
    assert "My budget is $3000 and I am allergic to shellfish." in said
    assert check_anthropic(anthropic_messages(await fragments(sessions))) == []
    assert (await sessions.view(TENANT, "s1")).tokens <= 0.5 * 3000


async def test_a_session_over_its_limit_swaps_at_the_commit(sessions: Sessions) -> None:
    ref = await filled(sessions, "s1", turns=120)
    assert (await sessions.view(TENANT, "s1")).status == "degraded"
    assert await builder(sessions).build(ref) == "swapped"
    assert not (await sessions.view(TENANT, "s1")).degraded


async def test_facts_survive_many_swaps(sessions: Sessions) -> None:
    facts = {
        3: "By the way, my email is ann.lee@example.org.",
        9: "I can only travel in the last two weeks of October.",
        15: "Sorry, my email is anna.lee@example.org, not ann.lee@example.org.",
    }
    await sessions.open(TENANT, "s1", SessionOptions(hard_limit_tokens=4000))
    await append(sessions, turn("user", "I want to plan a trip to Japan, my budget is $3000 for 10 days."))
    work = builder(sessions)
    swaps = 0
    for number in range(1, 500):
        text = facts.get(number, long(number) * 2)
        result = await append(sessions, turn("user" if number % 2 else "assistant", text))
        assert result.tokens <= 4000
        swaps = result.swaps
        if result.status in ("soft", "degraded") or number % 7 == 0:
            await work.build(result.ref)
    assert swaps >= 5
    said = "\n".join(await texts_of(sessions, "s1"))
    assert "$3000 for 10 days" in said
    assert "last two weeks of October" in said
    assert 'anna.lee@example.org, not ann.lee@example.org. (replaces "ann.lee@example.org" [4])' in said


async def test_a_long_agent_run_keeps_its_task(sessions: Sessions) -> None:
    await sessions.open(TENANT, "s1", SessionOptions(hard_limit_tokens=4000))
    await append(sessions, turn("user", "Hello there."), turn("assistant", "Hello."))
    result = await append(sessions, turn("user", "Fix the window bug in fields.py, and never touch setup.py."))
    work = builder(sessions)
    sessions.now_ms = 1_800_000_000_000
    for number in range(60):
        sessions.now_ms += 2000
        body = long(number) * 4
        await append(sessions, call(f"c{number}", q=f"file_{number}.py"))
        result = await append(sessions, results(f"c{number}", body=body))
        await work.build(result.ref)
    assert result.swaps >= 1
    assert "task" in await head_parts(sessions, "s1")
    assert "never touch setup.py" in "\n".join(await texts_of(sessions, "s1"))
    assert check_anthropic(anthropic_messages(await fragments(sessions))) == []


async def test_a_build_that_another_overtook_commits_nothing(sessions: Sessions) -> None:
    ref = await filled(sessions, "s1", turns=48)

    class Overtaken(ExtractiveSummarizer):
        async def summarize(self, wanted: SummaryInput) -> Summary:
            sessions.now_ms = 4_000_000_000_000  # every lease has run out
            assert isinstance(await sessions.begin_build(TENANT, "s1", ref.incarnation, 1000), BuildTicket)
            return await super().summarize(wanted)

    assert await builder(sessions, Overtaken(new_cache(), COUNTER)).build(ref) == "stale"
    view = await sessions.view(TENANT, "s1")
    assert view.standby is None
    assert view.build is not None


async def test_a_failing_engine_is_seen_and_not_asked_again_at_once(sessions: Sessions) -> None:
    ref = await filled(sessions, "s1", turns=48)

    class Failing:
        name, prompt_version, asked = "failing", "1", 0

        async def summarize(self, wanted: SummaryInput) -> Summary:
            self.asked += 1
            raise UnavailableError("the model is away", retry_after=timedelta(seconds=30))

    engine = Failing()
    assert await builder(sessions, engine).build(ref) == "unavailable"
    assert await builder(sessions, engine).build(ref) == "backoff"
    assert engine.asked == 1
    assert (await sessions.view(TENANT, "s1")).last_build_error == "unavailable"


async def test_a_session_that_cannot_shrink_is_left_alone_until_it_has_grown(sessions: Sessions) -> None:
    ref = await filled(sessions, "s1", turns=48)

    class Verbose:
        name, prompt_version = "verbose", "1"

        async def summarize(self, wanted: SummaryInput) -> Summary:
            made = await ExtractiveSummarizer(new_cache(), COUNTER).summarize(wanted)
            return replace(made, text=made.text * 40)

    sessions.now_ms = 1_800_000_000_000
    for attempt in range(1, 4):
        assert await builder(sessions, Verbose()).build(ref) == "no_gain"
        error = (await sessions.view(TENANT, "s1")).last_build_error
        assert error == ("no_gain" if attempt == 1 else f"no_gain, {attempt} in a row")
        assert await builder(sessions, Verbose()).build(ref) == ("backoff" if attempt < 3 else "not_due")
        sessions.now_ms += 310 * 4 ** (attempt - 1)
    resting = await sessions.view(TENANT, "s1")
    sessions.now_ms += 3_600_000
    assert await builder(sessions).build(ref) == "not_due"
    while (await sessions.view(TENANT, "s1")).log_tokens < resting.resting_until_tokens:
        await append(sessions, turn("user", long("more") * 2), turn("assistant", "Yes."), session="s1")
    assert await builder(sessions).build(ref) == "standby"


def test_the_job_builds_each_session_once(shared: Runtime, redis_url: str) -> None:
    names = [f"s{number}" for number in range(5)]

    async def prepare() -> list[SessionRef]:
        return [await filled(shared.sessions, name, turns=48) for name in names]

    shared.sessions  # noqa: B018 (connected from the job's own thread)
    refs = shared.run(prepare())
    ended = build_summaries(encode_sessions([*refs, *refs, SessionRef(TENANT, "none", "gone")]))
    assert set(ended.ongoing) == set(refs)
    shared.run(pool_of(shared).settle())

    async def standbys() -> list[Any]:
        return [(await shared.sessions.view(TENANT, name)).standby for name in names]

    assert all(standby is not None for standby in shared.run(standbys()))
    assert not build_summaries(encode_sessions(refs)).ongoing


def test_the_engine_that_is_loaded_when_the_process_starts_serves_the_jobs(
    shared: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def create(*parts: Any) -> Engines:
        engines = create_engines(*parts)
        made.append(engines.primary.name)
        return engines

    monkeypatch.setattr(build_job, "create_engines", create)
    with capture_logs() as logs:
        load(COMPACT_QUEUE, shared)
    assert [(entry["event"], entry["summarizer"]) for entry in logs] == [("summarizer_loaded", "extractive")]
    build_summaries(encode_sessions([SessionRef(TENANT, "none", "gone")]))
    assert made == ["extractive"]


def test_a_model_without_a_key_ends_the_start(redis_url: str) -> None:
    shared = Runtime(WorkerSettings(redis_url=redis_url, summarizer="anthropic"), threading.Event())
    try:
        with pytest.raises(ConfigurationError):
            load(COMPACT_QUEUE, shared)
    finally:
        shared.close()


def test_a_payload_that_is_none_is_refused_for_good(shared: Runtime) -> None:
    with pytest.raises(InvalidInputError):
        build_summaries([["acme"]])


async def test_the_record_is_kept_with_the_standby(sessions: Sessions, redis: Redis) -> None:
    ref = await filled(sessions, "s1", turns=48)
    await builder(sessions).build(ref)
    (key,) = [key async for key in redis.scan_iter("*:standby")]
    body = await redis.hget(key, "body")
    assert isinstance(body, bytes)
    record = orjson.loads(body.split(b"\n")[0].split(b" ", 3)[3])
    assert record["engine"] == "extractive"
    assert record["source_tokens"] > sum(record["head_tokens"].values())
