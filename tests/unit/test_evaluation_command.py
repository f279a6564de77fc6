"""``prefold eval`` against a gateway in memory: what it publishes, tells and returns."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prefold.cli.main import main as prefold
from prefold.client import BuildState, Session, StandbyState
from prefold.client.session_answer import parse_session
from prefold.evaluation.settling import owed
from tests.support.fake_gateway import FakeGateway, FakeSession, running_fake_gateway, session_answer

CASE = """
about = "A city."
[sessions.only]
user = "anna"
[[steps]]
user = "I live in Oslo."
[[steps]]
fill_to_turn = 6
[[steps]]
ask = "Where do I live?"
expect = [{ holds = "CITY" }, { most_tokens = 100_000 }]
"""

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    with running_fake_gateway() as fake:
        yield fake


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "good", CASE.replace("CITY", "Oslo"))
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.toml").write_text(text, "utf-8")


def test_all_cases_passing_is_0_and_a_line_each(gateway: FakeGateway, folder: Path, capsys: Capture) -> None:
    assert prefold(["eval", str(folder), "--url", gateway.url]) == 0

    said = capsys.readouterr().out
    assert said.splitlines()[1].split()[:4] == ["good", "ok", "2/2", "7"]
    assert "1 of 1 cases passed" in said


def test_one_failing_case_is_1_and_tells_step_question_and_why(
    gateway: FakeGateway, folder: Path, capsys: Capture
) -> None:
    write(folder, "bad", CASE.replace("CITY", "Narvik"))

    assert prefold(["eval", str(folder), "--url", gateway.url]) == 1

    said = capsys.readouterr().out
    assert "FAILED" in said
    assert "steps[2] 'Where do I live?': holds 'Narvik': 'Narvik' is not there" in said
    assert "1 of 2 cases passed" in said


def test_the_json_has_every_check_with_its_fault(gateway: FakeGateway, folder: Path, capsys: Capture) -> None:
    write(folder, "bad", CASE.replace("CITY", "Narvik"))

    assert prefold(["eval", str(folder), "--url", gateway.url, "--json", "--seed", "7"]) == 1

    said = json.loads(capsys.readouterr().out)
    assert (said["passed"], said["failed"], said["skipped"], said["seed"]) == (1, 1, 0, 7)
    bad, good = said["cases"]
    assert [check["passed"] for check in bad["checks"]] == [False, True]
    assert bad["checks"][0]["expected"] == {"holds": "Narvik"}
    assert good["passed"] and good["turns"] == 7


def test_only_cases_that_the_filter_names_are_played(gateway: FakeGateway, folder: Path, capsys: Capture) -> None:
    write(folder, "bad", CASE.replace("CITY", "Narvik"))

    assert prefold(["eval", str(folder), "--url", gateway.url, "--case", "goo"]) == 0
    assert "1 of 1 cases passed" in capsys.readouterr().out


def test_a_case_of_a_tenant_without_a_key_is_skipped_and_said_so(
    gateway: FakeGateway, folder: Path, capsys: Capture
) -> None:
    write(folder, "other", CASE.replace("CITY", "Oslo").replace('user = "anna"', 'tenant = "b"'))

    assert prefold(["eval", str(folder), "--url", gateway.url]) == 0

    said = capsys.readouterr().out
    assert "no key for tenant b" in said
    assert "1 of 1 cases passed, 1 skipped" in said


def test_each_tenant_of_a_case_is_spoken_to_with_its_own_key(
    gateway: FakeGateway, tmp_path: Path, folder: Path
) -> None:
    write(folder, "good", CASE.replace("CITY", "Oslo").replace('user = "anna"', 'tenant = "b"'))
    keys = tmp_path / "keys.of.tenants"
    keys.write_text('a = "first"\nb = "second"\n')

    assert prefold(["eval", str(folder), "--url", gateway.url, "--keys", str(keys)]) == 0
    assert {headers["authorization"] for headers in gateway.headers} == {"Bearer second"}


def test_what_the_gateway_refuses_fails_the_case_at_its_step(
    gateway: FakeGateway, folder: Path, capsys: Capture
) -> None:
    write(folder, "good", CASE.replace("CITY", "Oslo") + '[[steps]]\nremove = "no such turn"\n')

    assert prefold(["eval", str(folder), "--url", gateway.url]) == 1
    assert "steps[3]: " in capsys.readouterr().out


def test_what_was_played_on_a_running_gateway_is_erased_again_unless_it_shall_stay(
    gateway: FakeGateway, folder: Path
) -> None:
    prefold(["eval", str(folder), "--url", gateway.url, "--keep"])
    assert not [path for method, path, _ in gateway.requests if method == "DELETE"]

    prefold(["eval", str(folder), "--url", gateway.url])
    erased = [path for method, path, _ in gateway.requests if method == "DELETE"]
    assert erased[0].startswith("/v1/sessions/eval-good-only-")


def test_small_talk_alternates_and_ends_before_the_question(gateway: FakeGateway, folder: Path) -> None:
    prefold(["eval", str(folder), "--url", gateway.url, "--keep"])

    (session,) = gateway.sessions.values()
    assert [turn["role"] for turn in session.turns] == ["user", "assistant"] * 3 + ["user"]
    assert [turn["id"] for turn in session.turns] == [f"t{number}" for number in range(1, 8)]


def test_the_same_seed_publishes_the_same_and_another_something_else(gateway: FakeGateway, folder: Path) -> None:
    for seed in ("1", "1", "2"):
        prefold(["eval", str(folder), "--url", gateway.url, "--keep", "--seed", seed])

    first, again, other = ([turn["content"] for turn in one.turns] for one in gateway.sessions.values())
    assert first == again != other


def test_a_file_of_keys_that_is_none_is_refused_without_quoting_a_key(
    tmp_path: Path, folder: Path, capsys: Capture
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("a = secret-words\n")

    assert prefold(["eval", str(folder), "--url", "http://127.0.0.1:9", "--keys", str(keys)]) == 2

    said = capsys.readouterr().err
    assert "is not TOML" in said
    assert "secret-words" not in said


def state(**changes: Any) -> Session:
    settled = replace(
        parse_session(session_answer("s", FakeSession())),
        head_seq=10,
        embedded_to=10,
        tokens=900,
        soft_threshold_tokens=800,
        standby=StandbyState(6, 500, None),
        covers_to=4,
        remembered_to=6,
    )
    return replace(settled, **changes)


@pytest.mark.parametrize(
    ("changes", "closed", "missing"),
    [
        ({}, False, None),
        ({"embedded_to": 9}, False, "embedded 9 of 10 turns"),
        ({"standby": None}, False, "no summary is ready"),
        ({"standby": None, "resting_until_tokens": 2000, "remembered_to": 4}, False, None),
        ({"build": BuildState(8)}, False, "a summary is being written"),
        ({"remembered_to": 5}, False, "learnt from 5 of 6 turns"),
        ({}, True, "learnt from 6 of 10 turns"),
        ({"remembered_to": 10}, True, "not closed"),
        ({"remembered_to": 10, "closed_at": "2026-01-01T00:00:00Z"}, True, None),
    ],
)
def test_the_workers_are_waited_for_as_long_as_something_is_owed(
    changes: dict[str, Any], closed: bool, missing: str | None
) -> None:
    assert owed(state(**changes), closed=closed) == missing
