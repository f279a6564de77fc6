"""The house keeps its plan."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support.sources import ROOT, SOURCE_ROOTS, module_name, portions, source_files

LONGEST_FILE = 400
VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "managers", "models", "misc", "base"}


def test_no_root_of_the_namespace_is_a_package() -> None:
    assert [str(root) for root in SOURCE_ROOTS if (root / "__init__.py").exists()] == []


def test_nothing_but_portions_lies_in_a_root_of_the_namespace() -> None:
    assert [str(path) for path in portions() if not path.is_dir()] == []


def test_the_name_of_a_portion_is_used_once() -> None:
    names = Counter(path.name for path in portions())
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("portion", portions(), ids=lambda path: path.name)
def test_a_portion_is_a_typed_package(portion: Path) -> None:
    assert (portion / "__init__.py").is_file()
    assert (portion / "py.typed").is_file()


def test_no_source_file_is_longer_than_a_reader_can_hold() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in source_files(".py", ".lua")}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FILE} == {}


def test_modules_are_named_for_what_they_do() -> None:
    assert [name for path in source_files() if VAGUE_NAMES & set((name := module_name(path)).split("."))] == []


def test_only_one_module_spells_a_key() -> None:
    spelling = re.compile(r"""["'`]pf1:""")
    spelled = {module_name(path) for path in source_files(".py", ".lua") if spelling.search(path.read_text())}
    assert spelled == {"prefold.storage.keys"}


def test_a_lua_script_spells_no_key() -> None:
    assert [path.name for path in source_files(".lua") if "pf1:" in path.read_text()] == []
