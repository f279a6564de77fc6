"""``prefold keys``."""

import json
import secrets
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from prefold.access import SCOPES, KeyFile, KeyRecord, iso, mark_of, secret_of
from prefold.audit import AuditLog
from prefold.config.logs import configure_logging
from prefold.errors import ConfigurationError
from prefold.keys.arguments import Action, KeysArguments, parse_arguments
from prefold.keys.changing import with_new_key, with_successor, without
from prefold.keys.checking import findings_of, owner_of
from prefold.keys.editing import change_key_file, read_key_file, write_new

_SECRET_BYTES = 32


def main(argv: Sequence[str]) -> int:
    """0 when it was done, 1 when ``check`` found something wrong. Keys go to standard output, the rest to the other."""
    now = datetime.now(UTC)
    arguments = parse_arguments(argv, now)
    configure_logging("keys", arguments.settings)
    audit = AuditLog(arguments.settings.audit_file, role="keys")
    return _COMMANDS[arguments.action](arguments, audit, now)


def _init(arguments: KeysArguments, audit: AuditLog, now: datetime) -> int:  # noqa: ARG001  # nobody gained access
    secret = secrets.token_hex(_SECRET_BYTES)
    secret_path = arguments.settings.api_keys_secret_file
    if arguments.settings.api_keys_secret is not None:
        secret = arguments.settings.api_keys_secret.get_secret_value().strip()
    elif secret_path is None:
        raise ConfigurationError("PREFOLD_API_KEYS_SECRET_FILE: say where the secret is to be, apart from the keys")
    elif not secret_path.exists():
        write_new(secret_path, f"{secret}\n".encode())
        _tell(f"wrote {secret_path}: the gateways need it, and nobody else")
    else:
        secret = (secret_of(arguments.settings) or b"").decode()
    write_new(arguments.path, KeyFile(mark=mark_of(secret.encode())).to_bytes())
    _tell(f"wrote {arguments.path}: no keys yet")
    return 0


def _create(arguments: KeysArguments, audit: AuditLog, now: datetime) -> int:
    made: list[tuple[KeyRecord, str]] = []
    secret, tenant = _secret(arguments), arguments.tenant or ""

    def change(file: KeyFile) -> KeyFile:
        changed, record, text = with_new_key(
            file,
            secret,
            tenant=tenant,
            scopes=arguments.scopes,
            expires=arguments.expires,
            note=arguments.note,
            now=now,
        )
        made[:] = [(record, text)]
        return changed

    change_key_file(arguments.path, change)
    [(record, text)] = made
    audit.note("key_created", tenant=tenant, subject={"key": record.id, "scopes": _scopes(record)})
    _hand_over(record, text)
    return 0


def _rotate(arguments: KeysArguments, audit: AuditLog, now: datetime) -> int:
    made: list[tuple[KeyRecord, KeyRecord, str]] = []
    secret = _secret(arguments)

    def change(file: KeyFile) -> KeyFile:
        changed, old, record, text = with_successor(
            file, secret, arguments.ids[0], keep=arguments.keep, expires=arguments.expires, now=now
        )
        made[:] = [(old, record, text)]
        return changed

    change_key_file(arguments.path, change)
    [(old, record, text)] = made
    audit.note("key_rotated", tenant=record.tenant, subject={"key": old.id, "successor": record.id})
    _hand_over(record, text)
    _tell(f"{old.id} is good until {_until(old)}; revoke it when nobody uses it any more")
    return 0


def _revoke(arguments: KeysArguments, audit: AuditLog, now: datetime) -> int:  # noqa: ARG001  # at once
    gone: list[KeyRecord] = []

    def change(file: KeyFile) -> KeyFile:
        changed, gone[:] = without(file, arguments.ids)
        return changed

    change_key_file(arguments.path, change)
    for record in gone:
        audit.note("key_revoked", tenant=record.tenant, subject={"key": record.id})
        _tell(f"revoked {record.id} of {record.tenant}")
    _tell("gateways refuse it within PREFOLD_KEYS_CHECK_SECONDS (5) of seeing this file")
    return 0


def _list(arguments: KeysArguments, audit: AuditLog, now: datetime) -> int:  # noqa: ARG001  # nothing changes
    keys = [one for one in read_key_file(arguments.path).keys if arguments.tenant in (None, one.tenant)]
    for record in sorted(keys, key=lambda one: (one.tenant, one.created, one.id)):
        print(json.dumps(_shown(record, now)) if arguments.is_json else _line(record, now))
    return 0


def _check(arguments: KeysArguments, audit: AuditLog, now: datetime) -> int:  # noqa: ARG001  # nothing changes
    settings, file = arguments.settings, read_key_file(arguments.path)
    secret = secret_of(settings)
    if arguments.reads_key:
        record = owner_of(file, secret, sys.stdin.readline())
        print("not known" if record is None else _line(record, now))
        return 1 if record is None or _is_over(record, now) else 0
    found = findings_of(file, secret, path=arguments.path, secret_path=settings.api_keys_secret_file, now=now)
    for one in found:
        print(f"{'wrong' if one.is_wrong else 'note'}: {one.text}")
    tenants = {record.tenant for record in file.keys}
    print(f"{len(file.keys)} keys of {len(tenants)} tenants, quotas of {len(file.allowances.of_tenants)}")
    return 1 if any(one.is_wrong for one in found) else 0


def _secret(arguments: KeysArguments) -> bytes:
    secret = secret_of(arguments.settings)
    if secret is None:
        raise ConfigurationError(
            "PREFOLD_API_KEYS_SECRET_FILE: new keys are hashed under it; prefold keys init makes one"
        )
    return secret


def _hand_over(record: KeyRecord, text: str) -> None:
    print(text)
    _tell(f"key {record.id} of {record.tenant} may {_scopes(record)}, until {_until(record)}. It is shown this once.")


def _line(record: KeyRecord, now: datetime) -> str:
    state = "expired" if _is_over(record, now) else f"until {_until(record)}"
    return f"{record.id:<18}{record.tenant:<20} {_scopes(record):<20} {record.created:<21} {state}  {_plain(record.note)}".rstrip()


def _shown(record: KeyRecord, now: datetime) -> dict[str, object]:
    known = record.to_json()
    del known["hash"]
    return known | {"is_expired": _is_over(record, now)}


def _is_over(record: KeyRecord, now: datetime) -> bool:
    return record.expires is not None and record.expires <= now


def _until(record: KeyRecord) -> str:
    return "revoked" if record.expires is None else iso(record.expires)


def _scopes(record: KeyRecord) -> str:
    return "admin" if "admin" in record.scopes else ",".join(one for one in SCOPES if one in record.scopes)


def _plain(text: str) -> str:
    """Without what a terminal would follow."""
    return "".join(one if one.isprintable() else "?" for one in text)


def _tell(text: str) -> None:
    print(f"prefold keys: {text}", file=sys.stderr)


_COMMANDS: dict[Action, Callable[[KeysArguments, AuditLog, datetime], int]] = {
    "init": _init,
    "create": _create,
    "list": _list,
    "rotate": _rotate,
    "revoke": _revoke,
    "check": _check,
}
