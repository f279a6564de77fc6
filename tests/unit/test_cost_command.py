"""``prefold cost``: what needs no server."""

import json
from pathlib import Path

import pytest

from prefold.cli.main import COMMANDS
from prefold.cost.main import main
from prefold.errors import ConfigurationError, InvalidInputError

COMPARE = [
    "compare",
    "--model",
    "claude-sonnet-5-5",
    "--summarizer-model",
    "claude-haiku-5-5",
    "--context-tokens",
    "100000",
    "--new-tokens",
    "20,000",
    "--summary-tokens",
    "1500",
]


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PREFOLD_PRICES_FILE", raising=False)
    monkeypatch.setenv("PREFOLD_DATA_DIR", str(tmp_path))


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(list(argv)) == 0
    return capsys.readouterr().out


def test_the_command_is_among_prefolds() -> None:
    assert COMMANDS["cost"].target == "prefold.cost.main:main"


def test_a_comparison_shows_its_arithmetic_both_sums_and_the_break_even(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [" ".join(line.split()) for line in printed(capsys, *COMPARE).splitlines()]
    assert lines == [
        "shared prefix, claude-sonnet-5-5: one call",
        "read from cache 95,000 x 0.1 / 1,000,000 = 0.009500 USD",
        "written to cache 5,000 x 2.5 / 1,000,000 = 0.012500 USD",
        "input 800 x 2 / 1,000,000 = 0.001600 USD",
        "output 1,500 x 10 / 1,000,000 = 0.015000 USD",
        "together = 0.038600 USD",
        "own prompt, claude-haiku-5-5: 1 call",
        "input 20,800 x 0.1 / 1,000,000 = 0.002080 USD",
        "output 1,500 x 0.5 / 1,000,000 = 0.000750 USD",
        "together = 0.002830 USD",
        "the small model is cheaper, 13.6 times",
        "break-even: none; even to read all 100,000 tokens anew costs the small model less",
    ]


def test_a_comparison_within_one_model_names_the_break_even(capsys: pytest.CaptureFixture[str]) -> None:
    argv = [*COMPARE, "--summarizer-model", "claude-sonnet-5-5", "--cached-share", "0.95"]
    data = json.loads(printed(capsys, *argv, "--json"))
    assert (data["shared_prefix_micro_usd"], data["small_model_micro_usd"]) == (38_600, 56_600)
    assert (data["cheaper"], data["break_even_new_tokens"]) == ("shared_prefix", 11_000)
    assert "the shared prefix pays from 11,000 tokens of new source on" in printed(capsys, *argv)


def test_the_sums_of_many_calls_are_those_of_their_lines(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, *COMPARE, "--context-tokens", "900000", "--new-tokens", "800000")
    small = text.split("own prompt")[1]
    assert "14 calls" in small
    *parts, total = (float(line.split("= ")[1].split()[0]) for line in small.splitlines() if "= " in line)
    assert total == pytest.approx(sum(parts), abs=14e-6)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["compare"], "--model, --summarizer-model, --context-tokens, --new-tokens, --summary-tokens"),
        ([*COMPARE, "--cached-share", "1.5"], "is no share from 0 to 1"),
        ([*COMPARE, "--cached-share", "nan"], "is no share from 0 to 1"),
        ([*COMPARE, "--new-tokens", "-1"], "no whole number"),
        ([*COMPARE, "--new-tokens", "many"], "no whole number"),
        ([*COMPARE, "--new-tokens", "100001"], "is a part of --context-tokens"),
        (["spent", "--days", "0"], "no whole number from 1 to 400"),
        (["spend"], "invalid choice"),
    ],
)
def test_what_cannot_be_understood_is_wrong_usage(
    capsys: pytest.CaptureFixture[str], argv: list[str], told: str
) -> None:
    with pytest.raises(SystemExit) as end:
        main(argv)
    assert end.value.code == 2
    assert told in capsys.readouterr().err


def test_a_model_without_a_price_cannot_be_compared() -> None:
    with pytest.raises(InvalidInputError, match="no price is known for 'llama'"):
        main([*COMPARE, "--model", "llama"])


def test_the_table_in_force_names_where_each_row_comes_from(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    row = {"model": "llama-*", "input": 0, "cache_write_5m": 0, "cache_write_1h": 0, "cache_read": 0, "output": 0}
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"models": [row]}))
    lines = printed(capsys, "prices", "--prices-file", str(path)).splitlines()
    assert lines[1].split() == ["llama-*", "0", "0", "0", "0", "0", str(path)]
    assert any(line.endswith("the packaged table, assumed") for line in lines)
    assert any("above 100,000 of input" in line for line in lines)
    data = json.loads(printed(capsys, "prices", "--prices-file", str(path), "--json"))
    assert data["prices"][0]["from"] == str(path)


def test_a_wrong_table_is_a_wrong_setting(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text("{}")
    with pytest.raises(ConfigurationError, match="PREFOLD_PRICES_FILE"):
        main(["prices", "--prices-file", str(path)])
