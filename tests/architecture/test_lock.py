"""The lock says exactly what is installed, and covers what the project declares."""

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.support.sources import ROOT

LOCKS = {name: ROOT / "lock" / f"{name}.txt" for name in ("runtime", "dev")}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def locked(name: str) -> dict[str, Requirement]:
    logical_lines = LOCKS[name].read_text().replace("\\\n", " ").splitlines()
    requirements = [Requirement(line.partition(" --hash")[0]) for line in logical_lines if line.strip()]
    return {canonicalize_name(requirement.name): requirement for requirement in requirements}


def version(requirement: Requirement) -> Version:
    (specifier,) = requirement.specifier
    assert specifier.operator == "=="
    return Version(specifier.version)


def declared(extras: list[str]) -> list[Requirement]:
    project = PROJECT["project"]
    texts = [*project["dependencies"], *PROJECT["dependency-groups"]["build"]]
    for extra in extras:
        texts += project["optional-dependencies"][extra]
    return [requirement for text in texts if (requirement := Requirement(text)).name != "prefold"]


RUNTIME_EXTRAS = ["service", "worker", "multilingual"]


@pytest.mark.parametrize(("lock", "extras"), [("runtime", RUNTIME_EXTRAS), ("dev", [*RUNTIME_EXTRAS, "dev"])])
def test_a_lock_has_a_fitting_version_of_all_that_is_declared(lock: str, extras: list[str]) -> None:
    have = locked(lock)
    for requirement in declared(extras):
        assert requirement.specifier.contains(version(have[canonicalize_name(requirement.name)]), prereleases=True)


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_of_a_lock_has_an_exact_version_and_hashes(lock: str) -> None:
    text = LOCKS[lock].read_text()
    assert all(version(requirement) for requirement in locked(lock).values())
    assert all("--hash=sha256:" in line for line in text.replace("\\\n", " ").splitlines() if line.strip())


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_host(lock: str) -> None:
    assert re.findall(r"\S*://\S*|--index\S*|--extra\S*|--find\S*", LOCKS[lock].read_text()) == []


def test_both_locks_agree() -> None:
    runtime, dev = locked("runtime"), locked("dev")
    assert {name: str(dev.get(name)) for name in runtime} == {name: str(found) for name, found in runtime.items()}


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("lock_install", ROOT / "lock" / "install.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    venv = tmp_path / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "activate").write_text(f"VIRTUAL_ENV={venv}")
    monkeypatch.setattr(module, "VENV", venv)
    monkeypatch.setattr(module, "UNFINISHED", venv / ".unfinished")
    monkeypatch.setattr(module, "PYTHON", Path(sys.executable))
    return module


def test_the_environment_of_development_serves_the_other_commands_too(install: ModuleType) -> None:
    install.write_stamp("dev", "123 /here")
    assert install.is_current("runtime", "123 /here")
    assert install.is_current("dev", "123 /here")


def test_the_environment_of_the_commands_does_not_serve_development(install: ModuleType) -> None:
    install.write_stamp("runtime", "123 /here")
    assert install.is_current("runtime", "123 /here")
    assert not install.is_current("dev", "123 /here")


def test_another_lock_is_another_stamp(install: ModuleType) -> None:
    install.write_stamp("dev", "123 /here")
    install.write_stamp("runtime", "456 /here")
    assert not install.is_current("dev", "123 /here")
    assert not install.is_current("runtime", "123 /here")


def test_a_half_made_environment_is_not_used(install: ModuleType) -> None:
    assert install.is_usable()
    install.UNFINISHED.touch()
    assert not install.is_usable()


def test_an_environment_that_was_moved_is_not_used(install: ModuleType) -> None:
    (install.VENV / "bin" / "activate").write_text("VIRTUAL_ENV=/another/place/.venv")
    assert not install.is_usable()


def test_an_environment_whose_python_is_gone_is_not_used(
    install: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "PYTHON", tmp_path / "no-such-python")
    assert not install.is_usable()
