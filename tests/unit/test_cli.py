"""The command ``prefold``."""

import gc
import importlib.metadata
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from prefold.cli import main as cli
from prefold.cli.main import COMMANDS, Command
from prefold.errors import ConfigurationError, UnauthenticatedError, UnavailableError


def as_command(monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    monkeypatch.setitem(COMMANDS, "probe", Command(f"{__name__}:{function}", "a probe"))
    monkeypatch.setattr(cli, "resolve", lambda target: globals()[target.partition(":")[2]])


def gives_back_seven(argv: list[str]) -> int:
    return 7 if argv == ["--flag", "value"] else 0


def is_misconfigured(_argv: list[str]) -> int:
    raise ConfigurationError("PREFOLD_PORT: no such port")


def finds_nothing(_argv: list[str]) -> int:
    raise UnavailableError("nobody answers")


def has_no_key(_argv: list[str]) -> int:
    raise UnauthenticatedError("the request needs a key")


def lacks_a_package(_argv: list[str]) -> int:
    raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")


def lacks_one_of_ours(_argv: list[str]) -> int:
    raise ModuleNotFoundError("No module named 'prefold.lost'", name="prefold.lost")


def is_interrupted(_argv: list[str]) -> int:
    raise KeyboardInterrupt


def test_a_command_gets_the_remaining_arguments_and_gives_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    as_command(monkeypatch, "gives_back_seven")
    assert cli.main(["probe", "--flag", "value"]) == 7


@pytest.mark.parametrize(
    ("function", "code", "message"),
    [
        ("is_misconfigured", 2, "prefold probe: PREFOLD_PORT: no such port\n"),
        ("finds_nothing", 1, "prefold probe: nobody answers\n"),
        ("has_no_key", 1, "prefold probe: the request needs a key; PREFOLD_API_KEY takes the key\n"),
        ("lacks_a_package", 1, "prefold probe: uvicorn is not installed: pip install 'prefold[all]'\n"),
        ("is_interrupted", 130, ""),
    ],
)
def test_a_failure_is_one_line_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], function: str, code: int, message: str
) -> None:
    as_command(monkeypatch, function)
    assert cli.main(["probe"]) == code
    assert capsys.readouterr().err == message


def test_a_module_of_ours_that_is_missing_is_a_fault_and_no_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    as_command(monkeypatch, "lacks_one_of_ours")
    with pytest.raises(ModuleNotFoundError):
        cli.main(["probe"])


@pytest.mark.parametrize("argv", [["--help"], ["-h"], ["help"]])
def test_help_lists_every_command(capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    assert cli.main(argv) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")}
    assert listed == set(COMMANDS)


@pytest.mark.parametrize("argv", [[], ["no-such-command"]])
def test_wrong_usage_is_exit_code_two(argv: list[str]) -> None:
    assert cli.main(argv) == 2


def test_the_version_is_the_installed_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"prefold {importlib.metadata.version('prefold')}\n"


def test_a_reader_that_has_seen_enough_ends_the_command_quietly() -> None:
    code = "from prefold.cli import main; main.COMMANDS['x'] = main.Command('tests.unit.test_cli:endless', ''); "
    code += "raise SystemExit(main.main(['x']))"
    root = Path(__file__).parents[2]
    process = subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(20) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def endless(_: Sequence[str]) -> int:
    """A command whose output never ends."""
    while True:
        sys.stdout.write("a line\n")


def test_only_in_a_process_of_its_own_what_a_command_imports_is_kept_for_good(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = """if True:
        import gc, sys
        from prefold.cli import main as cli
        cli.COMMANDS["probe"] = cli.Command("builtins:print", "a probe")
        sys.argv = ["prefold", "probe", "told"]
        cli.main()
        print(gc.isenabled(), gc.get_freeze_count() > 0)
    """
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said == "['told']\nTrue True\n"
    monkeypatch.setitem(COMMANDS, "probe", Command("builtins:print", "a probe"))
    before = gc.get_freeze_count()
    cli.main(["probe", "told"])
    assert (gc.get_freeze_count(), gc.isenabled(), capsys.readouterr().out) == (before, True, "['told']\n")
