"""The price table and its arithmetic."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefold.errors import ConfigurationError
from prefold.pricing import PACKAGED, BilledTokens, Price, PriceTable, Workload, compare, load_prices

ROW = {"model": "m", "input": 1, "cache_write_5m": 1.25, "cache_write_1h": 2, "cache_read": 0.1, "output": 5}


def price(table: PriceTable, model: str) -> Price:
    found = table.find(model)
    assert found is not None, model
    return found


@pytest.fixture
def packaged() -> PriceTable:
    return load_prices()


def written(tmp_path: Path, *rows: dict[str, Any], **members: Any) -> Path:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"models": rows, **members}))
    return path


@pytest.mark.parametrize(
    ("model", "tokens", "micro_usd"),
    [
        ("claude-haiku-5-5", BilledTokens(input_tokens=60_000, output_tokens=1_000), 6_500),
        ("claude-haiku-5-5", BilledTokens(input_tokens=100_000, output_tokens=1_000), 10_500),
        ("claude-haiku-5-5", BilledTokens(input_tokens=100_001, output_tokens=1_000), 52_501),
        ("claude-haiku-5-5", BilledTokens(cache_read_tokens=99_000, cache_write_1h_tokens=2_000), 6_950),
        ("claude-sonnet-5-5", BilledTokens(800, 95_000, 5_000, 0, 1_500), 38_600),
        ("claude-opus-5-5-20260922", BilledTokens(1, 1, 1, 1, 1), 38),
        ("claude-haiku-4-5-20251001", BilledTokens(1_000_000, 0, 0, 0, 1_000_000), 6_000_000),
        ("claude-haiku-4-5", BilledTokens(), 0),
    ],
)
def test_a_call_costs_what_its_row_says(packaged: PriceTable, model: str, tokens: BilledTokens, micro_usd: int) -> None:
    assert price(packaged, model).cost(tokens) == micro_usd


def test_the_packaged_table_says_where_it_is_from_and_no_model_gets_a_neighbours_price(packaged: PriceTable) -> None:
    assert packaged.as_of is not None
    assert packaged.source.startswith("https://")
    for row, origin in packaged.rows:
        assert origin == PACKAGED
        assert row.cache_read < row.input < row.cache_write_5m < row.cache_write_1h < row.output
    assert price(packaged, "claude-opus-5").input == 5
    assert price(packaged, "claude-opus-5-5").input == 4
    assert packaged.find("claude-opus-5-9") is None
    assert packaged.find("llama") is None


@given(*[st.integers(0, 10**7)] * 5)
def test_a_cost_is_never_less_than_its_parts_and_at_most_one_millionth_more(
    a: int, b: int, c: int, d: int, e: int
) -> None:
    row = Price.model_validate(ROW)
    exact = (a * 100 + b * 10 + c * 125 + d * 200 + e * 500) / 100
    assert exact - 1e-6 <= row.cost(BilledTokens(a, b, c, d, e)) < exact + 1


def test_rows_of_an_operators_file_go_before_the_packaged_ones(tmp_path: Path) -> None:
    path = written(tmp_path, {**ROW, "model": "claude-haiku-*"}, {**ROW, "model": "llama-?", "input": 0})
    table = load_prices(path)
    assert price(table, "claude-haiku-5-5").input == 1
    assert price(table, "llama-3").input == 0
    assert price(table, "claude-sonnet-5-5").input == 2
    assert [origin for _, origin in table.rows[:3]] == [str(path), str(path), PACKAGED]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "Invalid JSON"),
        ("[]", "object"),
        ('{"models": []}', "models: .*at least 1"),
        ('{"models": [{"model": "m"}]}', r"models\[0\]\.input: Field required; models\[0\]\.cache_write_5m"),
        (json.dumps({"models": [{**ROW, "input": -1}]}), r"models\[0\]\.input: .*greater than or equal to 0"),
        (json.dumps({"models": [{**ROW, "input": "x"}]}), r"models\[0\]\.input: .*valid number"),
        (json.dumps({"models": [{**ROW, "inptu": 1}]}), r"models\[0\]\.inptu: Extra inputs"),
        (json.dumps({"models": [{**ROW, "above": {"input_tokens": 5}}]}), r"models\[0\]\.above\.input: Field required"),
        (json.dumps({"models": [ROW, ROW]}), "'m' stands twice"),
        ('{"models": [{"model": "m", "input": NaN}]}', "Invalid JSON|finite"),
    ],
)
def test_a_wrong_table_is_refused_with_the_place(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=f"PREFOLD_PRICES_FILE: .*prices.json: .*{told}"):
        load_prices(path)


def test_a_table_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot read .*nowhere\.json: No such file"):
        load_prices(tmp_path / "nowhere.json")


def test_the_small_model_is_far_cheaper_than_another_models_cached_prefix(packaged: PriceTable) -> None:
    workload = Workload(context_tokens=100_000, new_tokens=20_000, summary_tokens=1_500)
    compared = compare(workload, price(packaged, "claude-sonnet-5-5"), price(packaged, "claude-haiku-5-5"))
    # 95,000 x 0.10 + 5,000 x 2.50 + 800 x 2 + 1,500 x 10, and 20,800 x 0.10 + 1,500 x 0.50
    assert (compared.prefix, compared.small) == (38_600, 2_830)
    assert not compared.prefix_is_cheaper
    assert compared.break_even_new_tokens is None


def test_within_one_model_the_cached_prefix_pays_from_some_length_of_new_source_on(packaged: PriceTable) -> None:
    model = price(packaged, "claude-sonnet-5-5")
    workload = Workload(context_tokens=100_000, new_tokens=20_000, summary_tokens=1_500)
    compared = compare(workload, model, model)
    assert (compared.prefix, compared.small) == (38_600, 56_600)
    # 38,600 = (11,000 + 800) x 2 + 15,000
    assert compared.break_even_new_tokens == 11_000


def test_without_a_warm_cache_the_prefix_costs_a_write_of_all_of_it(packaged: PriceTable) -> None:
    model = price(packaged, "claude-sonnet-5-5")
    compared = compare(Workload(100_000, 100_000, 1_500, cached_share=0), model, model)
    assert compared.prefix == 250_000 + 1_600 + 15_000
    assert compared.small == 200_000 + 2 * 1_600 + 15_000
    assert not compared.prefix_is_cheaper


def test_a_long_source_is_read_in_chunks_that_stay_below_the_price_step(packaged: PriceTable) -> None:
    haiku = price(packaged, "claude-haiku-5-5")
    compared = compare(Workload(300_000, 250_000, 3_000, chunk_tokens=200_000), haiku, haiku)
    assert len(compared.small_calls) == 3
    assert max(call.prompt_tokens for call in compared.small_calls) <= 100_000
    assert sum(call.input_tokens for call in compared.small_calls) == 250_000 + 3 * 800
    assert sum(call.output_tokens for call in compared.small_calls) == 3_000
    assert compared.small == 25_240 + 1_500 + 2, "each call is rounded up"


@given(
    context=st.integers(1, 10**6),
    summary=st.integers(0, 10_000),
    share=st.floats(0, 1),
    chat=st.sampled_from(["claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5", "claude-fable-5-1"]),
)
def test_from_the_break_even_on_the_prefix_is_no_dearer_and_before_it_is(
    context: int, summary: int, share: float, chat: str
) -> None:
    table = load_prices()
    model, small = price(table, chat), price(table, "claude-sonnet-5-5")

    def at(new: int) -> tuple[int, int]:
        compared = compare(Workload(context, new, summary, cached_share=share), model, small)
        return compared.prefix, compared.small

    found = compare(Workload(context, 0, summary, cached_share=share), model, small).break_even_new_tokens
    if found is None:
        assert at(context)[0] > at(context)[1]
        return
    assert at(found)[0] <= at(found)[1]
    if found:
        assert at(found - 1)[0] > at(found - 1)[1]
