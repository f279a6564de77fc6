"""What a model does and does not do for the memory of a session: asked once, waited for in bounds, never in the way."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event
from typing import Any

import pytest

from prefold.compaction.engine import Summary, SummaryInput
from prefold.compaction.engines import Engines
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.compaction.pool import BuildPool
from prefold.errors import RefusedError
from prefold.memory.extracting import Extraction, extract_offline
from prefold.messages.errors import ModelAwayError
from prefold.pinned import decode
from prefold.storage import Sessions, connect_sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.types import SessionOptions, SessionRef, StoredTurn
from prefold.tokens import load_counter
from prefold.worker.waiting import waiting
from tests.support.compaction import new_cache
from tests.support.remembering import USER, Memory, Then, nothing, talk
from tests.support.storage import TENANT, append, turn
from tests.support.waiting import wait_until_async

GERMANY = "I live in Germany and I work as a nurse in a small hospital."
BUDGET = "My budget is 3000 euros for all of it, and I can only travel in May."
CHAT = "The trip that we plan for the autumn should take about ten days, with some walking in it and a few museums."


@dataclass
class FakeModel:
    """Finds what the rules find, and notes each call. ``fails`` are codes of the next calls' failures."""

    fails: list[str] = field(default_factory=list)
    then: Then = nothing
    calls: int = 0
    before: list[int] = field(default_factory=list)
    breaks: bool = False

    async def run(
        self, ref: SessionRef, turns: Sequence[StoredTurn], *, stored_at_ms: int, before: Sequence[StoredTurn]
    ) -> Extraction:
        self.calls += 1
        self.before = [turn.seq for turn in before]
        if self.breaks:
            raise ValueError("a fault of ours")
        async with waiting():
            await self.then()
        failed = Counter([self.fails.pop(0)] if self.fails else [])
        return Extraction(extract_offline(turns, ref, stored_at_ms=stored_at_ms), failed=failed)


class FailingEngine(ExtractiveSummarizer):
    """A model's engine that raises ``errors``, one a call, and writes afterwards."""

    name = "anthropic"

    def __init__(self, *errors: Exception) -> None:
        super().__init__(new_cache(), load_counter())
        self.errors = list(errors)
        self.calls = 0

    async def summarize(self, wanted: SummaryInput) -> Summary:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return await super().summarize(wanted)


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


def engines(primary: FailingEngine) -> Engines:
    return Engines(primary, ExtractiveSummarizer(new_cache(), load_counter()))


async def test_a_model_that_is_away_is_waited_for_twice_while_the_rules_facts_are_there(sessions: Sessions) -> None:
    model = FakeModel(fails=["model_unavailable"] * 9)
    memory = Memory(sessions, model=model)
    ref = await talk(sessions, "s1", GERMANY, CHAT)
    assert await memory.close(ref) == "model_unavailable"
    assert (await memory.known())["lives_in"] == "Germany"
    pauses = [await _due_in_ms(sessions)]
    assert await memory.remember(ref) == "model_unavailable"
    pauses.append(await _due_in_ms(sessions))
    assert await memory.remember(ref) == "ended"
    assert (model.calls, memory.remembering.engine_name) == (3, "extractive")
    assert 1_500 < pauses[0] <= 2_400 and 7_000 < pauses[1] <= 9_600
    assert (await sessions.view(TENANT, "s1")).closed_at_ms


@pytest.mark.parametrize("breaks", [False, True])
async def test_a_model_and_who_stands_in_for_it_see_what_stands_before_new_turns(
    sessions: Sessions, breaks: bool
) -> None:
    model = FakeModel(breaks=breaks)
    memory = Memory(sessions, model=model)
    ref = await talk(sessions, "s1", "Let's role-play: you are the waiter.", CHAT)
    assert await memory.close(ref) == "ended"
    assert model.before == []
    await append(sessions, turn("user", "I live in Graz and I'm allergic to lobster."), session="s1")
    assert await memory.close(ref) == "ended"
    assert model.before == [1, 2, 3, 4]
    if breaks:
        assert await memory.known() == {}


@pytest.mark.parametrize("code", ["budget_spent", "answer_malformed", "model_credentials"])
async def test_a_model_that_will_not_answer_is_not_waited_for(sessions: Sessions, code: str) -> None:
    model = FakeModel(fails=[code])
    memory = Memory(sessions, model=model)
    ref = await talk(sessions, "s1", GERMANY, CHAT)
    assert await memory.close(ref) == "ended"
    assert model.calls == 1
    assert (await memory.known())["lives_in"] == "Germany"


async def test_a_digest_is_written_once_though_its_vectors_have_to_wait(sessions: Sessions) -> None:
    engine, model = FailingEngine(), FakeModel()
    memory = Memory(sessions, model=model, engines=engines(engine))
    ref = await talk(sessions, "s1", GERMANY, CHAT)
    memory.store.is_away = True
    assert await memory.close(ref) == "unavailable"
    assert await memory.remember(ref) == "unavailable"
    memory.store.is_away = False
    assert await memory.remember(ref) == "ended"
    assert (engine.calls, model.calls) == (1, 1)


@pytest.mark.parametrize(
    ("errors", "outcomes"),
    [
        ([RefusedError("no", code="answer_refusal")], ["ended"]),
        ([ValueError("a fault")], ["ended"]),
        ([ModelAwayError("away")] * 3, ["model_unavailable", "model_unavailable", "ended"]),
    ],
)
async def test_a_digest_that_the_model_does_not_write_comes_from_the_offline_engine(
    sessions: Sessions, errors: list[Exception], outcomes: list[str]
) -> None:
    memory = Memory(sessions, engines=engines(FailingEngine(*errors)))
    ref = await talk(sessions, "s1", GERMANY, CHAT)
    await sessions.ask_close(TENANT, "s1")
    assert [await memory.remember(ref) for _ in outcomes] == outcomes
    digest = await sessions.read_digest(TENANT, "s1")
    assert digest is not None and '"engine":"extractive"' in digest.record


async def test_a_slow_model_holds_up_no_other_session_and_keeps_its_lease(sessions: Sessions) -> None:
    model = FakeModel(then=asyncio.Event().wait)  # type: ignore[arg-type]
    slow = Memory(sessions, model=model, lease=timedelta(seconds=1))
    refs = [await talk(sessions, f"s{number}", GERMANY, CHAT) for number in range(12)]
    for ref in refs:
        await sessions.ask_close(TENANT, ref.session)
    pool = BuildPool(slow.remembering, Event())
    ended = await pool.hand_over(refs[:1])
    assert list(ended.ongoing) == refs[:1]
    await wait_until_async("the model is asked", _is_true(lambda: model.calls == 1))
    first = await _lease_of(sessions, "s0")
    model.then = nothing
    assert len((await pool.hand_over(refs[1:])).ongoing) == 11
    await wait_until_async("all others have ended", _is_true(lambda: len(pool) == 1))

    async def is_renewed() -> bool:
        return await _lease_of(sessions, "s0") > first + 1_000

    await wait_until_async("the lease outlives its length", is_renewed)
    assert await Memory(sessions).remember(refs[0]) == "busy"
    await pool.cancel()
    assert await Memory(sessions).remember(refs[0]) == "ended", "what was cancelled gave its lease back"


async def test_what_a_session_is_bound_by_is_proposed_and_goes_with_its_turns(sessions: Sessions) -> None:
    memory = Memory(sessions)
    ref = await talk(sessions, "s1", BUDGET, CHAT)
    await memory.close(ref)
    proposed = decode((await sessions.read_state(TENANT, "s1")).body).proposals
    assert any("3000" in one.value and one.field == "constraints" for one in proposed)
    await sessions.edit_turn(TENANT, "s1", "s1-0", turn("user", CHAT, id="s1-0"))
    await memory.remember(ref)
    assert not any("3000" in one.value for one in decode((await sessions.read_state(TENANT, "s1")).body).proposals)


async def test_a_model_is_let_rest_as_long_as_it_asks_for(sessions: Sessions) -> None:
    error = ModelAwayError("away", retry_after=timedelta(minutes=3))
    memory = Memory(sessions, engines=engines(FailingEngine(error)))
    ref = await talk(sessions, "s1", GERMANY, CHAT)
    assert await memory.close(ref) == "model_unavailable"
    assert 170_000 < await _due_in_ms(sessions) <= 180_000


async def test_one_message_alone_is_its_own_digest_and_no_engine_is_asked(sessions: Sessions) -> None:
    memory = Memory(sessions, engines=engines(FailingEngine(ModelAwayError("away"))))
    await sessions.open(TENANT, "s1", SessionOptions(user=USER))
    said = f"{GERMANY} {CHAT} " * 5
    ref = (await append(sessions, turn("user", said), session="s1")).ref
    assert await memory.close(ref) == "ended"
    digest = await sessions.read_digest(TENANT, "s1")
    assert digest is not None and digest.text == f"[1 user] {said.strip()}"
    assert (await memory.known())["lives_in"] == "Germany"


async def test_a_goal_is_proposed_from_the_beginning_of_a_session_only(sessions: Sessions) -> None:
    memory = Memory(sessions)
    ref = await talk(sessions, "s1", BUDGET, CHAT)
    await memory.close(ref)
    await append(sessions, turn("user", "I want to plan a trip to Japan. I don't eat pork."), session="s1")
    await memory.close(ref)
    proposed = decode((await sessions.read_state(TENANT, "s1")).body).proposals
    assert any("pork" in one.value for one in proposed)
    assert not any(one.field == "goal" for one in proposed)


async def test_no_model_writes_a_digest_of_turns_that_changed_while_they_were_read(sessions: Sessions) -> None:
    engine = FailingEngine()
    memory = Memory(sessions, engines=engines(engine))
    ref = await talk(sessions, "s1", GERMANY, CHAT)

    async def edit() -> None:
        await sessions.edit_turn(TENANT, "s1", "s1-0", turn("user", CHAT, id="s1-0"))

    memory.extractor.then = edit
    assert await memory.close(ref) == "ended"
    assert (memory.extractor.calls, engine.calls) == (2, 1)


async def _lease_of(sessions: Sessions, session: str) -> int:
    found: Any = sessions.client.hget(SessionKeys.of(TENANT, session).meta, "memory_lease")
    return int(await found or 0)


async def _due_in_ms(sessions: Sessions) -> int:
    (due,) = [one for one in await sessions.due_sets.due(2**52, 9) if one.kind == "remember"]
    seconds, micros = await sessions.client.time()
    return due.due_at_ms - (int(seconds) * 1000 + int(micros) // 1000)


def _is_true(holds: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return holds()

    return look
