"""The figures of the paced simulation tell a waiting append and a late summary from a busy machine."""

from dataclasses import replace

from bench.paced.figures import BuildEvents, ModelCall, PacedFigures, Stalls
from bench.paced.plan import SOFT_SHARE, SOFT_TO_HARD_SECONDS, Scale, session_plans
from bench.paced.report import Outcome

SCALE = Scale(sessions=500, time_factor=1 / 5, spread_seconds=100)


def outcome(idle: list[float], building: list[float], *, crossings: int = 500, ready: int = 500) -> Outcome:
    """Of a run whose model took 4 s each time."""
    figures = PacedFigures(sessions=500, crossings=crossings, ready=ready)
    figures.idle_seconds, figures.building_seconds = idle, building
    builds, stalls = BuildEvents(0, 0, {}, {}, ()), Stalls(0, 0, 0, 0, 0)
    return Outcome(SCALE, 1, figures, builds, (ModelCall(4.0, True),), stalls, 1.0, {}, (0.0, 0.0))


def test_an_append_as_slow_as_a_call_is_one_that_waited() -> None:
    found = outcome([0.01] * 1000, [0.01] * 99 + [3.0])
    assert found.waiting_appends == 1
    assert found.misses() == ["1 appends took as long as a call of the model"]


def test_a_machine_that_delays_all_appends_alike_accuses_none() -> None:
    assert outcome([0.01] * 950 + [5.0] * 50, [0.01] * 93 + [4.0] * 7).misses() == []


def test_appends_that_all_wait_are_found_on_such_a_machine_too() -> None:
    assert outcome([0.01] * 950 + [5.0] * 50, [3.0] * 100).waiting_appends == 95


def test_one_late_summary_in_two_hundred_is_kept_and_six_in_five_hundred_are_not() -> None:
    assert outcome([], [], crossings=200, ready=199).misses() == ["200 crossings of 500 sessions"]
    assert outcome([], [], ready=495).misses() == []
    assert outcome([], [], ready=494).misses() == ["ready at 98.80% of the crossings"]


def test_no_session_comes_from_soft_to_hard_faster_than_promised() -> None:
    for scale in (SCALE, replace(SCALE, hard_limit=32_000, turn_tokens=(50, 900))):
        fastest = min(plan.seconds_per_token for plan in session_plans(scale, 7))
        left = (1 - SOFT_SHARE) * scale.hard_limit - scale.turn_tokens[1]
        assert fastest * left >= SOFT_TO_HARD_SECONDS
