"""Which address a command tried, as it tells whoever called it in vain."""

from datetime import timedelta
from pathlib import Path

import pytest

from prefold.cli.main import main as prefold
from prefold.config.addresses import Addresses, located, naming_address, tried
from prefold.config.settings import DataDirSettings, QueueSettings, RedisSettings
from prefold.doctor.queue import look_at_queue
from prefold.doctor.sessions import look_at_sessions
from prefold.doctor.settings import DoctorSettings
from prefold.errors import UnavailableError
from prefold.gateway.composition import gateway
from prefold.gateway.settings import GatewaySettings
from prefold.status.look import opened_looker
from prefold.status.settings import StatusSettings


class Places(RedisSettings, QueueSettings, DataDirSettings):
    pass


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logs of this process are not the command's to set up."""
    monkeypatch.setattr("prefold.deadletters.main.configure_logging", lambda *_: None)


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PREFOLD_REDIS_URL", "PREFOLD_QUEUE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_an_address_that_nobody_set_is_said_to_be_the_default_and_why(tmp_path: Path) -> None:
    told = tried(located(Places(data_dir=tmp_path)), "redis_url")
    assert told.startswith("redis://127.0.0.1:6379/0 (the default: ")
    assert f"no `prefold up` runs on {tmp_path}, and PREFOLD_REDIS_URL is not set" in told
    assert "prefold up" not in tried(RedisSettings(), "redis_url"), "a process does not look for one"


def test_an_address_that_was_set_or_found_is_told_alone_and_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Addresses("unix:///run/s.sock", "unix:///run/q.sock", "http://127.0.0.1:1").write(tmp_path)
    assert tried(located(Places(data_dir=tmp_path)), "redis_url") == "unix:///run/s.sock"
    monkeypatch.setenv("PREFOLD_REDIS_URL", "redis://app:p@ss@here:1/0?password=secret&db=1")
    told = tried(located(Places(data_dir=tmp_path)), "redis_url")
    assert told == "redis://********@here:1/0?password=********&db=1"


def test_an_outage_names_its_own_address_once() -> None:
    settings = Places(redis_url="redis://a:1/0", queue_url="redis://b:1/0")
    with pytest.raises(UnavailableError) as told, naming_address(settings, "redis_url"):  # noqa: SIM117
        with naming_address(settings, "queue_url"):
            raise UnavailableError("away", retry_after=timedelta(seconds=1))
    assert told.value.detail == "away: redis://b:1/0; start it, or let PREFOLD_QUEUE_URL name the one that runs"
    assert (told.value.field, told.value.retry_after) == ("PREFOLD_QUEUE_URL", timedelta(seconds=1))
    with pytest.raises(UnavailableError) as full, naming_address(settings, "redis_url"):
        raise UnavailableError("full", code="store_full")
    assert (full.value.detail, full.value.code) == ("full: redis://a:1/0", "store_full")


@pytest.mark.parametrize("command", [["cost"], ["dead-letters", "list"]])
def test_a_command_that_finds_no_store_says_which_address_it_tried(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PREFOLD_DATA_DIR", str(tmp_path))
    assert prefold([*command, "--redis-url", "redis://app:secret@127.0.0.1:1/0"]) == 1
    told = capsys.readouterr().err
    assert "the session store does not answer: redis://********@127.0.0.1:1/0; start it" in told
    assert "secret" not in told


async def test_a_gateway_that_finds_no_store_at_its_start_says_which_address_it_tried() -> None:
    settings = GatewaySettings(redis_url="redis://app:secret@127.0.0.1:1/0")
    with pytest.raises(UnavailableError) as away:
        async with gateway(settings):
            pass
    assert away.value.detail.startswith("the session store does not answer: redis://********@127.0.0.1:1/0; start it")


async def test_status_and_doctor_say_that_an_address_is_only_the_default(tmp_path: Path) -> None:
    status, doctor = StatusSettings(data_dir=tmp_path, gateway_url=""), DoctorSettings(data_dir=tmp_path)
    for settings in (status, doctor):  # the defaults, at a port where nobody is
        vars(settings).update(redis_url="redis://127.0.0.1:1/0", queue_url="redis://127.0.0.1:1/0")
    async with opened_looker(status) as looker:
        away = (await looker.look(0)).away
    found = [one.found for one in (*await look_at_sessions(doctor), *await look_at_queue(doctor))]
    assert (len(away), len(found)) == (2, 2)
    for told in (*away, *found):
        assert f"redis://127.0.0.1:1/0 (the default: no `prefold up` runs on {tmp_path}, and PREFOLD_" in told
