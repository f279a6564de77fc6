"""What ``prefold keys`` is told."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal, cast

from prefold.access import ALL_SCOPES, Scope, scopes_of
from prefold.config.flags import add_flags, settings_from
from prefold.config.settings import AuditSettings, KeySettings
from prefold.conversation.ids import check_name
from prefold.errors import ConfigurationError, InvalidInputError

Action = Literal["init", "create", "list", "rotate", "revoke", "check"]

_ACTIONS: Final[dict[Action, str]] = {
    "init": "make the secret and an empty file of keys",
    "create": "make a key; its text is printed once and kept nowhere",
    "list": "one line a key",
    "rotate": "make the successor of a key; the old one lives on for a while",
    "revoke": "take keys away",
    "check": "say what is wrong with the file and the secret, or whose key stands on standard input",
}
_WITH_IDS: Final = ("rotate", "revoke")
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SPAN = re.compile(r"(\d{1,5})([mhdw])")
_KEEP: Final = timedelta(days=7)


class KeysSettings(KeySettings, AuditSettings):
    """Which file, and which secret."""


@dataclass(frozen=True, slots=True)
class KeysArguments:
    """One call."""

    settings: KeysSettings
    path: Path
    action: Action
    ids: tuple[str, ...]
    tenant: str | None
    scopes: frozenset[Scope]
    expires: datetime | None
    keep: timedelta
    """How long the old key of a rotation lives on, at most."""
    note: str
    is_json: bool
    reads_key: bool


def parse_arguments(argv: Sequence[str], now: datetime) -> KeysArguments:
    """SystemExit(2) with a message when they cannot be understood. Raises ``ConfigurationError`` without a file."""
    parser = _parser()
    parsed = parser.parse_args(argv)
    if bool(parsed.ids) != (parsed.action in _WITH_IDS) or (parsed.action == "rotate" and len(parsed.ids) != 1):
        parser.error(f"{parsed.action} wants {_wanted(parsed.action)}")
    if (parsed.action == "create") != (parsed.tenant is not None) and parsed.action != "list":
        parser.error("create wants --tenant, and of the others only list takes it")
    try:
        scopes = scopes_of(parsed.scopes.split(",")) if parsed.scopes else ALL_SCOPES
        tenant = None if parsed.tenant is None else check_name(parsed.tenant, "tenant")
        expires = None if parsed.expires is None else read_time(parsed.expires, now)
        keep = _KEEP if parsed.keep is None else read_span(parsed.keep)
    except InvalidInputError as error:
        parser.error(error.detail)
    if parsed.action == "create" and not parsed.scopes:
        parser.error("create wants --scopes: what the key may do, such as append,read")
    settings = settings_from(KeysSettings, parsed)
    if settings.api_keys_file is None:
        raise ConfigurationError("PREFOLD_API_KEYS_FILE: say which file, or give --api-keys-file")
    action = cast("Action", parsed.action)
    return KeysArguments(
        settings=settings,
        path=settings.api_keys_file,
        action=action,
        ids=tuple(parsed.ids),
        tenant=tenant,
        scopes=scopes,
        expires=expires,
        keep=keep,
        note=parsed.note,
        is_json=parsed.json,
        reads_key=parsed.stdin,
    )


def read_span(text: str) -> timedelta:
    """``30m``, ``12h``, ``90d`` or ``4w``; ``0d`` is at once. Raises ``InvalidInputError``."""
    found = _SPAN.fullmatch(text)
    if found is None:
        raise InvalidInputError(f"{text!r} is no span of time such as 12h, 90d or 4w")
    return timedelta(**{_UNITS[found.group(2)]: int(found.group(1))})


def read_time(text: str, now: datetime) -> datetime:
    """A span from now, or a time such as ``2027-01-31`` (UTC). Raises ``InvalidInputError`` for what has passed."""
    if _SPAN.fullmatch(text):
        when = now + read_span(text)
    else:
        try:
            given = datetime.fromisoformat(text)
        except ValueError as error:
            raise InvalidInputError(f"{text!r} is neither a span such as 90d nor a time such as 2027-01-31") from error
        when = given if given.tzinfo else given.replace(tzinfo=UTC)
    if when <= now:
        raise InvalidInputError(f"{text!r} has passed")
    return when


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="prefold keys",
        description="API keys of tenants. Gateways see a change of the file within PREFOLD_KEYS_CHECK_SECONDS.",
        epilog="\n".join(f"{name:<8}{text}" for name, text in _ACTIONS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("action", choices=_ACTIONS, help="what to do")
    parser.add_argument("ids", nargs="*", metavar="ID", help="keys to rotate (one) or to revoke")
    parser.add_argument("--tenant", help="whose key, for create; only theirs, for list")
    parser.add_argument("--scopes", default="", help="what it may do: of append, read, erase, admin, by commas")
    parser.add_argument(
        "--expires", metavar="WHEN", help="until when a new key is good: 90d, 2027-01-31; else for ever"
    )
    parser.add_argument(
        "--keep", metavar="SPAN", help="how long the old key of a rotation lives on at most, default 7d"
    )
    parser.add_argument("--note", default="", help="what the key is for")
    parser.add_argument("--json", action="store_true", help="one JSON object a key, for list")
    parser.add_argument("--stdin", action="store_true", help="check: read a key and say whose it is")
    add_flags(parser, KeysSettings)
    return parser


def _wanted(action: str) -> str:
    return {
        "rotate": "the id of one key",
        "revoke": "ids of keys",
        "check": "no ids; with --stdin it reads a key",
    }.get(action, "no ids")
