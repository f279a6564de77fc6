"""The simulation of standbys: repeatable, and more of what helps never hurts."""

from dataclasses import replace

from bench.paced.plan import Scale
from bench.simulation.events import Clock
from bench.simulation.main import as_simulated, edge, largest
from bench.simulation.running import simulate
from bench.simulation.scenario import Scenario

SMALL = Scenario(sessions=40, spread_seconds=80, soft_ratio=0.7, workers=1)


def test_events_happen_in_the_order_of_their_times_and_of_their_asking() -> None:
    clock, seen = Clock(), list[tuple[str, float]]()
    clock.after(2, lambda: seen.append(("late", clock.now)))
    clock.after(1, lambda: clock.after(-5, lambda: seen.append(("at once", clock.now))))
    clock.after(1, lambda: seen.append(("second", clock.now)))
    clock.run()
    assert seen == [("second", 1), ("at once", 1), ("late", 2)]


def test_the_same_seed_gives_the_same_run_and_another_another() -> None:
    assert simulate(SMALL, 1) == simulate(SMALL, 1)
    assert simulate(SMALL, 1).build_seconds != simulate(SMALL, 2).build_seconds


def test_every_session_has_its_swaps_and_every_crossing_is_counted_once() -> None:
    outcome = simulate(replace(SMALL, swaps=(0.0, 1.0)), 3)
    assert outcome.crossings >= 2 * SMALL.sessions
    assert 0 <= outcome.ready <= outcome.crossings
    assert outcome.builds >= outcome.ready


def test_a_quick_model_is_always_ready_and_one_that_is_too_slow_hardly_ever() -> None:
    def ratio(median: float) -> float:
        return (
            simulate(replace(SMALL, model_median_seconds=median, model_p95_seconds=median * 1.1), 1).ready_ratio or 0.0
        )

    assert ratio(5) == 1.0
    assert ratio(600) < 0.2


def test_the_edge_moves_out_with_workers_and_room_and_in_with_failures() -> None:
    crowded = replace(SMALL, spread_seconds=10, builds_at_once=4)
    assert edge(replace(crowded, workers=4), 1) > edge(crowded, 1)
    assert edge(replace(SMALL, soft_ratio=0.5), 1, share=0.95) > edge(replace(SMALL, soft_ratio=0.85), 1, share=0.95)
    assert edge(replace(SMALL, fail_share=0.3), 1, share=0.95) < edge(SMALL, 1, share=0.95)


def test_a_core_that_every_build_needs_is_waited_for() -> None:
    slow = simulate(replace(SMALL, build_cpu_seconds=30.0, model_median_seconds=1.0, model_p95_seconds=2.0), 1)
    assert max(slow.build_seconds) > 60


def test_the_largest_value_is_found_to_two_percent() -> None:
    assert 98 <= largest(lambda value: value <= 100, 1, 1_000) <= 100
    assert largest(lambda value: True, 1, 1_000) == 1_000
    assert largest(lambda value: False, 1, 1_000) == 1


def test_a_paced_run_is_simulated_with_its_own_numbers() -> None:
    scale = Scale(sessions=48, time_factor=0.125, spread_seconds=240, workers=1, soft_ratio=0.85)
    found = as_simulated(scale)
    assert (found.limit_tokens, found.soft_ratio, found.workers) == (4_000, 0.85, 1)
    assert found.notice_seconds == 0.8  # a tenth of a second of the run, in the story's time
