"""Case files: what is read, and how what is wrong is told."""

from pathlib import Path

import pytest

from prefold.cli.main import main as prefold
from prefold.errors import ConfigurationError
from prefold.evaluation.cases import read_case, read_cases, shipped_folder
from prefold.evaluation.shapes import Ask, Fill, UserTurn

GOOD = """
about = "A case."
[sessions.only]
user = "anna"
[[steps]]
user = "I live in Oslo."
[[steps]]
fill = 4
[[steps]]
ask = "Where do I live?"
expect = [{ holds = "Oslo" }]
"""


def case_file(folder: Path, text: str, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_a_case_is_named_by_its_file_and_its_only_session_need_not_be_named(tmp_path: Path) -> None:
    case = read_case(case_file(tmp_path, GOOD))

    assert case.name == "mine"
    assert [type(step) for step in case.steps] == [UserTurn, Fill, Ask]
    assert {step.session for step in case.steps} == {"only"}
    assert case.checks == 1


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('about = "A case."', "", "about: is missing"),
        ('user = "anna"', 'usre = "anna"', "sessions.only.usre: is no key that can stand here"),
        (
            'user = "anna"',
            "hard_limit_tokens = 10",
            "sessions.only.hard_limit_tokens: must be greater than or equal to 1000",
        ),
        ("fill = 4", 'fill = "four"', "steps[1].fill: must be a valid integer"),
        ("fill = 4", "", "steps[1]: must have one of user, assistant, fill,"),
        ("fill = 4", "fill = 4\nclose = true", "; it has fill and close"),
        ("fill = 4", 'fill = 4\nsession = "other"', "steps[1].session: 'other' is none of only"),
        ("fill = 4", "close = false", "steps[1].close: must be True"),
        ('{ holds = "Oslo" }', '{ holds = "Oslo", lacks = "Bergen" }', "steps[2].expect[0]: must have one of holds,"),
        ('{ holds = "Oslo" }', "{ most_tokens = 0 }", "steps[2].expect[0].most_tokens: must be greater than"),
        ('{ holds = "Oslo" }', '{ hold = "Oslo" }', "steps[2].expect[0].hold: is no key that can stand here"),
        ('expect = [{ holds = "Oslo" }]', "", "steps[2].expect: is missing"),
        ("[[steps]]", "[[steps", "is not TOML"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_key(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = case_file(tmp_path, GOOD.replace(old, new, 1))

    with pytest.raises(ConfigurationError) as raised:
        read_case(path)

    assert raised.value.detail.startswith(f"{path}: ")
    assert told in raised.value.detail


def test_a_step_of_a_case_with_two_sessions_says_which(tmp_path: Path) -> None:
    two = GOOD.replace("[sessions.only]", "[sessions.other]\n[sessions.only]")

    with pytest.raises(ConfigurationError, match=r"steps\[0\].session: must say which of other, only"):
        read_case(case_file(tmp_path, two))


def test_a_case_that_asks_nothing_is_refused_because_it_could_not_fail(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nothing is asked"):
        read_case(case_file(tmp_path, GOOD.partition("[[steps]]\nask")[0]))


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    paths = [case_file(tmp_path, GOOD), case_file(tmp_path / "more", GOOD)]

    with pytest.raises(ConfigurationError, match="another file is called mine too"):
        read_cases(paths)


def test_a_bad_case_file_ends_the_command_with_2_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = case_file(tmp_path, GOOD.replace("fill", "fil", 1))

    assert prefold(["eval", str(path)]) == 2
    assert f"prefold eval: {path}: steps[1]: must have one of" in capsys.readouterr().err


def test_a_filter_that_fits_no_case_ends_the_command_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert prefold(["eval", "--case", "no such case"]) == 2
    assert "--list tells the names" in capsys.readouterr().err


def test_the_shipped_cases_are_read_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    cases = read_cases([shipped_folder()])

    assert prefold(["eval", "--list"]) == 0
    said = capsys.readouterr().out
    assert len(cases) >= 12
    assert all(case.name in said for case in cases)
