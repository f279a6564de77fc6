"""What ``prefold reapply-erasures`` is told."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from prefold.config.flags import add_flags, settings_from
from prefold.config.settings import AuditSettings
from prefold.errors import ConfigurationError
from prefold.reapplying.reading import time_of

DEFAULT_URL = "http://127.0.0.1:7077"


class ReapplySettings(AuditSettings):
    """Where it is noted that erasures were applied again."""


@dataclass(frozen=True, slots=True)
class ReapplyArguments:
    """One call."""

    settings: ReapplySettings
    audits: tuple[Path, ...]
    since: datetime | None
    """When the backup was begun; None: every erasure that the files tell of."""
    url: str
    keys: dict[str, str]
    """By tenant; empty: the gateway asks for none."""
    patience: timedelta
    restored: datetime | None
    """When the store was restored: what was begun later is spared. None: nothing is."""
    is_dry: bool
    is_json: bool
    takes_broken: bool


def parse_arguments(argv: Sequence[str]) -> ReapplyArguments:
    """SystemExit(2) with a message when they cannot be understood."""
    parser = argparse.ArgumentParser(
        prog="prefold reapply-erasures",
        description="After a restore, erases again what was erased since the backup was taken: sessions, users, turns, "
        "facts. Safe to repeat: what was begun after the restore is spared.",
        epilog="Exit code 1 when something may still be there, which the answer names, and when the files hold no entry. "
        "2 for wrong usage.",
    )
    parser.add_argument("audit", nargs="+", type=Path, metavar="AUDITFILE", help="audit logs of all gateways")
    times = parser.add_mutually_exclusive_group(required=True)
    times.add_argument("--since", type=_time, metavar="TIME", help="when the backup was begun (ISO 8601 with zone)")
    times.add_argument("--all", action="store_true", help="every erasure that the files tell of")
    parser.add_argument(
        "--restored", type=_time, metavar="TIME", help="when it was restored: what was begun later is spared (now)"
    )
    parser.add_argument("--url", default=DEFAULT_URL, help=f"the gateway of the restored stack ({DEFAULT_URL})")
    parser.add_argument(
        "--keys",
        type=Path,
        metavar="FILE",
        help="lines `TENANT KEY`, keys with the scope erase; without: no key is sent",
    )
    parser.add_argument("--patience", type=_seconds, default=60.0, metavar="S", help="for each erasure, in s (60)")
    parser.add_argument(
        "--again", action="store_true", help="erase also what was begun since: for a first try that failed"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be erased, and call nobody")
    parser.add_argument("--ignore-broken", action="store_true", help="lines that cannot be read do not fail the call")
    parser.add_argument("--json", action="store_true", help="one JSON object an erasure, and one in the end")
    add_flags(parser, ReapplySettings)
    parsed = parser.parse_args(argv)
    return ReapplyArguments(
        settings=settings_from(ReapplySettings, parsed),
        audits=tuple(parsed.audit),
        since=parsed.since,
        url=parsed.url,
        keys=_read_keys(parsed.keys) if parsed.keys else {},
        patience=timedelta(seconds=parsed.patience),
        restored=None if parsed.again else parsed.restored or datetime.now(UTC),
        is_dry=parsed.dry_run,
        is_json=parsed.json,
        takes_broken=parsed.ignore_broken,
    )


def _read_keys(path: Path) -> dict[str, str]:
    """Raises ``ConfigurationError`` that names the line, and never what stands in it."""
    keys = {}
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2:
            raise ConfigurationError(f"{path}, line {number}: expected a tenant and a key")
        keys[words[0]] = words[1]
    if not keys:
        raise ConfigurationError(f"{path} holds no key")
    return keys


def _time(text: str) -> datetime:
    try:
        return time_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 86_400:
        raise argparse.ArgumentTypeError("must be from 0 to 86400")
    return value
