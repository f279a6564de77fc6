"""What ``prefold dead-letters`` is told."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from prefold.config.addresses import Addresses
from prefold.config.flags import add_flags, settings_from
from prefold.config.settings import DataDirSettings, QueueSettings, RedisSettings
from prefold.jobs.names import WORK_KINDS, WorkKind

Action = Literal["list", "show", "replay", "erase"]

_ACTIONS: dict[Action, str] = {
    "list": "one line a letter",
    "show": "all that is known of each",
    "replay": "give the work another three starts, now",
    "erase": "forget the letter; the work comes back when its session changes, or with the next sweep",
}


class DeadLetterSettings(RedisSettings, QueueSettings, DataDirSettings):
    """Where sessions and jobs are. What is not set is taken from the ``prefold up`` on that data folder."""


@dataclass(frozen=True, slots=True)
class DeadLetterArguments:
    """One call. A tenant, session or kind of None stands for all."""

    settings: DeadLetterSettings
    action: Action
    tenant: str | None
    session: str | None
    kind: WorkKind | None
    is_json: bool


def parse_arguments(argv: Sequence[str]) -> DeadLetterArguments:
    """SystemExit(2) with a message when they cannot be understood: ``replay`` and ``erase`` want to be told what."""
    parser = argparse.ArgumentParser(
        prog="prefold dead-letters",
        description="Work that killed its workers, or failed for good, three times, and is not asked for any more.",
        epilog="\n".join(f"{name:<8}{text}" for name, text in _ACTIONS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=_ACTIONS, help="what to do with the letters")
    parser.add_argument("--tenant", help="letters of this tenant")
    parser.add_argument("--session", help="letters of this session; wants --tenant")
    parser.add_argument("--kind", choices=WORK_KINDS, help="letters of this kind of work")
    parser.add_argument("--all", action="store_true", help="every letter there is, for replay and erase")
    parser.add_argument("--json", action="store_true", help="one JSON object a letter")
    add_flags(parser, DeadLetterSettings)
    parsed = parser.parse_args(argv)
    if parsed.session is not None and parsed.tenant is None:
        parser.error("--session wants --tenant: a session's name is its tenant's own")
    is_chosen = any(value is not None for value in (parsed.tenant, parsed.session, parsed.kind))
    if parsed.action in ("replay", "erase") and is_chosen == parsed.all:
        parser.error(f"{parsed.action} wants either --all or some of --tenant, --session, --kind")
    return DeadLetterArguments(
        settings=_located(settings_from(DeadLetterSettings, parsed)),
        action=cast("Action", parsed.action),
        tenant=parsed.tenant,
        session=parsed.session,
        kind=cast("WorkKind | None", parsed.kind),
        is_json=parsed.json,
    )


def _located(settings: DeadLetterSettings) -> DeadLetterSettings:
    """With the addresses of a stack that runs on the data folder, where none are set."""
    running = Addresses.read(settings.data_dir)
    if running is None:
        return settings
    wanted = {"redis_url", "queue_url"} - settings.model_fields_set
    return settings.model_copy(update={name: running.settings()[name] for name in wanted})
