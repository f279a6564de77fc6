"""The probe of the gateway of ``prefold up``: where it is, and who finds it."""

import json
import os
import sys
from pathlib import Path

import httpx
import pytest

from prefold.cli.main import main as prefold
from prefold.config.flags import flag_of
from prefold.stack.embedded import EmbeddedStack
from prefold.stack.parts import role_command
from prefold.stack.places import free_port
from prefold.stack.settings import StackSettings

STUB = Path(__file__).resolve().parent.parent / "support" / "stub_role.py"


def stub(role: str) -> list[str]:
    return [sys.executable, str(STUB), *role.split()]


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("PREFOLD_"):
            monkeypatch.delenv(name)


def made(folder: Path, **settings: object) -> EmbeddedStack:
    fields: dict[str, object] = {"data_dir": folder / "data", "port": 0} | settings
    return EmbeddedStack(StackSettings(**fields), command=stub)  # type: ignore[arg-type]


def test_status_reads_a_gateway_that_wants_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("keys", "status"):
        monkeypatch.setattr(f"prefold.{command}.main.configure_logging", lambda *_: None)
    files = {"api_keys_file": tmp_path / "keys.json", "api_keys_secret_file": tmp_path / "keys.secret"}
    flags = [word for name, path in files.items() for word in (flag_of(name), str(path))]
    for words in (["init"], ["create", "--tenant", "acme", "--scopes", "append,read"]):
        assert prefold(["keys", *words, *flags]) == 0
    capsys.readouterr()
    settings = StackSettings(data_dir=tmp_path / "data", host="0.0.0.0", port=0, **files)  # type: ignore[arg-type]
    with EmbeddedStack(settings, command=lambda role: role_command(role) if role == "gateway" else stub(role)) as stack:
        assert httpx.get(f"{stack.gateway_url}/metrics").status_code == 401
        prefold(["status", "--json", "--data-dir", str(settings.data_dir)])
        told = json.loads(capsys.readouterr().out)
    assert (told["gateways"]["asked"], told["gateways"]["answered"]) == (1, 1)
    assert [one for one in told["troubles"] if "gateway" in one] == []


def test_the_gateway_alone_has_a_probe_on_loopback_unless_a_port_is_set(
    tmp_path: Path,
) -> None:
    def told(stack: EmbeddedStack) -> dict[str, tuple[str | None, str]]:
        parts = {part.name: part.environment for stage in stack.plan.stages for part in stage}
        roles = {name: of for name, of in parts.items() if not name.startswith("redis")}
        return {name: (of.get("PREFOLD_PROBE_HOST"), of["PREFOLD_PROBE_PORT"]) for name, of in roles.items()}

    stack = made(tmp_path, probe_host="0.0.0.0")
    probes = told(stack)
    host, port = probes.pop("gateway")
    assert stack.probe_url == f"http://{host}:{port}" == f"http://127.0.0.1:{port}"
    assert {of for _, of in probes.values()} == {"0"}
    stack.stop()
    wanted = str(free_port("127.0.0.1"))
    set_by_user = made(tmp_path, probe_host="0.0.0.0", probe_port=int(wanted))
    assert told(set_by_user)["gateway"] == ("0.0.0.0", wanted)
    set_by_user.stop()
    assert set_by_user.probe_url == f"http://127.0.0.1:{wanted}"
