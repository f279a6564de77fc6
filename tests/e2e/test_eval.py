"""The shipped cases on a stack of their own, as a person starts them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from prefold.evaluation.cases import shipped_folder
from tests.support.seeds import seed_of_run

BROKEN = """
about = "Expects what nobody said."
[sessions.only]
user = "anna"
[[steps]]
user = "I live in Oslo."
[[steps]]
ask = "Where do I live?"
expect = [{ holds = "Oslo" }, { holds = "Narvik" }]
"""


def evaluated(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON document of a run."""
    command = [sys.executable, "-m", "prefold.cli.main", "eval", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.timeout(300)
def test_every_shipped_case_passes_and_a_broken_one_beside_them_fails_the_run(tmp_path: Path) -> None:
    cases = shutil.copytree(shipped_folder(), tmp_path / "cases")
    (cases / "broken.toml").write_text(BROKEN)

    code, told = evaluated(str(cases), "--patience", "120")

    assert code == 1
    broken, *ours = sorted(told["cases"], key=lambda one: one["case"] != "broken")
    assert [check["passed"] for check in broken["checks"]] == [True, False]
    assert [one for one in ours if not one["passed"]] == []
    assert len(ours) >= 15


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_shipped_cases_pass_whatever_is_said_between_what_matters() -> None:
    seed = seed_of_run("the small talk of the cases")
    for number in range(seed, seed + 5):
        code, told = evaluated("--seed", str(number), "--patience", "120")
        assert code == 0, [one for one in told["cases"] if not one["passed"]]
