"""Names that are resolved late lead somewhere."""

import importlib
from collections.abc import Callable

import pytest

from prefold.cli.main import COMMANDS, resolve
from prefold.jobs.names import COMPACT_JOB, EMBED_JOB


def _function(dotted: str) -> Callable[..., object]:
    module, _, name = dotted.rpartition(".")
    found: Callable[..., object] = getattr(importlib.import_module(module), name)
    return found


@pytest.mark.parametrize("name", [EMBED_JOB, COMPACT_JOB])
def test_a_job_name_resolves_in_a_worker(name: str) -> None:
    assert callable(_function(name))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_leads_to_a_function(command: str) -> None:
    assert callable(resolve(COMMANDS[command].target))
