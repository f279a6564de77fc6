"""One tenant asks for much: the work of the others does not stand behind it. Deterministic, without servers."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from prefold.dispatcher.asking import Asking, Cut, Piece
from prefold.dispatcher.fairness import Shares, in_turn
from prefold.jobs import Ask
from tests.support.dispatching import FakeJobs, ManualClock, ref

QUIET = [f"quiet{number}" for number in range(20)]
BUILDS = Cut(8, lambda job: Ask.sessions("compact", [piece.ref for piece in job], "1"))


def pieces(tenant: str, count: int) -> list[Piece]:
    return [Piece(ref(f"{tenant}-{number}", tenant)) for number in range(count)]


def one_each(tenants: list[str] = QUIET) -> list[Piece]:
    return [piece for tenant in tenants for piece in pieces(tenant, 1)]


class Bench:
    def __init__(self, most_waiting: int = 2_000) -> None:
        self.jobs, self.clock = FakeJobs(), ManualClock()
        self.asking = Asking(self.jobs, most_waiting, self.clock)

    async def ask(self, wanted: list[Piece]) -> int:
        return len((await self.asking.ask("compact", wanted, BUILDS)).pieces)

    def place_of(self, tenant: str) -> int:
        """How many jobs stand before the first that has work of the tenant."""
        return next(i for i, job in enumerate(self.jobs.builds) if any(one.tenant == tenant for one in job))


PIECES = st.lists(st.sampled_from("aabbbcd"), max_size=60).map(
    lambda tenants: [Piece(ref(f"s{number}", tenant)) for number, tenant in enumerate(tenants)]
)


@given(PIECES)
def test_tenants_take_turns_and_each_keeps_its_own_order(given_pieces: list[Piece]) -> None:
    taken = in_turn(given_pieces)
    assert Counter(taken) == Counter(given_pieces)
    for tenant in "abcd":
        own = [one for one in given_pieces if one.ref.tenant == tenant]
        assert [one for one in taken if one.ref.tenant == tenant] == own
    for place in range(len(taken)):
        counts = Counter(one.ref.tenant for one in taken[:place])
        left = Counter(one.ref.tenant for one in taken[place:])
        behind = [counts[tenant] for tenant in left]
        assert not behind or max(counts.values(), default=0) <= min(behind) + 1


async def test_work_of_quiet_tenants_that_comes_with_a_flood_is_in_the_first_jobs() -> None:
    bench = Bench()
    await bench.ask([*pieces("flood", 5_000), *one_each()])
    assert max(map(bench.place_of, QUIET)) <= 2


async def test_work_of_quiet_tenants_that_comes_after_a_flood_goes_before_all_that_waits() -> None:
    bench = Bench()
    await bench.ask(pieces("flood", 5_000))
    assert len(bench.jobs.builds) == 625
    assert await bench.ask(one_each()) == 20
    assert max(map(bench.place_of, QUIET)) == 2
    assert {one.tenant for one in bench.jobs.builds[3]} == {"flood"}


async def test_a_queue_that_is_full_of_a_flood_still_takes_work_of_others() -> None:
    bench = Bench(most_waiting=100)
    assert await bench.ask(pieces("flood", 5_000)) == 800
    assert await bench.ask([*pieces("flood", 5_100)[5_000:], *one_each()]) == 20
    assert max(map(bench.place_of, QUIET)) == 2


async def test_it_takes_no_more_than_twice_as_much_of_them() -> None:
    bench = Bench(most_waiting=10)
    await bench.ask(pieces("flood", 5_000))
    assert await bench.ask(one_each([f"t{number}" for number in range(500)])) == 80
    assert len(bench.jobs.builds) == 20


async def test_tenants_that_ask_for_as_much_as_the_others_wait_in_line() -> None:
    bench = Bench()
    for tenant in "abc":
        await bench.ask(pieces(tenant, 100))
    assert not any(ask.at_front for ask in bench.jobs.waiting)


async def test_a_flood_that_has_passed_is_forgotten() -> None:
    bench = Bench()
    await bench.ask(pieces("flood", 5_000))
    bench.clock.now_ms += 20 * 60_000
    await bench.ask([*pieces("b", 60), *pieces("c", 60)])
    late = [Piece(ref("late", "flood"))]
    await bench.ask(late)
    assert bench.place_of("flood") == 0, "its old work is first in line still"
    assert bench.jobs.waiting[0].at_front, "and its new work counts as that of a quiet tenant"


AMOUNTS = st.dictionaries(st.text(st.characters(categories=["L"]), min_size=1), st.integers(1, 10**6), max_size=30)


@given(AMOUNTS)
def test_modest_tenants_together_never_ask_for_half_of_all(amounts: dict[str, int]) -> None:
    shares = Shares()
    shares.note(amounts.items(), 0)
    modest = shares.modest(amounts, 0)
    assert sum(amounts[one] for one in modest) * 2 <= sum(amounts.values())
    assert not amounts or len(modest) < len(amounts), "somebody waits in line"


def test_what_is_remembered_of_tenants_ends_by_itself() -> None:
    shares = Shares(half_life_ms=1_000)
    shares.note(((f"t{number}", 100) for number in range(1_000)), 0)
    assert len(shares) == 1_000
    shares.note([], 60_000)
    assert len(shares) == 0
