"""Figures, pace, recount and the comparison of the log."""

from typing import Any

import pytest

from prefold.client import Context
from prefold.client.results import Format
from prefold.replay.figures import Figures, p50_p99, percentile
from prefold.replay.log_check import log_faults
from prefold.replay.pace import Crossing, CrossingLog, judged
from prefold.replay.recount import IMAGE_TOKENS, Recount


@pytest.mark.parametrize(
    ("samples", "share", "value"),
    [([], 0.5, None), ([3.0], 0.99, 3.0), ([1.0, 3.0], 0.5, 2.0), ([4.0, 1.0, 3.0, 2.0], 0.5, 2.5), ([1, 2, 3], 1, 3)],
)
def test_a_percentile_lies_between_its_neighbours(samples: list[float], share: float, value: float | None) -> None:
    assert percentile(samples, share) == value


def test_both_percentiles_are_null_without_samples() -> None:
    assert p50_p99([]) == {"p50": None, "p99": None}


def test_the_json_line_has_the_documented_members_in_their_order() -> None:
    figures = Figures(4000, turns=9, swaps=2, limit_crossings=4, ready_crossings=3, append_ms=[1.0, 2.0])

    assert figures.json_line() == {
        "turns": 9,
        "swaps": 2,
        "degraded": 0,
        "limit_crossings": 4,
        "hard_limit_tokens": 4000,
        "max_context_tokens": 0,
        "over_limit_reads": 0,
        "invalid_contexts": 0,
        "lost_turns": 0,
        "append_ms": {"p50": 1.5, "p99": 1.99},
        "swap_append_ms": {"p50": None, "p99": None},
        "context_read_ms": {"p50": None, "p99": None},
        "standby_ready_ratio": 0.75,
    }
    assert list(figures.json_line())[-1] == "standby_ready_ratio"


def test_the_ready_ratio_is_null_where_no_limit_was_crossed() -> None:
    assert Figures(4000).json_line()["standby_ready_ratio"] is None


@pytest.mark.parametrize("fault", ["over_limit_reads", "invalid_contexts", "lost_turns"])
def test_each_fault_makes_a_replay_unclean(fault: str) -> None:
    figures = Figures(4000)
    assert figures.is_clean
    setattr(figures, fault, 1)

    assert not figures.is_clean


def test_a_replay_that_ended_early_is_not_clean() -> None:
    figures = Figures(4000)
    figures.end_early("ended by a fault")

    assert not figures.is_clean
    assert figures.faults == ["ended by a fault"]


def test_a_crossing_has_the_way_since_the_context_came_over_the_soft_threshold() -> None:
    log = CrossingLog()
    for turn, tokens in enumerate([1000, 2500, 2900, 3500], 1):
        log.take(turn, tokens, 2400)
    log.take_new_version(5, 1500, 2400, crossed=1, ready=1)
    for turn, tokens in enumerate([2300, 2400], 6):
        log.take(turn, tokens, 2400)
    log.take_new_version(9, 2500, 2400, crossed=2, ready=1)
    log.take_new_version(12, 1000, 2400, crossed=3, ready=2)

    assert log.crossings == [Crossing(3, True), Crossing(2, False), Crossing(3, True)]


def test_a_turn_that_passes_both_thresholds_leaves_no_way_at_all() -> None:
    log = CrossingLog()
    log.take(1, 1000, 2400)
    log.take_new_version(2, 3000, 2400, crossed=1, ready=0)

    assert log.crossings == [Crossing(0, False)]


def test_a_swap_between_two_appends_is_no_crossing_and_begins_a_new_way() -> None:
    log = CrossingLog()
    log.take(1, 2500, 2400)
    log.take_new_version(8, 2600, 2400, crossed=0, ready=0)
    log.take_new_version(10, 1000, 2400, crossed=1, ready=1)

    assert log.crossings == [Crossing(2, True)]


@pytest.mark.parametrize(
    ("way_turns", "largest", "is_judged"), [(40, 400, True), (39, 400, False), (40, 401, False), (400, 10, True)]
)
def test_only_a_crossing_that_left_the_background_time_is_judged(way_turns: int, largest: int, is_judged: bool) -> None:
    crossing = Crossing(way_turns, True)

    assert judged([crossing], [10, largest, 10], 4000) == [crossing] * is_judged


class CountsWords:
    adds_up = False

    def count(self, text: str) -> int:
        return len(text.split())


def context_of(form: Format, system: str, *messages: dict[str, Any]) -> Context:
    return Context(1, 0, "ok", form, system, messages, 0, {}, (), ())


def test_a_recount_of_anthropics_form_counts_texts_blocks_and_messages() -> None:
    context = context_of(
        "anthropic",
        "be very brief",
        {
            "role": "user",
            "content": [{"type": "text", "text": "one two"}, {"type": "image", "source": {"data": "a b"}}],
        },
        {"role": "assistant", "content": "three"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "four five six"}]},
    )

    expected = 3 + (4 + 3 + 2 + 3 + IMAGE_TOKENS) + (4 + 3 + 1) + (4 + 3 + 3 + 3)
    assert Recount(CountsWords()).of(context) == expected


def test_a_recount_of_openais_form_counts_the_system_once_and_calls_by_name_and_arguments() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "one two"}}
    context = context_of(
        "openai",
        "be brief",
        {"role": "system", "content": "be brief"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "three"},
    )

    assert Recount(CountsWords()).of(context) == 2 + (4 + 3 + 1 + 2) + (4 + 3 + 1)


def test_thinking_is_counted_by_its_text_and_not_by_the_signature_that_seals_it() -> None:
    thinking = {"type": "thinking", "thinking": "one two", "signature": "c2ln bmVk c2ln bmVk"}
    sealed = {"type": "redacted_thinking", "data": "c2ln bmVk"}
    context = context_of("anthropic", "", {"role": "assistant", "content": [thinking, sealed]})

    assert Recount(CountsWords()).of(context) == 4 + (3 + 2) + 3


def test_base64_is_never_counted_as_text() -> None:
    data = {"type": "base64", "data": "a b c d"}
    blocks = [{"type": "document", "source": data}, {"type": "image", "source": data}]

    context = context_of("anthropic", "", {"role": "user", "content": blocks})

    assert Recount(CountsWords()).of(context) == 4 + 3 + 3 + IMAGE_TOKENS


PUBLISHED = [{"id": name, "role": "user", "content": f"text of {name}"} for name in "abc"]
LOG = [{"seq": seq, **turn} for seq, turn in enumerate(PUBLISHED, 1)]


def test_a_log_that_is_what_was_published_has_no_faults() -> None:
    assert log_faults(PUBLISHED, LOG) == []


@pytest.mark.parametrize(
    ("log", "faults"),
    [
        (LOG[:2], ["c: stands in the log 0 times"]),
        ([LOG[0], LOG[2]], ["b: stands in the log 0 times"]),
        ([*LOG, {**LOG[2], "seq": 4}], ["c: stands in the log 2 times"]),
        ([LOG[0], {**LOG[1], "content": "other"}, LOG[2]], ["b: differs in the log"]),
        ([LOG[0], {**LOG[1], "name": "Ada"}, LOG[2]], ["b: differs in the log"]),
        ([*LOG, {"seq": 4, "id": "d", "role": "user", "content": "?"}], ["d: was never published"]),
        ([LOG[0], {**LOG[2], "seq": 2}, {**LOG[1], "seq": 3}], ["b: stands out of order"]),
        ([LOG[0], LOG[2], LOG[1]], ["b: stands out of order"]),
        ([], [f"{name}: stands in the log 0 times" for name in "abc"]),
    ],
)
def test_each_way_to_lose_a_turn_is_noticed(log: list[dict[str, Any]], faults: list[str]) -> None:
    assert log_faults(PUBLISHED, log) == faults
