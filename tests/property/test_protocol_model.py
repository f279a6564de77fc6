"""The protocol that the storage scripts follow, searched state by state: it holds, and needs every one of its guards."""

import sys
from dataclasses import replace

import pytest

from tests.property.protocol_model import ALL_GUARDS, Guard, Scope, search


def small(scope: Scope) -> Scope:
    """The same scope with limits that few turns reach: swaps follow each other."""
    return replace(scope, hard=6, soft=4, low=5)


SCOPES = [
    Scope("two builders, leases", turns=5),
    Scope("edits and deletes", turns=5, edits=1, builders=1),
    Scope("rewinds", turns=5, rewinds=1, builders=1),
    small(Scope("edits with chained swaps", turns=4, edits=1, builders=1, clock=False)),
    small(Scope("erased and created again", turns=3, endings=1, builders=1)),
    Scope("tool rounds", kinds="ucr", turns=6, builders=1, clock=False),
    small(Scope("late results", kinds="ucrl", turns=4, builders=1, clock=False)),
    Scope("tool rounds rewound", kinds="ucr", turns=5, rewinds=1, builders=1, clock=False),
    Scope("parallel calls", kinds="ucr", turns=6, builders=1, calls=2, clock=False),
    Scope("thinking rounds", kinds="ucr", turns=5, builders=1, thinking=True, clock=False),
    Scope("limits lowered and raised", kinds="ucr", turns=5, limits=(6, 12), builders=1, clock=False),
    small(Scope("staged changes", kinds="u", turns=4, staged=2, stages_rewinds=True, builders=1, clock=False)),
    small(Scope("a staged change, others at once", turns=4, staged=1, rewinds=1, builders=1, clock=False)),
    small(Scope("staged changes and erasures", kinds="u", turns=3, staged=1, endings=1, builders=1, clock=False)),
    small(Scope("forks and edits", kinds="u", turns=4, edits=1, forks=1, builders=1, clock=False)),
    small(Scope("forks and rewinds", kinds="u", turns=4, rewinds=1, forks=1, builders=1, clock=False)),
    small(Scope("forks of tool rounds", kinds="ucr", turns=3, forks=1, builders=1, clock=False)),
    small(Scope("forks and erasures", kinds="u", turns=3, endings=1, forks=1, builders=1, clock=False)),
]
LONG_SCOPES = [
    small(Scope("edits with chained swaps", turns=5, edits=1, builders=1, clock=False)),
    small(Scope("late results", kinds="ucrl", turns=5, builders=1, clock=False)),
    Scope("thinking rounds", kinds="ucr", turns=6, builders=1, thinking=True, clock=False),
    Scope("two builders, leases", turns=6),
    Scope("two builders, edits", turns=5, edits=1),
    Scope("two edits", turns=5, edits=2, builders=1, clock=False),
    Scope("rewinds and edits", turns=5, edits=1, rewinds=1, builders=1),
    Scope("erased and created again", turns=4, endings=1, builders=2),
    Scope("tool rounds", kinds="ucr", turns=8, builders=1, clock=False),
    Scope("parallel calls", kinds="uacr", turns=7, builders=1, calls=2, clock=False),
    Scope("tool rounds edited and rewound", kinds="ucr", turns=5, edits=1, rewinds=1, builders=1, clock=False),
    Scope("limits lowered and raised", kinds="uacr", turns=6, limits=(6, 12), builders=1),
    small(Scope("staged changes", kinds="u", turns=5, staged=2, stages_rewinds=True, builders=1, clock=False)),
    small(Scope("staged changes of tool rounds", kinds="ucr", turns=5, staged=1, builders=1, clock=False)),
    small(Scope("staged changes, leases, erasures", turns=4, staged=1, endings=1, builders=1)),
    small(Scope("forks, edits and rewinds", kinds="u", turns=5, edits=1, rewinds=1, forks=1, builders=1, clock=False)),
    small(Scope("forks of tool rounds", kinds="ucr", turns=5, forks=1, builders=1, clock=False)),
    small(Scope("forks and staged changes", kinds="u", turns=4, staged=1, forks=1, builders=1)),
    small(Scope("forks, edits and erasures", kinds="u", turns=3, edits=1, endings=1, forks=1, builders=1, clock=False)),
]

TWO = Scope("two builders", turns=4, builders=2)
EDIT = Scope("edit", turns=5, edits=1, builders=1)
REWIND = Scope("rewind", turns=5, rewinds=1, builders=1)
QUIET = small(Scope("edit, no clock", turns=5, edits=1, builders=1, clock=False))
ENDING = Scope("ending", turns=4, endings=1, builders=1, clock=False)
TOOLS = Scope("tools", kinds="ucr", turns=6, builders=1, clock=False)
OVERTAKEN = small(Scope("two builders, an edit", turns=3, edits=1, builders=2))
STAGED = small(Scope("staged", kinds="u", turns=4, staged=2, deletes=False, builders=1, clock=False))
STAGED_REWOUND = small(Scope("staged, rewinds", turns=4, staged=1, rewinds=1, builders=1, clock=False))
STAGED_ERASED = small(Scope("staged, ends", kinds="u", turns=3, staged=1, endings=1, builders=1, clock=False))
FORK = small(Scope("fork", kinds="u", turns=4, edits=1, forks=1, builders=1, clock=False))
FORK_ERASED = small(Scope("fork, ends", kinds="u", turns=3, endings=1, forks=1, builders=1, clock=False))
LIMITS = Scope("limits", kinds="ucr", turns=5, limits=(6, 12), builders=1, clock=False)

NEEDED_FOR = {
    Guard.INCARNATION: (
        small(Scope("tombstone ends", kinds="u", turns=3, endings=1, builders=2, clock=False)),
        "resurrection",
    ),
    Guard.EPOCH: (OVERTAKEN, "stale"),
    Guard.START_RAISES: (TWO, "lease"),
    Guard.EDIT_RAISES: (replace(EDIT, change_ends_record=False), "stale"),
    Guard.REWIND_RAISES: (replace(REWIND, change_ends_record=False), "stale"),
    Guard.RECORD_OUTLIVES_LEASE: (EDIT, "stale"),
    Guard.RECORD_NEEDED: (QUIET, "stale"),
    Guard.CUT_NOW: (QUIET, "newest user turn"),
    Guard.GAIN: (TOOLS, "progress"),
    Guard.LEASE: (TWO, "lease"),
    Guard.RENEW_HOLDER: (TWO, "lease"),
    Guard.ABANDON_HOLDER: (TWO, "lease"),
    Guard.SOURCE_IS_LOG: (Scope("ladder", turns=6, builders=1, clock=False), "stale"),
    Guard.DROP_STANDBY: (QUIET, "stale"),
    Guard.FALL_BACK: (QUIET, "stale"),
    Guard.PURGE_APPLIED: (QUIET, "stale"),
    Guard.NO_CALL_LEFT_OPEN: (
        small(Scope("rewound call", kinds="uc", turns=4, rewinds=1, builders=1, clock=False)),
        "rounds",
    ),
    Guard.RECHECK_CUTS: (QUIET, "newest user turn"),
    Guard.ERASE_DROPS_DERIVED: (ENDING, "resurrection"),
    Guard.NEXT_FOLLOWS: (QUIET, "stale"),
    Guard.NO_CUT_IN_ROUND: (TOOLS, "rounds"),
    Guard.STRIP_CLOSER: (TOOLS, "rounds"),
    Guard.CUT_BEFORE_LATE: (small(Scope("late results", kinds="ur", turns=8, builders=1, clock=False)), "limit"),
    Guard.LATE_CLOSES_ROUND: (Scope("late inside a round", kinds="ucrl", turns=5, builders=1, clock=False), "rounds"),
    Guard.USER_STAYS: (TOOLS, "progress"),
    Guard.CARRY_WHEN_OVER: (LIMITS, "progress"),
    Guard.TASK_IN_VIEW: (TOOLS, "newest user turn"),
    Guard.NEWER_TASK: (
        small(Scope("agent run", kinds="uc", turns=9, builders=1, clock=False)),
        "newest user turn",
    ),
    Guard.GAP_MARKED: (TOOLS, "coverage"),
    Guard.MARKER_ROOM: (Scope("tight", turns=5, builders=1, clock=False, hard=6, soft=4, low=6), "limit"),
    Guard.HEAD_YIELDS: (
        Scope("tight", kinds="ucr", turns=6, builders=1, clock=False, calls=2, hard=5, soft=4, low=5),
        "limit",
    ),
    Guard.REFIT_APPEND: (TOOLS, "limit"),
    Guard.REFIT_CHANGE: (QUIET, "limit"),
    Guard.REFIT_LIMIT: (LIMITS, "limit"),
    Guard.REFIT_COMMIT: (TOOLS, "progress"),
    Guard.REBUILD_ON_RAISE: (LIMITS, "progress"),
    Guard.NO_SWAP_WHILE_THINKING: (
        Scope("thinking", kinds="ucr", turns=6, builders=1, thinking=True, clock=False),
        "rounds",
    ),
    Guard.SWAP_KEEPS_EPOCH: (Scope("swap", turns=5, builders=2, clock=False), "progress"),
    Guard.HOLE_AFTER_CUT: (REWIND, "progress"),
    Guard.CHANGE_TOKEN: (STAGED, "lost"),
    Guard.CHANGE_COUNTER: (replace(STAGED_REWOUND, change_clears_stage=False), "lost"),
    Guard.CHANGE_LIFE: (STAGED_ERASED, "resurrection"),
    Guard.CHANGE_WHOLE: (STAGED, "lost"),
    Guard.ERASE_DROPS_STAGE: (STAGED_ERASED, "resurrection"),
    Guard.FORK_CHECKS: (FORK, "torn"),
    Guard.FORK_LOOKS_AFTER: (FORK, "stale"),
    Guard.FORK_REPEAT_LOOKS: (FORK, "stale"),
    Guard.FORK_COMPARES_LIFE: (FORK_ERASED, "torn"),
    Guard.FORK_COMPARES_CHANGES: (FORK, "torn"),
    Guard.FORK_PUBLISHED_LAST: (FORK, "torn"),
    Guard.FORK_SUMMARY_BEFORE: (FORK, "coverage"),
    Guard.FORK_SUMMARY_STANDS: (replace(FORK, kinds="uc", edits=0), "newest user turn"),
    Guard.REFIT_FORK: (FORK, "limit"),
}


@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: scope.name)
def test_with_every_guard_no_reachable_state_breaks_an_invariant(scope: Scope) -> None:
    found = search(scope)
    assert found.violation is None, f"{scope.name}: {found.violation}"
    assert found.states > 1_000, "the scope reaches too little to say anything"


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("scope", LONG_SCOPES, ids=lambda scope: scope.name)
def test_with_every_guard_no_state_of_a_larger_space_breaks_an_invariant(scope: Scope) -> None:
    found = search(scope)
    assert found.violation is None, f"{scope.name}: {found.violation}"


@pytest.mark.parametrize("scope", [QUIET, TWO, small(TWO)], ids=lambda scope: scope.name)
def test_a_repeated_commit_is_refused_by_the_ended_record_or_by_what_stands_and_needs_one_of_them(scope: Scope) -> None:
    for one in (replace(scope, beyond=False), replace(scope, record_ends=False)):
        found = search(one)
        assert found.violation is None, str(found.violation)
    neither = search(replace(scope, beyond=False, record_ends=False), kind="progress")
    assert neither.violation is not None


@pytest.mark.parametrize("guard", [Guard.EDIT_RAISES, Guard.REWIND_RAISES], ids=lambda guard: guard.name.lower())
def test_a_change_inside_a_build_voids_it_by_the_ended_record_alone_too(guard: Guard) -> None:
    """The scripts do both: raising the epoch also answers a renewal with no, ending the record frees the lease."""
    scope = NEEDED_FOR[guard][0]
    found = search(replace(scope, change_ends_record=True), ALL_GUARDS - {guard})
    assert found.violation is None, str(found.violation)
    assert found.states > 1_000


def test_a_staged_copy_that_another_change_overtook_is_refused_by_the_counter_or_ended_by_that_change() -> None:
    """The scripts do both, because the stage has room for one."""
    for one in (replace(STAGED_REWOUND, change_clears_stage=False), STAGED_REWOUND):
        guards = ALL_GUARDS if one is not STAGED_REWOUND else ALL_GUARDS - {Guard.CHANGE_COUNTER}
        found = search(one, guards)
        assert found.violation is None, str(found.violation)
        assert found.states > 1_000


def test_an_erasure_need_not_raise_the_epoch_because_the_incarnation_is_new() -> None:
    found = search(small(replace(ENDING, builders=2, turns=3, erase_raises=False)))
    assert found.violation is None, str(found.violation)
    assert found.states > 1_000


@pytest.mark.parametrize("guard", Guard, ids=lambda guard: guard.name.lower())
def test_without_any_one_guard_an_invariant_breaks(guard: Guard) -> None:
    scope, kind = NEEDED_FOR[guard]
    found = search(scope, ALL_GUARDS - {guard}, kind)
    assert found.violation is not None, f"{guard.name} could go: {found.states} states without a violation"
    sys.stdout.write(f"without '{guard}' ({found.states} states):\n{found.violation}\n")
