"""``prefold plan``: the arithmetic is what it says, and what cannot be is refused."""

import dataclasses
import json
import tomllib
from pathlib import Path

import pytest

from bench.unit_costs.page import PAGE, with_tables
from prefold.errors import ConfigurationError
from prefold.planning.arithmetic import planned
from prefold.planning.main import main
from prefold.planning.sheet import Sheet
from prefold.planning.unit_costs import Measured, UnitCosts, load_unit_costs
from prefold.planning.workload import Workload, checked
from prefold.pricing import load_prices

ROUND = Measured(
    dataclasses.replace(
        load_unit_costs().costs,
        gateway_append_us=200,
        gateway_read_us=100,
        gateway_search_us=0,
        redis_turn_us=50,
        redis_read_us=20,
        log_times_text=2,
        context_times_spoken=2,
        context_times_rest=1,
        bytes_per_token=4,
        builds_per_swap=3,
        after_swap_share=0.25,
        read_share=1.2,
    ),
    "a test",
    turn_bytes=600,
    turns=60,
)


def sheet(**given: float) -> Sheet:
    price = load_prices().find("claude-haiku-5-5")
    return planned(checked(given), ROUND, price)


def test_cores_are_rates_times_unit_costs_and_processes_leave_room() -> None:
    found = sheet(sessions=1e6, turns_per_second=10_000, reads_per_turn=0.5, busy_share=0.5)
    assert found.value("gateways", "CPU of appends") == pytest.approx(2.0)
    assert found.value("gateways", "CPU of reads") == pytest.approx(0.5)
    assert found.value("gateways", "processes") == 5
    assert found.value("session store", "shards by CPU") == 2  # (0.5 + 0.1) / 0.5


def test_sessions_at_rest_take_less_than_those_that_speak() -> None:
    found = sheet(
        sessions=1e6, turns_per_second=1_000, turns_per_session=60, turn_bytes=600, shard_gb=32, busy_share=0.6
    )
    speaking = 1_000 / 60 * 60 * 30
    assert found.value("session store", "sessions with turns lately") == pytest.approx(speaking)
    expected = (speaking * 4 + (1e6 - speaking) * 3) * 36_000 / 1e9
    assert found.value("session store", "memory") == pytest.approx(expected)
    assert found.value("session store", "shards by memory") == -(-expected // (32 * 0.6))
    assert found.value("session store", "servers") == 2 * found.value("session store", "shards")


def test_a_context_holds_no_more_than_the_limit_and_a_standby_is_as_large_again() -> None:
    found = sheet(
        sessions=1e5, turns_per_second=10, turns_per_session=2_000, turn_bytes=600, limit_tokens=100_000, shard_gb=32
    )
    speaking = found.value("session store", "sessions with turns lately")
    contexts = (speaking * 2 + (1e5 - speaking)) * 400_000 * 2  # 4 B a token
    assert found.value("session store", "memory") == pytest.approx((1e5 * 1_200_000 * 2 + contexts) / 1e9)


def test_short_sessions_are_never_summarised_and_cost_nothing() -> None:
    found = sheet(sessions=1e5, turns_per_second=1_000, turns_per_session=60, limit_tokens=100_000)
    assert found.value("load", "builds") == 0
    assert found.value("compact workers", "model calls in flight") == 0
    assert found.value("model", "cost a day") == 0


def test_long_ones_swap_and_calls_in_flight_follow_littles_law() -> None:
    found = sheet(
        sessions=1e5,
        turns_per_second=1_000,
        turns_per_session=2_000,
        turn_bytes=600,
        limit_tokens=100_000,
        model_seconds=20,
    )
    assert found.value("load", "tokens a session") == 300_000
    swaps = 1 + 200_000 / 75_000
    assert found.value("load", "swaps a session") == pytest.approx(swaps)
    builds = 0.5 * 3 * swaps
    assert found.value("load", "builds") == pytest.approx(builds)
    assert found.value("compact workers", "model calls in flight") == pytest.approx(builds * 20)
    read = 300_000 * 1.2 / (3 * swaps)
    usd = (read * 0.10 + 1_000 * 0.50) / 1e6
    assert found.value("model", "a build") == pytest.approx(usd, rel=1e-3)
    assert found.value("model", "cost a day") == pytest.approx(builds / 3 * 86_400 * usd, rel=1e-3)


def test_more_of_anything_never_needs_fewer() -> None:
    fields = ("sessions", "turns_per_second", "turn_bytes", "reads_per_turn", "search_share", "embed_share", "replicas")
    base = {"sessions": 1e6, "turns_per_second": 5e4, "turn_bytes": 500.0, "reads_per_turn": 0.5, "search_share": 0.1}
    base |= {"embed_share": 0.5, "replicas": 1.0}
    before = {(line.part, line.name): line.value for line in sheet(**base).lines}
    for name in fields:
        after = sheet(**{**base, name: base[name] * 2 if name not in ("search_share", "embed_share") else 0.9})
        for line in after.lines:
            if line.name == "days that a session is kept":
                continue
            assert line.value >= before.get((line.part, line.name), 0.0) * 0.999, (name, line.part, line.name)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"sessions": 0.0}, "--sessions"),
        ({"sessions": float("nan")}, "--sessions"),
        ({"turns_per_second": float("inf")}, "--turns-per-second"),
        ({"turns_per_second": -1.0}, "--turns-per-second"),
        ({"sessions": 10.0, "turns_per_second": 1e5}, "--turns-per-second"),
        ({"sessions": 1e9, "turns_per_second": 1.0}, "--turns-per-second"),
        ({"busy_share": 1.0}, "--busy-share"),
        ({"turn_bytes": 1e6, "limit_tokens": 1_000.0}, "--turn-bytes"),
        ({"replicas": 9.0}, "--replicas"),
    ],
)
def test_what_cannot_be_is_refused_by_its_flag(given: dict[str, float], named: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{named}: "):
        checked(given)


def test_a_flag_that_does_not_exist_or_is_no_number_is_refused() -> None:
    for flags in (["--sessions", "many"], ["--wheels", "4"], ["--unit", "gateway_append_us"]):
        with pytest.raises(SystemExit) as left:
            main(flags)
        assert left.value.code == 2


def test_unit_costs_may_be_given_by_file_and_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    units = {field.name: 1.0 for field in dataclasses.fields(UnitCosts)} | {"after_swap_share": 0.5}
    table = "\n".join(f"{name} = {value}" for name, value in units.items())
    file.write_text(
        f'[measured]\ndate = "d"\nprocessor = "p"\nturn_bytes = 600\nturns = 60\n[units]\n{table}\n', "utf-8"
    )
    assert load_unit_costs(file, {"redis_read_us": 7.0}).costs.redis_read_us == 7.0
    assert load_unit_costs(file).costs.redis_read_us == 1.0
    main(["--unit-costs", str(file), "--unit", "redis_read_us=7"])
    assert "given by hand: redis_read_us" in capsys.readouterr().out
    for text in ("[units]\n", "x", '[measured]\n[units]\ngateway_append_us = "much"\n'):
        file.write_text(text, "utf-8")
        with pytest.raises(ConfigurationError, match=r"mine\.toml"):
            load_unit_costs(file)
    with pytest.raises(ConfigurationError, match="no such unit cost"):
        load_unit_costs(None, {"wheels": 4.0})


@pytest.mark.parametrize("silly", ["bytes_per_token=0", "read_text_bytes=0", "after_swap_share=1"])
def test_a_unit_cost_that_nothing_can_be_divided_by_is_refused(silly: str) -> None:
    with pytest.raises(ConfigurationError, match=silly.partition("=")[0]):
        main(["--turns-per-session", "5000", "--unit", silly])


def test_a_request_is_never_smaller_than_its_turn() -> None:
    costs = dataclasses.replace(ROUND.costs, http_append_bytes=1)
    found = planned(checked({"turn_bytes": 100.0}), dataclasses.replace(ROUND, costs=costs), None)
    assert found.value("network", "into gateways") == pytest.approx(1.0)


def test_each_line_of_text_and_json_says_its_arithmetic(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--sessions", "1e6", "--turns-per-second", "1e5", "--model", "claude-haiku-5-5"]
    assert main(flags) == 0
    text = capsys.readouterr().out
    assert main([*flags, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["workload"] == dataclasses.asdict(Workload(turns_per_second=1e5))
    for line in document["lines"]:
        assert line["arithmetic"]
        assert f"= {line['arithmetic']}" in text
    assert text.splitlines()[0].startswith("unit costs: the packaged unit costs, measured ")
    assert "For 1,000,000 sessions and 100,000 turns/s:" in text


def test_the_packaged_unit_costs_say_where_they_come_from() -> None:
    from importlib.resources import files

    document = tomllib.loads((files("prefold.planning") / "unit_costs.toml").read_text("utf-8"))
    assert {"date", "processor", "cores", "load"} <= set(document["measured"])
    assert all(value > 0 for value in document["units"].values())


def test_the_tables_of_the_page_are_what_the_packaged_costs_give() -> None:
    page = PAGE.read_text("utf-8")
    assert with_tables(page) == page, "make them anew: ./run bench unit_costs --page"
