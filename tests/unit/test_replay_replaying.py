"""A replay against a gateway in memory: what it counts, and that it notices each fault."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from prefold.client import Prefold
from prefold.errors import InvalidInputError
from prefold.replay.figures import Figures
from prefold.replay.fleet import Order, run_order, run_orders
from prefold.replay.reading import FileTurn, read_conversation
from prefold.replay.recount import Recount
from prefold.replay.replaying import Replay, Step, session_name
from tests.support.fake_gateway import FakeGateway, running_fake_gateway

EXAMPLES = Path(__file__).parents[2] / "examples"


class CountsCharacters:
    """A quarter of the characters: below what the fake gateway reports."""

    adds_up = False

    def count(self, text: str) -> int:
        return len(text) // 4


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    with running_fake_gateway() as fake:
        yield fake


@pytest.fixture
def client(gateway: FakeGateway) -> Iterator[Prefold]:
    with Prefold(gateway.url) as client:
        yield client


def talk(count: int) -> list[FileTurn]:
    roles = ("user", "assistant")
    return [
        FileTurn(f"line {n}", {"id": f"t{n}", "role": roles[(n + 1) % 2], "content": f"{n} " + "word " * 60})
        for n in range(1, count + 1)
    ]


def replay_of(client: Prefold, turns: list[FileTurn], *, limit: int = 2000, rate: float = 0) -> Replay:
    return Replay(client, turns, Recount(CountsCharacters()), session="s", hard_limit_tokens=limit, rate=rate)


def played(replay: Replay) -> tuple[list[Step], Figures]:
    return list(replay.steps()), replay.finish()


def test_a_clean_replay_counts_turns_swaps_and_reads(client: Prefold) -> None:
    steps, figures = played(replay_of(client, talk(60)))

    assert figures.is_clean
    assert figures.faults == []
    assert (figures.turns, len(figures.turn_tokens), len(figures.context_read_ms)) == (60, 60, 120)
    assert figures.swaps == sum(step.swapped for step in steps) == len(figures.swap_append_ms) > 1
    assert len(figures.append_ms) == 60 - figures.swaps
    assert figures.standby_ready_ratio == 1
    assert len(figures.crossings) == figures.limit_crossings
    assert all(crossing.is_ready and crossing.way_turns > 0 for crossing in figures.crossings)
    assert figures.max_context_tokens <= 2000
    assert figures.durability == "fast"


def test_each_turn_is_published_alone_and_read_in_both_formats(gateway: FakeGateway, client: Prefold) -> None:
    played(replay_of(client, talk(2)))

    targets = [f"{method} {target.partition('/s/')[2]}" for method, target, _ in gateway.requests]
    turn = ["POST turns", "GET context?format=anthropic", "GET context?format=openai"]
    assert targets[2:8] == turn * 2


def test_what_goes_out_is_exactly_what_was_read(gateway: FakeGateway, client: Prefold) -> None:
    turns = read_conversation(EXAMPLES / "openai_chat.jsonl")
    _, figures = played(replay_of(client, turns, limit=8000))

    assert figures.is_clean
    assert gateway.sessions["s"].turns == [turn.published for turn in turns]


def test_the_naive_sum_is_the_whole_log_before_each_assistant_turn(client: Prefold) -> None:
    steps, figures = played(replay_of(client, talk(4), limit=8000))

    sizes = [step.appended.turns[0].tokens for step in steps]
    assert figures.naive_input_tokens == sizes[0] + sum(sizes[:3])
    assert figures.model_input_tokens == figures.naive_input_tokens
    assert (figures.model_calls, figures.naive_largest, figures.model_largest) == (2, sum(sizes[:3]), sum(sizes[:3]))


@pytest.mark.parametrize("limit", [2000, 1200])
def test_swaps_keep_the_models_share_below_the_naive_one(client: Prefold, limit: int) -> None:
    _, figures = played(replay_of(client, talk(60), limit=limit))

    assert figures.model_input_tokens < figures.naive_input_tokens / 2
    assert figures.model_largest <= limit


def test_a_total_over_the_limit_is_counted_for_each_read(gateway: FakeGateway, client: Prefold) -> None:
    gateway.overstated_tokens = 10_000
    _, figures = played(replay_of(client, talk(3)))

    assert figures.over_limit_reads == 6
    assert figures.max_context_tokens > 10_000
    assert "the anthropic context has" in figures.faults[0]


def test_a_context_is_over_the_limit_when_the_recount_says_so_whatever_is_reported(
    gateway: FakeGateway, client: Prefold
) -> None:
    gateway.overstated_tokens = -100_000
    replay = Replay(client, talk(3), Recount(CountsMuch()), session="s", hard_limit_tokens=2000, rate=0)
    _, figures = played(replay)

    assert figures.over_limit_reads == 6


class CountsMuch:
    adds_up = False

    def count(self, text: str) -> int:
        return 5000


def test_an_invalid_context_is_counted_in_each_format(gateway: FakeGateway, client: Prefold) -> None:
    gateway.breaks_roles = True
    _, figures = played(replay_of(client, talk(2)))

    assert figures.invalid_contexts >= 1
    assert not figures.is_clean
    assert any("line 2: the anthropic context is invalid" in fault for fault in figures.faults)


def break_log_missing(gateway: FakeGateway) -> None:
    gateway.missing_in_the_log = "t2"


def break_log_changed(gateway: FakeGateway) -> None:
    gateway.changed_in_the_log = "t2"


@pytest.mark.parametrize("break_log", [break_log_missing, break_log_changed])
def test_a_turn_that_the_log_lost_or_changed_is_counted(
    gateway: FakeGateway, client: Prefold, break_log: Callable[[FakeGateway], None]
) -> None:
    break_log(gateway)
    _, figures = played(replay_of(client, talk(3)))

    assert figures.lost_turns == 1
    assert "t2" in figures.faults[-1]


def test_a_log_of_several_pages_is_read_to_its_end(client: Prefold, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prefold.replay.log_check.PAGE_TURNS", 7)
    _, figures = played(replay_of(client, talk(30)))

    assert figures.lost_turns == 0


def test_a_session_that_has_turns_is_left_alone(gateway: FakeGateway, client: Prefold) -> None:
    client.append("s", "user", "already here")

    with pytest.raises(InvalidInputError, match="has 1 turns already"):
        next(replay_of(client, talk(2)).steps())
    assert len(gateway.sessions["s"].turns) == 1
    assert gateway.sessions["s"].hard_limit_tokens == 100_000


def test_a_refused_turn_is_named_by_its_line(gateway: FakeGateway, client: Prefold) -> None:
    steps = replay_of(client, talk(2)).steps()
    next(steps)
    problem = {"code": "invalid_input", "detail": "content must not be empty"}
    gateway.refusals = [(422, {}, json.dumps(problem).encode())]

    with pytest.raises(InvalidInputError) as caught:
        next(steps)
    assert caught.value.detail == "line 2: content must not be empty"


def test_turns_are_published_no_faster_than_the_rate(client: Prefold) -> None:
    started = time.monotonic()
    played(replay_of(client, talk(6), rate=50))

    assert time.monotonic() - started >= 5 / 50


@pytest.mark.parametrize(("stem", "start"), [("tau-airline-2", "replay-tau-airline-2-"), ("a b/é:", "replay-a-b-")])
def test_a_session_name_tells_the_file_and_is_new_each_time(stem: str, start: str) -> None:
    first, second = session_name(stem), session_name(stem)

    assert first.startswith(start)
    assert first != second


def test_an_order_that_ends_early_says_why_among_its_faults(gateway: FakeGateway) -> None:
    order = Order(EXAMPLES / "openai_chat.jsonl", 8000, 0, gateway.url, None)
    gateway.refusals = [(403, {}, b'{"detail": "no entry"}')]

    run = run_order(order)

    assert not run.figures.is_clean
    assert run.figures.faults == ["ended by UnauthenticatedError: no entry"]


def test_orders_run_in_processes_of_their_own_and_each_is_told(gateway: FakeGateway) -> None:
    orders = [Order(EXAMPLES / "openai_chat.jsonl", limit, 0, gateway.url, None) for limit in (2000, 8000)]
    told = threading.Semaphore(0)

    runs = run_orders(orders, jobs=2, on_done=lambda _run: told.release())

    assert {run.figures.hard_limit_tokens for run in runs} == {2000, 8000}
    assert all(run.figures.is_clean and run.figures.turns == 12 for run in runs)
    assert told.acquire(blocking=False)
    assert told.acquire(blocking=False)
