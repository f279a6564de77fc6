"""Who writes a summary when the first engine cannot: by rule, recorded, and bounded."""

import asyncio
from datetime import timedelta

import orjson
import pytest
from structlog.testing import capture_logs

from prefold.compaction.build import LEASE, SessionBuilder
from prefold.compaction.engine import Summary, SummaryInput
from prefold.compaction.engines import PATIENCE, chunk_tokens_of
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.compaction.gate.refusals import GateRefusedError
from prefold.compaction.lease import LeaseLostError
from prefold.config.settings import SummarizerSettings
from prefold.errors import PrefoldError, UnavailableError
from prefold.messages import (
    AnswerRefusedError,
    BadRequestError,
    BudgetSpentError,
    InputTooLongError,
    ModelAwayError,
    ModelBusyError,
    ModelParkedError,
)
from prefold.storage.types import BuildTicket
from prefold.tokens import load_counter
from tests.support.compaction import REF, new_cache, ticket
from tests.unit.test_compaction_build import FakeStorage, conversation

PERMANENT_FOR_THIS_BUILD = [
    AnswerRefusedError("no", code="answer_refusal"),
    AnswerRefusedError("cut", code="answer_cut"),
    GateRefusedError("not a summary", code="summary_continues"),
    ModelParkedError("who are you", code="model_credentials"),
    ModelParkedError("no such model", code="model_unknown"),
    BudgetSpentError("enough", code="budget_spent"),
    InputTooLongError("too long"),
    BadRequestError("odd"),
]
AWAY = [
    ModelAwayError("gone"),
    ModelAwayError("slow", code="model_timeout"),
    ModelAwayError("529", code="model_overloaded"),
    ModelBusyError("429"),
]


class Model:
    """An engine that fails as it is told, after some work."""

    name, prompt_version = "anthropic", "1 model"

    def __init__(self, *errors: Exception | None) -> None:
        self.errors = list(errors)

    async def summarize(self, wanted: SummaryInput) -> Summary:
        wanted.tally.made += 1
        error = self.errors.pop(0) if len(self.errors) > 1 else self.errors[0]
        if error is not None:
            raise error
        return Summary((), "", 0, (1, 1))


def build_by(storage: FakeStorage, model: Model, lease: timedelta = LEASE) -> SessionBuilder:
    cache = new_cache()
    extractive = ExtractiveSummarizer(cache, load_counter())
    return SessionBuilder(storage, model, cache, load_counter(), lease, fallback=extractive)


def storage_with(**members: object) -> FakeStorage:
    leave: BuildTicket = ticket(50, 2000, **members)
    return FakeStorage(conversation(), leave)


@pytest.mark.parametrize("error", PERMANENT_FOR_THIS_BUILD, ids=lambda error: error.code)
async def test_what_would_fail_again_is_written_by_the_other_engine_at_once(error: PrefoldError) -> None:
    storage = storage_with()
    assert await build_by(storage, Model(error)).build(REF) == "standby"
    record = orjson.loads(storage.committed[0].record)
    assert (record["engine"], record["instead_of"], record["because"]) == ("extractive", "anthropic", error.code)
    assert record["segments"]["made"] == 1
    assert 0 <= record["coverage_before"] <= record["coverage"] <= 1
    assert storage.abandoned == []


@pytest.mark.parametrize("error", AWAY, ids=lambda error: error.code)
async def test_a_model_that_is_away_is_waited_for_twice_and_the_third_time_the_other_engine_writes(
    error: PrefoldError,
) -> None:
    storage = storage_with()
    work = build_by(storage, Model(error))
    outcomes = [await work.build(REF) for _ in range(PATIENCE)]
    assert outcomes == [error.code, error.code, "standby"]
    assert [reason for reason, _ in storage.abandoned] == [error.code, f"{error.code}, 2 in a row"]
    assert orjson.loads(storage.committed[0].record)["because"] == error.code


async def test_failures_of_a_model_count_together_whatever_each_is() -> None:
    storage = storage_with()
    work = build_by(storage, Model(*AWAY))
    assert [await work.build(REF) for _ in range(3)] == ["model_unavailable", "model_timeout", "standby"]


async def test_a_context_over_its_limit_waits_for_no_model() -> None:
    storage = storage_with(is_urgent=True)
    assert await build_by(storage, Model(AssertionError("a model was asked"))).build(REF) == "standby"
    assert orjson.loads(storage.committed[0].record)["because"] == "urgent"
    assert storage.abandoned == []


async def test_a_context_that_comes_over_its_limit_waits_no_longer_for_a_model() -> None:
    storage = storage_with()
    cancelled = asyncio.Event()

    class Slow(Model):
        async def summarize(self, wanted: SummaryInput) -> Summary:
            storage.degraded = True
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            raise AssertionError("it never answers")

    looks_soon = timedelta(milliseconds=900)
    assert await build_by(storage, Slow(None), looks_soon).build(REF) == "standby"
    assert orjson.loads(storage.committed[0].record)["because"] == "urgent"
    assert cancelled.is_set()


async def test_a_model_that_is_back_writes_again() -> None:
    storage = storage_with()

    class Recovering(Model):
        async def summarize(self, wanted: SummaryInput) -> Summary:
            await super().summarize(wanted)
            return await ExtractiveSummarizer(new_cache(), load_counter()).summarize(wanted)

    work = build_by(storage, Recovering(ModelAwayError("gone"), None))
    assert [await work.build(REF) for _ in range(2)] == ["model_unavailable", "standby"]
    record = orjson.loads(storage.committed[0].record)
    assert record["engine"] == "anthropic"
    assert "instead_of" not in record


async def test_an_answer_that_the_last_gate_refuses_is_not_committed() -> None:
    storage = storage_with()
    assert await build_by(storage, Model(None)).build(REF) == "standby"
    assert orjson.loads(storage.committed[0].record)["because"] == "summary_empty"


async def test_a_fault_of_the_first_engine_is_told_without_its_words() -> None:
    storage = storage_with()
    with capture_logs() as logs:
        assert await build_by(storage, Model(ValueError("My budget is $3000"))).build(REF) == "standby"
    assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["engine_fault"]
    assert "$3000" not in str(logs)


async def test_a_storage_that_is_away_is_no_failure_of_the_model() -> None:
    storage = storage_with()
    assert await build_by(storage, Model(UnavailableError("redis"))).build(REF) == "unavailable"
    assert storage.committed == []


async def test_a_void_ticket_found_by_the_engine_ends_the_build_without_a_word() -> None:
    storage = storage_with()
    assert await build_by(storage, Model(LeaseLostError())).build(REF) == "lost"
    assert (storage.committed, storage.abandoned) == ([], [])


@pytest.mark.parametrize(
    ("window", "output", "chunk", "expected"),
    [(200_000, 8_000, 60_000, 60_000), (200_000, 8_000, 190_000, 127_000), (4_000, 1_000, 60_000, 1_000)],
)
def test_a_chunk_leaves_room_for_instructions_and_answer(window: int, output: int, chunk: int, expected: int) -> None:
    settings = SummarizerSettings(
        summarizer_window_tokens=window, summarizer_max_output_tokens=output, summarizer_chunk_tokens=chunk
    )
    assert chunk_tokens_of(settings) == expected
