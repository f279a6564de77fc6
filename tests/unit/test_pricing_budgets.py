"""What a tenant may spend a day, and what is set aside for a call."""

from pathlib import Path

import pytest

from prefold.errors import ConfigurationError, UnavailableError
from prefold.messages.outcomes import Verdict
from prefold.messages.purse import Purse, most_cost
from prefold.pricing import BilledTokens, load_prices
from prefold.pricing.budgets import Budgets, load_budgets
from prefold.storage.spending import Held, Settlement
from prefold.storage.types import ModelUsage, SessionRef
from tests.support.messaging import MODEL, Sums, ask

PRICES = load_prices()


def test_a_tenants_own_budget_wins_and_null_is_no_limit(tmp_path: Path) -> None:
    path = tmp_path / "budgets.json"
    path.write_text('{"acme": 5, "trial": 0.5, "inner": null}')
    budgets = load_budgets(1, path)
    assert [budgets.of(tenant) for tenant in ("acme", "trial", "inner", "other")] == [
        5_000_000,
        500_000,
        None,
        1_000_000,
    ]
    assert load_budgets(None, None).of("acme") is None


def test_whether_anybody_is_limited_is_known() -> None:
    assert [one.has_any for one in (Budgets(), Budgets(0), Budgets(None, {"a": None}), Budgets(None, {"a": 1}))] == [
        False,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is no JSON"),
        ("[]", "must be an object"),
        ('{"acme": "5"}', "'acme': USD a day is a number"),
        ('{"acme": -1}', "'acme': USD a day is a number"),
        ('{"acme": true}', "'acme': USD a day is a number"),
        ('{"acme": 1e9}', "'acme': USD a day is a number"),
        ('{"acme": {}}', "'acme': USD a day is a number"),
    ],
)
def test_a_wrong_file_of_budgets_is_refused_with_the_place(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "budgets.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=told) as caught:
        load_budgets(None, path)
    assert caught.value.field == "PREFOLD_SUMMARIZER_BUDGETS_FILE"


def test_a_missing_file_of_budgets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        load_budgets(None, tmp_path / "nowhere")


def test_a_call_is_set_aside_with_half_as_many_tokens_again_and_a_full_answer() -> None:
    asked = ask(input_tokens=60_000, max_tokens=8_000)
    assert most_cost(asked, PRICES.find(MODEL)) == 9_000 + 4_000
    # 70,000 may be 105,000 to the provider, which is beyond the price step
    assert most_cost(ask(input_tokens=70_000, max_tokens=8_000), PRICES.find(MODEL)) == 52_500 + 20_000


def test_a_shared_prefix_is_set_aside_as_written_to_the_cache_for_an_hour() -> None:
    asked = ask(purpose="prefix", input_tokens=20_000, max_tokens=1_000)
    assert most_cost(asked, PRICES.find("claude-sonnet-5-5")) == 120_000 + 10_000


async def test_what_was_used_never_costs_more_than_was_set_aside_within_the_margin() -> None:
    sums = Sums()
    purse = Purse(sums, PRICES, Budgets(10**9))
    reservation = await purse.reserve(ask(input_tokens=1_000, max_tokens=500), MODEL, "0" * 12)
    used = BilledTokens(input_tokens=1_500, output_tokens=500)
    usage = await purse.settle(reservation, Verdict("well", "reported", used=used, has_answer=True))
    assert usage.micro_usd == 400 == reservation.held.micro_usd


async def test_sums_that_are_away_stop_a_call_before_it_and_not_after_it() -> None:
    class Away(Sums):
        async def reserve(self, held: Held, budget_micro_usd: int | None) -> bool:
            if self.refuses:
                raise UnavailableError("away")
            return await super().reserve(held, budget_micro_usd)

        async def settle(self, held: Held, settlement: Settlement) -> bool:
            raise UnavailableError("away")

        async def note(self, ref: SessionRef, call_id: str, usage: ModelUsage) -> bool:
            raise UnavailableError("away")

    sums = Away()
    purse = Purse(sums, PRICES, Budgets())
    reservation = await purse.reserve(ask(), MODEL, "0" * 12)
    used = BilledTokens(input_tokens=10, output_tokens=10)
    assert (await purse.settle(reservation, Verdict("well", "reported", used=used))).calls == 1
    assert sums.held, "it stays set aside, and so counts as spent"
    sums.refuses = True
    with pytest.raises(UnavailableError):
        await purse.reserve(ask(), MODEL, "1" * 12)


async def test_a_call_is_counted_on_the_day_on_which_it_began() -> None:
    sums = Sums()
    now = [1_796_083_199_999]
    purse = Purse(sums, PRICES, Budgets(), now_ms=lambda: now[0])
    before = await purse.reserve(ask(), MODEL, "0" * 12)
    now[0] += 1
    after = await purse.reserve(ask(), MODEL, "1" * 12)
    assert (before.held.day, after.held.day) == ("20261130", "20261201")
