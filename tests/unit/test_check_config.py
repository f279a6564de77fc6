"""``--check-config`` finds what a process could not start with, and serves nothing to find it."""

import importlib
import sys
from pathlib import Path

import pytest

from prefold.errors import ConfigurationError

MAINS = {
    "gateway": "prefold.gateway.main",
    "worker embed": "prefold.worker.main",
    "worker compact": "prefold.worker.main",
    "worker memory": "prefold.worker.main",
    "dispatcher": "prefold.dispatcher.main",
    "vectors": "prefold.vectorstore.main",
}


def check(role: str) -> None:
    """Ends by SystemExit(0) or ConfigurationError."""
    importlib.import_module(MAINS[role]).main([*role.split()[1:], "--check-config"])


@pytest.mark.parametrize("role", MAINS)
def test_what_is_right_is_printed_though_no_store_answers(role: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        check(role)
    assert left.value.code == 0
    assert "PREFOLD_LOG_LEVEL=info" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    "text", [None, "acme", "acme nonsense", b"\xff\xfe"], ids=["absent", "no hash", "bad", "bytes"]
)
def test_a_gateway_reads_its_file_of_keys(
    text: str | bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "keys"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    monkeypatch.setenv("PREFOLD_API_KEYS_FILE", str(file))
    with pytest.raises(ConfigurationError, match="key file"):
        check("gateway")


@pytest.mark.parametrize("role", ["worker compact", "worker memory"])
@pytest.mark.parametrize("variable", ["PREFOLD_PRICES_FILE", "PREFOLD_SUMMARIZER_BUDGETS_FILE"])
def test_files_of_prices_and_budgets_are_read_whatever_writes_the_summaries(
    role: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd.json").write_text("[", "utf-8")
    monkeypatch.setenv(variable, str(tmp_path / "odd.json"))
    with pytest.raises(ConfigurationError, match=variable):
        check(role)


@pytest.mark.parametrize("role", ["gateway", "worker embed", "worker memory"])
def test_an_embedder_whose_package_or_address_is_missing_is_named(role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFOLD_EMBEDDER", "http")
    with pytest.raises(ConfigurationError, match="PREFOLD_EMBEDDER_URL"):
        check(role)
    monkeypatch.setenv("PREFOLD_EMBEDDER", "minilm")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigurationError, match="onnxruntime"):
        check(role)


def test_a_folder_that_cannot_be_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setenv("PREFOLD_DATA_DIR", str(tmp_path / "file"))
    with pytest.raises(ConfigurationError, match=r"PREFOLD_DATA_DIR: .*file is no folder"):
        check("vectors")
    monkeypatch.setenv("PREFOLD_AUDIT_FILE", str(tmp_path))
    with pytest.raises(ConfigurationError, match="PREFOLD_AUDIT_FILE"):
        check("gateway")


def test_up_tells_what_its_processes_complain_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from prefold.stack.checking import check_parts
    from prefold.stack.settings import StackSettings

    complaining = [sys.executable, "-c", "import sys; sys.exit('prefold gateway: key file, line 1: no hash')"]

    def command(role: str) -> list[str]:
        return complaining if role == "gateway" else [sys.executable, "-c", ""]

    settings = StackSettings(data_dir=tmp_path / "new")
    with pytest.raises(ConfigurationError, match=r"^key file, line 1: no hash$"):
        check_parts(settings, command)
    assert not (tmp_path / "new").exists()


@pytest.mark.long
def test_up_checks_with_its_real_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from prefold.stack.main import main

    monkeypatch.setenv("PREFOLD_DATA_DIR", str(tmp_path))
    with pytest.raises(SystemExit) as left:
        main(["--check-config"])
    assert left.value.code == 0
    monkeypatch.setenv("PREFOLD_API_KEYS_FILE", str(tmp_path / "nope"))
    with pytest.raises(ConfigurationError, match="key file"):
        main(["--check-config"])
