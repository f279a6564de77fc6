"""What ``prefold dead-letters`` is told."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

from prefold.config.addresses import located
from prefold.config.flags import add_flags, settings_from
from prefold.config.settings import AuditSettings, DataDirSettings, QueueSettings, RedisSettings
from prefold.jobs.names import WORK_KINDS, WorkKind

LetterKind = Literal[WorkKind, "ingest"]
"""``ingest``: a published turn that could not be stored."""
Action = Literal["list", "show", "replay", "erase"]

INGEST: Final = "ingest"
_ACTIONS: dict[Action, str] = {
    "list": "one line a letter",
    "show": "all that is known of each",
    "replay": "give the work another three starts, now; publish an entry again, behind all others",
    "erase": "forget the letter; work comes back when its session changes, or with the next sweep; an entry is gone",
}


class DeadLetterSettings(RedisSettings, QueueSettings, DataDirSettings, AuditSettings):
    """Where sessions and jobs are. What is not set is taken from the ``prefold up`` on that data folder."""


@dataclass(frozen=True, slots=True)
class DeadLetterArguments:
    """One call. A tenant, session or kind of None stands for all."""

    settings: DeadLetterSettings
    action: Action
    tenant: str | None
    session: str | None
    kind: LetterKind | None
    is_json: bool


def parse_arguments(argv: Sequence[str]) -> DeadLetterArguments:
    """SystemExit(2) with a message when they cannot be understood: ``replay`` and ``erase`` want to be told what."""
    parser = argparse.ArgumentParser(
        prog="prefold dead-letters",
        description="Work that killed its workers, or failed for good, three times, and is not asked for any more; and "
        "entries of ingest streams that can never be applied.",
        epilog="\n".join(f"{name:<8}{text}" for name, text in _ACTIONS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=_ACTIONS, help="what to do with the letters")
    parser.add_argument("--tenant", help="letters of this tenant")
    parser.add_argument("--session", help="letters of this session; wants --tenant")
    parser.add_argument("--kind", choices=(*WORK_KINDS, INGEST), help="letters of this kind of work")
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
        settings=located(settings_from(DeadLetterSettings, parsed)),
        action=cast("Action", parsed.action),
        tenant=parsed.tenant,
        session=parsed.session,
        kind=cast("LetterKind | None", parsed.kind),
        is_json=parsed.json,
    )
