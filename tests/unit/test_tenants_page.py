"""The page on tenants says what the code does."""

import json
import re

import pytest

from prefold.access import SCOPES, parse_allowances
from prefold.audit import ACTIONS, parse_entry
from prefold.config.flags import variable_of
from prefold.gateway.settings import GatewaySettings
from prefold.keys.arguments import parse_arguments
from prefold.replay.arguments import API_KEY_VARIABLE
from prefold.worker.settings import WorkerSettings
from tests.support.sources import ROOT

PAGE = (ROOT / "docs" / "tenants.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def rows(head: str) -> set[str]:
    """What stands in the first column of the table with that head."""
    table = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0]
    return set(re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in table.splitlines()[2:])))


def test_the_tables_name_every_scope_quota_and_action() -> None:
    assert rows("scope") == set(SCOPES)
    assert rows("action") == set(ACTIONS)
    assert rows("quota") == {"turns_per_second", "tokens_per_day", "sessions", "builds_per_hour"}


def test_the_quotas_and_the_entry_that_it_shows_are_read() -> None:
    quotas, entry = blocks("json")
    allowances = parse_allowances(json.loads(f"{{{quotas}}}")["quotas"])
    assert allowances.of("acme").builds_per_hour and allowances.of("acme").sessions == allowances.of("bob").sessions
    assert parse_entry(entry.encode()) is not None


def test_every_variable_that_it_names_exists() -> None:
    kinds = (GatewaySettings, WorkerSettings)
    known = {variable_of(kind, name) for kind in kinds for name in kind.model_fields} | {API_KEY_VARIABLE}
    assert set(re.findall(r"PREFOLD_[A-Z_]*[A-Z]", PAGE)) <= known


def test_every_command_that_it_shows_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import UTC, datetime
    from shlex import split

    monkeypatch.setenv("PREFOLD_API_KEYS_FILE", "keys.json")
    shown = re.findall(r"prefold keys ([^|)\n]*)", "\n".join(blocks("sh")))
    assert len(shown) >= 8
    for words in shown:
        assert parse_arguments(split(words.replace("$id", "one")), datetime.now(UTC)).action == words.split()[0]
